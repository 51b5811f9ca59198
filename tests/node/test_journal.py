"""The journal and the fence: nothing runs twice, nobody from yesterday acts, what is not known is said."""

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from gymnode.errors import NodeUnreachable
from gymnode.remote.journal import Journal
from gymnode.transport.local import LocalLink
from tests.node.machines import (
    NodeRun,
    command_lines,
    gymd_end,
    local_link,
    open_folder,
    wait_until,
)

ADD = {"session_id": None, "command": "echo once >> effect", "wait": True, "timeout_s": 10}


@pytest.fixture
def folder() -> Iterator[Path]:
    """An open folder of the test's own."""
    made = open_folder()
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture
def own_link(folder: Path) -> Iterator[LocalLink]:
    """A gymd of the test's own, to be killed."""
    link = local_link(folder)
    yield link
    gymd_end(link)


def test_the_same_action_id_runs_once_and_gets_the_stored_result(run: NodeRun) -> None:
    """N7: the reply is lost and the action sent again: one side effect."""
    first = run.send("session.run", ADD, action="a.7.0")
    again = run.send("session.run", ADD, action="a.7.0", resend=True)
    assert again.body == first.body
    assert run.sh("cat effect")["text"] == "once\n"


def test_an_action_under_way_is_waited_for_not_run_again(run: NodeRun) -> None:
    """N7: the second sending arrives while the first still runs."""
    slow = {**ADD, "command": "sleep 1; echo once >> effect"}
    replies = []
    threads = [
        threading.Thread(target=lambda: replies.append(run.send("session.run", slow, action="a.8.0"))) for _ in "ab"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert replies[0].body == replies[1].body
    assert run.sh("cat effect")["text"] == "once\n"


def test_a_lower_epoch_is_refused_everywhere(run: NodeRun) -> None:
    run.epoch = 5
    run.post("open")
    for verb, body in (
        ("ops", {"action_id": "x.1.0", "op": "session.list"}),
        ("open", {}),
        ("close", {}),
        ("kill", {}),
    ):
        path = f"/v1/runs/{run.name}/{verb}"
        reply = run.link.request("POST", path, {"epoch": 4, **body})
        assert (reply.status, reply.body["code"]) == (409, "epoch_too_low")


def test_a_resent_action_that_the_node_never_saw_is_unknown_or_runs(run: NodeRun) -> None:
    """Without an earlier entry the journal may be a new one; with one, the action surely never ran."""
    unknown = run.send("session.run", ADD, action="r.5.0", resend=True)
    assert (unknown.status, unknown.body["code"]) == (410, "outcome_unknown")
    run.send("session.run", ADD, action="r.6.0")
    assert run.send("session.run", ADD, action="r.7.0", resend=True).status == 200
    assert run.sh("cat effect")["text"] == "once\nonce\n"


def test_killed_gymd_says_lost_and_unknown_never_a_wrong_result(own_link: LocalLink) -> None:
    run = NodeRun(own_link)
    done = run.send("session.run", ADD, action="k.1.0")
    mark = f"{run.name}-command"
    command = f"(exec -a {mark} sleep 30); echo never"
    waiting = threading.Thread(target=lambda: _send_quietly(run, command, "k.2.0"))
    waiting.start()
    wait_until(lambda: mark.encode() in command_lines())
    os.kill(int(str(own_link.request("GET", "/v1/hello").body["pid"])), signal.SIGKILL)
    waiting.join(60)
    assert run.post("open")["level"]
    assert run.send("session.run", ADD, action="k.1.0", resend=True).body == done.body
    slow = {**ADD, "command": command}
    assert run.send("session.run", slow, action="k.2.0", resend=True).body["code"] == "outcome_unknown"
    listed = run.op("session.list")["sessions"][0]
    assert (listed["state"], listed["job"]["state"]) == ("lost", "lost")
    assert run.sh("cat effect")["text"] == "once\n"
    assert mark.encode() not in command_lines()
    run.close()


@pytest.fixture
def tight_run(folder: Path) -> Iterator[NodeRun]:
    """A run whose gymd keeps its own files on a disk of 3 MB."""
    home = folder / "gymd"
    home.mkdir(mode=0o700)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "gymd", home], check=False)
    if mounted.returncode != 0:
        pytest.skip("a small disk can't be mounted here")
    link = local_link(folder)
    yield NodeRun(link)
    gymd_end(link)
    subprocess.run(["umount", "-l", home], check=True)


def _fill(run: NodeRun, folder: Path, session: str | None = None) -> str:
    """Fill the disk until not even the beginning of an action finds room; the first action id that is refused."""
    with suppress(OSError), (folder / "gymd" / "fill").open("wb", buffering=0) as stream:
        for size in (65536, 512, 1):
            with suppress(OSError):
                while stream.write(b"x" * size) == size:
                    pass
    padding = {**ADD, "session_id": session, "command": ": " + "x" * 100}
    for number in range(100, 900):
        if run.send("session.run", padding, action=f"a.{number}.0").status == 507:
            return f"a.{number}.0"
    raise AssertionError("the disk isn't full")


def test_a_full_disk_refuses_and_forgets_nothing(tight_run: NodeRun, folder: Path) -> None:
    """What was refused can be sent again, what was done stays done, also for the gymd after a killed one."""
    run = tight_run
    run.sh("true")
    refused = _fill(run, folder)
    assert run.send("session.run", ADD, action=refused).status == 507
    assert run.op("session.list")["sessions"][0]["state"] == "idle"
    (folder / "gymd" / "fill").unlink()
    first = run.send("session.run", ADD, action=refused)
    assert first.status == 200
    assert run.send("session.run", ADD, action=refused).body == first.body
    os.kill(int(str(run.link.request("GET", "/v1/hello").body["pid"])), signal.SIGKILL)
    run.epoch = 2
    run.post("open")
    assert run.send("session.run", ADD, action=refused, resend=True).body == first.body
    assert run.sh("cat effect")["text"] == "once\n"


def test_what_ends_while_the_disk_is_full_is_known_and_written_later(tight_run: NodeRun, folder: Path) -> None:
    run = tight_run
    slow = {**ADD, "command": "until [ -e go ]; do sleep 0.1; done; echo once >> effect"}
    run.op("session.create", session_id="other")
    replies: list[Any] = []
    waiting = threading.Thread(target=lambda: replies.append(run.send("session.run", slow, action="a.1.0")))
    waiting.start()
    wait_until(lambda: "busy" in [one["state"] for one in run.op("session.list")["sessions"]])
    _fill(run, folder, "other")
    Path(run.opened["real_root"], "go").touch()
    waiting.join()
    assert run.send("session.run", slow, action="a.1.0").body == replies[0].body
    (folder / "gymd" / "fill").unlink()
    run.sh("true", session="other")
    os.kill(int(str(run.link.request("GET", "/v1/hello").body["pid"])), signal.SIGKILL)
    run.post("open")
    assert run.send("session.run", slow, action="a.1.0", resend=True).body == replies[0].body
    assert run.sh("cat effect")["text"] == "once\n"


def test_a_torn_line_hides_nothing_that_follows_and_denies_nothing(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    done = b'{"done":"r.%d.0|op","answer":{"status":200,"body":{"n":%d}}}'
    lines = [b'{"begin":"r.1.0|op"}', done % (1, 1), b'{"begin":"r.2.0|op"}']
    torn = [b'{"done":"r.2.0|op","ans', b'{"begin":"r.3', done % (4, 4), b"\n\0\0\n", b'{"begin":"r.5']
    path.write_bytes(b"\n".join(lines) + b"\n" + b"".join(torn))
    journal = Journal(path)
    assert [journal.stored(f"r.{n}.0|op") is not None for n in (1, 2, 3, 4)] == [True, False, False, True]
    assert journal.is_unknown("r.2.0|op")
    assert not journal.covers("r.3.0|op")
    journal.begin("r.6.0|op")
    journal.finish("r.6.0|op", {"status": 200, "body": {}})
    assert journal.covers("r.7.0|op")
    assert Journal(path).stored("r.6.0|op") == {"status": 200, "body": {}}


def _send_quietly(run: NodeRun, command: str, action: str) -> None:
    try:
        run.send("session.run", {**ADD, "command": command, "timeout_s": 20}, action=action)
    except NodeUnreachable:
        return


def test_outputs_that_find_no_room_are_refused_as_a_whole_and_the_run_goes_on(tight_run: NodeRun, folder: Path) -> None:
    """No file is to blame for the node's disk, so none may count as missing."""
    run = tight_run
    run.sh("export KEPT=1; head -c 200000 /dev/zero > a; echo b > b")
    wanted = [{"path": "a", "max_bytes": 10**6}, {"path": "b", "max_bytes": 10}, {"path": "none", "max_bytes": 10}]
    body = {"epoch": run.epoch, "paths": wanted}
    _fill(run, folder)
    refused = run.link.request("POST", f"/v1/runs/{run.name}/outputs", body)
    assert (refused.status, refused.body["code"]) == (507, "storage_full")
    (folder / "gymd" / "fill").unlink()
    a, b, none = run.post("outputs", paths=wanted)["files"]
    assert (a["size"], b["size"], none["code"]) == (200_000, 2, "no_such_path")
    assert run.sh("echo $KEPT")["text"] == "1\n"
