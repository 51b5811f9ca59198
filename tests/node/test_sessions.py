"""Sessions of the real gymd over real SSH: exact ends, exit codes, offsets, input, ending."""

import threading
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from gymnode.actions.command import RunCommand
from gymnode.workbench import Bench
from tests.node.machines import NodeRun, command_lines, piece_bytes, wait_until


def test_exit_code_output_and_offsets_are_exact(run: NodeRun) -> None:
    ran = run.sh("printf 'one\\ntwo\\n'; exit_with() { return $1; }; exit_with 3")
    assert (ran["text"], ran["code"], ran["job"]["state"]) == ("one\ntwo\n", 3, "exited")
    assert ran["output"]["next_offset"] - ran["output"]["start_offset"] == len("one\r\ntwo\r\n")
    assert run.sh("echo $?")["text"] == "3\n"


def test_shell_state_persists_between_commands(run: NodeRun) -> None:
    run.sh("mkdir -p deep && cd deep && export LEVEL=5 && twice() { echo $(($1 * 2)); }")
    assert run.sh('echo "$(basename $PWD) $LEVEL $(twice 4)"')["text"] == "deep 5 8\n"


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("echo 'unclosed", 2),
        ("for i in 1 2", 2),
        ("${nothing:?is unset}", 1),
        ("cat <<END\nhere\nEND", 0),
        ("kill -INT $$", 130),
        ("sh -c 'kill -9 $$'", 137),
    ],
)
def test_broken_commands_end_with_their_code_and_the_shell_lives(run: NodeRun, command: str, code: int) -> None:
    assert run.sh(command)["code"] == code
    assert run.sh("echo alive")["text"] == "alive\n"


def test_exit_ends_the_shell_with_its_status_and_the_session_goes_on(run: NodeRun) -> None:
    assert run.sh("exit 7")["code"] == 7
    assert run.op("session.list")["sessions"][0]["state"] == "closed"
    assert run.sh("echo again")["text"] == "again\n"


def _say(run: NodeRun, command: str) -> str:
    """What the agent is told about a command in a session of its own."""
    run.steps += 1
    bench = Bench(run.name, 1, f"{run.name}.{run.steps}.0", False, {"n1": run.link}, None, lambda: datetime.now(UTC))
    return RunCommand(command=command, session_id="own").perform(bench).message


@pytest.mark.parametrize("command", ["exit 3", "set -euo pipefail; false", "exec false", "kill -9 $$"])
def test_a_shell_that_ends_with_a_command_is_told(run: NodeRun, command: str) -> None:
    run.op("session.create", session_id="own")
    run.sh("mkdir sub; cd sub; export LEFT=1", session="own")
    said = "The shell ended; the next command starts a new one in /workspace/sub; variables and functions are gone."
    assert _say(run, command).endswith(said)
    assert "shell" not in _say(run, "pwd")
    assert run.sh("pwd; echo [$LEFT]", session="own")["text"] == "/workspace/sub\n[]\n"


def test_a_shell_that_ended_unheard_is_told_with_the_next_command(run: NodeRun) -> None:
    run.op("session.create", session_id="own")
    run.sh("mkdir gone; cd gone; rmdir ../gone", session="own")
    run.sh("sleep 0.2; exit 3", session="own", wait=False)
    wait_until(lambda: run.op("session.list")["sessions"][0]["state"] == "closed")
    said = "The shell had ended before; the command got a new one in /workspace: variables and functions are gone."
    assert _say(run, "true").endswith(said)
    assert "shell" not in _say(run, "true")


def test_the_last_status_is_no_failure_of_the_next_command(run: NodeRun) -> None:
    """`$?` is carried over; a trap on errors must not see it as one."""
    run.sh("trap 'echo trapped' ERR; false")
    assert run.sh("echo $?")["text"] == "1\n"


def test_printing_text_cannot_forge_an_end(run: NodeRun) -> None:
    ran = run.sh("printf '%032x 0\\n' 0 >&200; printf '\\033]7717;%032x\\a' 0; sleep 0.2; false")
    assert ran["code"] == 1


def test_background_children_do_not_hold_a_result_back(run: NodeRun) -> None:
    began = time.monotonic()
    ran = run.sh("nohup sleep 300 >/dev/null 2>&1 & setsid sleep 301 & echo started")
    assert time.monotonic() - began < 100  # the sleeps take 300
    assert "started" in ran["text"]
    assert run.op("session.list")["sessions"][0]["state"] == "idle"
    wait_until(lambda: len(run.op("session.list")["sessions"][0]["background_pids"]) == 2)
    assert len(run.op("session.kill", session_id="main", force=True)["killed"]) == 2


def test_time_out_leaves_the_command_running_and_says_so(run: NodeRun) -> None:
    """N3: a command that chats all the time ends the wait on the wall clock."""
    began = time.monotonic()
    ran = run.sh("while :; do echo chat; sleep 0.05; done", timeout_s=1.5)
    assert time.monotonic() - began > 1.4
    assert ran["timed_out"]
    assert ran["job"]["state"] == "running"
    assert ran["text"].startswith("chat\n")
    assert run.send("session.run", {"session_id": "main", "command": "true"}).body["code"] == "session_busy"
    run.op("session.kill", session_id="main", force=False)
    assert run.op("session.status", session_id="main")["job"]["state"] == "killed"
    assert run.sh("echo alive")["text"] == "alive\n"


def test_ten_megabytes_on_both_streams_arrive_whole(run: NodeRun) -> None:
    """N1: 10 MB on stdout and on stderr at once. N2: the exit after megabytes of output is seen."""
    command = "(head -c 10000000 /dev/zero | tr '\\0' Q & head -c 10000000 /dev/zero | tr '\\0' Z >&2; wait)"
    ran = run.sh(command, timeout_s=100)
    assert ran["code"] == 0
    assert ran["output"]["omitted"] > 0
    log = run.log("main")
    assert (log.count(b"Q"), log.count(b"Z")) == (10_000_000, 10_000_000)


def test_one_huge_line_keeps_head_and_tail_and_states_the_gap(run: NodeRun) -> None:
    """T6: a line without newline far over every limit; the answer stays small and says what was left out."""
    ran = run.sh("head -c 60000000 /dev/zero | tr '\\0' x; printf END", timeout_s=110)
    piece = ran["output"]
    data = piece_bytes(piece)
    assert len(data) <= 192 * 1024
    assert data.startswith(b"xxx")
    assert data.endswith(b"xEND")
    assert piece["omitted"] == 60_000_003 - len(data)


def test_raw_bytes_survive(run: NodeRun) -> None:
    """T2: random bytes as output arrive as they were; a name with the byte 0xFF is listed."""
    run.sh("head -c 4096 /dev/urandom > data.bin; touch $'bad\\xffname'")
    run.sh("stty -opost; cat data.bin; stty opost", session=None)
    raw = run.log("main")
    digest = run.sh("sha256sum < data.bin")["text"].split()[0]
    listed = run.op("file.list", path=".")["entries"]
    assert [entry["name"] for entry in listed] == ["bad\ufffdname", "data.bin"]
    assert listed[0]["name_base64"]
    data = piece_bytes({"head": run.op("file.read", path="data.bin", offset=0, max_bytes=5000)["data"], "tail": ""})
    assert data in raw
    assert len(digest) == 64


def test_a_waiting_prompt_is_reported_and_answered(run: NodeRun) -> None:
    """N4: `read -p` doesn't hang the run; it is reported as waiting, and the answer reaches it."""
    ran = run.sh("read -p 'ok? ' answer; echo got $answer", timeout_s=60)
    assert (ran["waiting_for_input"], ran["timed_out"], ran["job"]["state"]) == (True, False, "running")
    entered = run.op("session.input", session_id="main", text="yes", press_enter=True)
    assert entered["was_waiting"]
    wait_until(lambda: run.op("session.idle", session_id="main")["idle"])
    assert b"got yes" in run.log("main")


def _type(run: NodeRun, text: str, *, enter: bool = True) -> Any:
    return run.send("session.input", {"session_id": "main", "text": text, "press_enter": enter})


def test_many_lines_are_typed_as_fast_as_they_are_read(run: NodeRun) -> None:
    """More than a terminal takes at once, into a program that is slow in between."""
    lines = "\n".join(f"{number:06d}" + "x" * 193 for number in range(500))
    run.sh("sleep 1; cat > typed", wait=False)
    assert _type(run, lines).status == 200
    assert _type(run, "\x04", enter=False).status == 200
    wait_until(lambda: run.op("session.idle", session_id="main")["idle"])
    assert run.sh("cat typed")["text"] == lines + "\n"


def test_a_line_that_a_terminal_would_cut_is_refused_before_it_is_typed(run: NodeRun) -> None:
    run.sh("cat > typed", wait=False)
    refused = _type(run, "ok\n" + "x" * 4096)
    assert (refused.status, refused.body["code"]) == (413, "path_too_large")
    assert "4095 bytes" in str(refused.body["message"])
    assert _type(run, "y" * 3000, enter=False).status == 200
    assert _type(run, "y" * 1096).status == 413
    assert _type(run, "y" * 1095).status == 200
    _type(run, "\x04", enter=False)
    wait_until(lambda: run.op("session.idle", session_id="main")["idle"])
    assert run.sh("tr -d '\\n' < typed | wc -c; tr -d 'y\\n' < typed")["text"] == "4095\n"


def test_what_is_not_read_is_told_with_how_much_was_typed(run: NodeRun) -> None:
    run.sh("sleep 60", wait=False)
    refused = _type(run, ("x" * 99 + "\n") * 2000)
    assert (refused.status, refused.body["code"]) == (409, "session_busy")
    assert "of 200001 bytes were typed, then nothing read on for 5 s" in str(refused.body["message"])
    run.op("session.kill", session_id="main", force=True)
    assert run.sh("read -t 0.5 line; echo [$line]")["text"].splitlines()[-1] == "[]"


def test_what_is_too_much_for_a_command_that_ends_is_told(run: NodeRun) -> None:
    run.sh("sleep 1; head -n 1", wait=False)
    refused = _type(run, ("x" * 99 + "\n") * 2000)
    assert "bytes were typed, then the command ended" in str(refused.body["message"])
    assert run.sh("echo on")["text"] == "on\n"


def test_typing_ends_where_another_command_begins(run: NodeRun) -> None:
    """Else the rest of a long text would be the next command's input."""
    run.sh("true")
    told: list[Any] = []
    typing = threading.Thread(target=lambda: told.append(_type(run, "stale line of a long text\n" * 6000)))
    typing.start()
    time.sleep(1)
    assert run.sh("read -t 0.5 line; echo [$line]")["text"].splitlines()[-1] == "[]"
    typing.join(60)
    assert told[0].status == 409
    assert "then another command began" in str(told[0].body["message"])


def test_a_new_shell_that_starts_elsewhere_than_was_told_says_so(run: NodeRun) -> None:
    run.sh("mkdir d; cd d")
    ended = run.sh("rmdir ../d; exit 3")
    assert (ended["shell_ended"], ended["shell_cwd"]) == (True, "/workspace/d")
    ran = run.sh("pwd")
    assert (ran["text"], ran["shell_replaced"], ran["shell_cwd"]) == ("/workspace\n", True, "/workspace")
    assert "shell_replaced" not in run.sh("true")


def test_control_s_does_not_stop_the_terminal(run: NodeRun) -> None:
    run.sh("read -r line; echo heard", wait=False)
    _type(run, "\x13")
    wait_until(lambda: run.op("session.idle", session_id="main")["idle"])
    assert run.log("main").endswith(b"heard\r\n")


@pytest.mark.parametrize(
    "command",
    [
        "git init -q . && git -c user.name=a -c user.email=a@b commit --allow-empty",
        "seq 5 > short; less short",
        "git -c user.name=a -c user.email=a@b log --paginate || true; git help -a | tail -1",
        "$EDITOR nothing",
    ],
)
def test_pagers_and_editors_do_not_hang(run: NodeRun, command: str) -> None:
    """N4: pagers and editors are neutralised."""
    ran = run.sh(command, timeout_s=60)
    assert ran["job"]["state"] == "exited"


def test_a_pager_on_a_long_file_is_reported_as_waiting(run: NodeRun) -> None:
    """N4: `less FILE` that does open is a waiting prompt, and `q` ends it."""
    ran = run.sh("seq 5000 > long; less long", timeout_s=60)
    assert ran["waiting_for_input"]
    run.op("session.input", session_id="main", text="q", press_enter=False)
    wait_until(lambda: run.op("session.idle", session_id="main")["idle"])


def test_typed_ahead_text_does_not_reach_the_next_command(run: NodeRun) -> None:
    run.sh("true")
    run.op("session.input", session_id="main", text="stale", press_enter=True)
    ran = run.sh('read -t 0.5 line; echo "[$line]"')
    assert ran["text"].splitlines()[-1] == "[]"


def test_a_program_that_asks_forever_can_be_killed(run: NodeRun) -> None:
    """N5: time-outs in a row on a job, then kill_session_processes: nothing of it is left running."""
    run.op("session.create", session_id="train", cwd="/workspace", cols=80, rows=24)
    started = run.sh("trap '' TERM; sleep 600 & sleep 601", session="train", timeout_s=1)
    assert started["timed_out"]
    for _try in range(2):
        assert run.send("session.run", {"session_id": "train", "command": "true"}).body["code"] == "session_busy"
    killed = run.op("session.kill", session_id="train", force=False)
    assert len(killed["killed"]) == 2
    assert killed["failed"] == []
    assert run.op("session.status", session_id="train")["pids"] == []


def test_a_loop_in_the_shell_itself_is_interrupted(run: NodeRun) -> None:
    assert run.sh("while :; do :; done", timeout_s=1)["timed_out"]
    run.op("session.kill", session_id="main", force=False)
    assert run.sh("echo alive")["text"] == "alive\n"


def test_closing_a_session_leaves_no_orphan(run: NodeRun) -> None:
    """R7: the whole group is gone within ten seconds, however it forked."""
    run.op("session.create", session_id="job", cwd="/workspace", cols=80, rows=24)
    mark = f"{run.name}-orphan"
    sleeps = f"(exec -a {mark} sleep 700) & (exec -a {mark} sleep 701); true"
    run.sh(f"(trap '' TERM HUP; setsid bash -c '{sleeps}' &) ; (exec -a {mark} sleep 702) & true", session="job")
    wait_until(lambda: len(run.op("session.status", session_id="job")["pids"]) >= 4)
    began = time.monotonic()
    run.op("session.close", session_id="job")
    assert time.monotonic() - began < 100  # the sleeps take 700
    assert mark.encode() not in command_lines()
    assert run.send("session.read", {"session_id": "job"}).body["code"] == "no_such_session"


def test_output_is_read_by_offset_by_time_and_from_the_mark(run: NodeRun) -> None:
    first = run.sh("echo first")["output"]["next_offset"]
    time.sleep(5.5)
    run.sh("echo second")
    since = run.op("session.read", session_id="main", since_offset=first, tail_bytes=100)
    recent = run.op("session.recent", session_id="main", seconds=5)
    run.op("session.clear", session_id="main")
    marked = run.op("session.read", session_id="main", since_offset=None, tail_bytes=1000)
    assert piece_bytes(since["output"]) == b"second\r\n"
    assert piece_bytes(recent["output"]) == b"second\r\n"
    assert piece_bytes(marked["output"]) == b""
    assert run.log("main") == b"first\r\nsecond\r\n"


def test_sessions_are_named_by_order_and_run_side_by_side(run: NodeRun) -> None:
    names = [
        run.op("session.create", session_id=None, cwd="/workspace", cols=80, rows=24)["session"]["id"] for _ in "ab"
    ]
    assert names == ["s1", "s2"]
    run.sh("sleep 300", session="s1", wait=False)
    assert run.sh("echo other", session="s2")["text"] == "other\n"
    again = run.send("session.create", {"session_id": "s1"})
    assert (again.status, again.body["code"]) == (409, "session_exists")
    assert run.op("session.close_all")["count"] == 2


def test_long_commands_of_many_sessions_are_listed_by_their_beginnings(run: NodeRun) -> None:
    """Whole they would be more than one answer can hold, and that answer would be kept in the journal as well."""
    for number in range(11):
        run.op("session.create", session_id=f"s{number}")
        run.sh(": " + "\u00e9" * 130_000, session=f"s{number}")
    listed = run.op("session.list")["sessions"]
    assert [one["job"]["command"] for one in listed] == [": " + "\u00e9" * 295 + "..."] * 11
    assert run.sh("echo on", session="s3")["text"] == "on\n"


def test_watch_tells_output_ends_and_closings(run: NodeRun) -> None:
    cursor = run.link.request("GET", "/v1/watch?after=0&wait_s=0").body["cursor"]
    run.sh("echo seen", session=None)
    run.op("session.close", session_id="main")
    changes = run.link.request("GET", f"/v1/watch?after={cursor}&wait_s=5").body["changes"]
    mine = [change for change in changes if change["run"] == run.name]  # type: ignore[union-attr, index, call-overload]  # JSON
    assert [change["kind"] for change in mine] == ["output", "job_ended", "session_closed"]


def test_freezing_stops_the_work_and_thawing_continues_it(run: NodeRun) -> None:
    run.sh("for i in $(seq 100000); do echo $i >> count; sleep 0.02; done", wait=False)
    wait_until(lambda: run.send("file.stat", {"path": "count"}).status == 200)
    run.post("freeze")
    sizes = []
    for _look in range(2):
        sizes.append(run.op("file.stat", path="count")["size"])
        time.sleep(0.3)
    run.post("thaw")
    assert sizes[0] == sizes[1]
    wait_until(lambda: run.op("file.stat", path="count")["size"] > sizes[0])
    assert run.op("session.status", session_id="main")["job"]["state"] == "running"
