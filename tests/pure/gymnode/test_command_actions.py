"""Commands and sessions: what the model is told, for every way a command can go."""

import pytest

from gymnode.errors import EpochTooLow, NodeUnreachable, NoSuchRun, OutcomeUnknown, ProtocolMismatch
from gymnode.observations import Outcome
from gymnode.remote.refusals import Refusal


@pytest.fixture
def ran(gym, as_piece, as_job):
    def answer(output=b"hello\r\n", *, job=None, **more):
        gym.node.script["session.run"] = {
            "session_id": "main",
            "job": job or as_job(),
            "output": as_piece(output),
            **more,
        }
        return gym.call("run_command", '{"command":"echo hello"}')

    return answer


def test_ended_command_tells_exit_code_time_session_and_output(ran, gym):
    seen = ran()
    assert seen.outcome is Outcome.OK
    assert seen.message == "Exit code 0 after 0.42 s, session main, job 412.17.0."
    assert seen.text() == f"{seen.message}\nhello"
    assert (seen.exit_code, seen.next_offset, seen.total_bytes, seen.node) == (0, 7, 7, "n1")
    assert gym.node.sent[0]["args"] == {"session_id": None, "command": "echo hello", "wait": True, "timeout_s": 10}


def test_silent_command_says_that_nothing_was_printed(ran):
    assert ran(b"").message.endswith("No output.")


@pytest.mark.parametrize(("code", "said"), [(1, "Exit code 1 after"), (127, "not found"), (137, "out of memory")])
def test_bad_exit_code_is_a_failed_command(ran, as_job, code, said):
    seen = ran(job=as_job("exited", code))
    assert seen.outcome is Outcome.FAILED
    assert said in seen.message


def test_killed_command_has_failed_and_lost_one_is_broken(ran, as_job):
    assert ran(job=as_job("killed", None)).outcome is Outcome.FAILED
    seen = ran(job=as_job("lost", None))
    assert seen.outcome is Outcome.BROKEN
    assert "Outcome unknown" in seen.message


def test_time_out_says_that_the_command_keeps_running_and_how_to_go_on(ran, as_job):
    """N3"""
    seen = ran(job=as_job("running", None), timed_out=True)
    assert seen.outcome is Outcome.OK
    assert "Still running after 10 s" in seen.message
    assert "not stopped" in seen.message
    for move in ("since_offset=7", "until_session_idle=", "kill_session_processes"):
        assert move in seen.message


def test_prompt_is_reported_as_waiting_for_input(ran, as_job):
    """N4"""
    seen = ran(b"ok? ", job=as_job("running", None), waiting_for_input=True)
    assert "waiting for input" in seen.message
    assert "input_in_session" in seen.message
    assert seen.output == "ok? "


@pytest.mark.parametrize(("asked", "sent"), [("0", 1), ("-5", 1), ("0.2", 1), ("2.5", 2.5), ("120", 120), ("999", 120)])
def test_timeout_is_clamped_and_the_answer_says_so(gym, as_piece, as_job, asked, sent):
    gym.node.script["session.run"] = {"session_id": "main", "job": as_job(), "output": as_piece(b"")}
    seen = gym.call("run_command", f'{{"command":"a","timeout_s":{asked}}}')
    assert gym.node.sent[0]["args"]["timeout_s"] == sent
    assert gym.node.sent[0]["timeout_s"] > sent
    assert ("clamped" in seen.message) == (float(asked) != sent)


def test_command_that_is_not_waited_for(gym, as_piece, as_job):
    script = {"session_id": "train", "job": as_job("running", None), "output": as_piece(b"")}
    gym.node.script["session.run"] = script
    seen = gym.call("run_command", '{"command":"a","session_id":"train","wait_for_completion":false}')
    assert seen.message.startswith("Started in session train as job 412.17.0; it keeps running")


def test_action_sent_again_has_one_side_effect_and_the_same_answer(gym, as_piece, as_job):
    """N7"""
    gym.node.script["session.run"] = {"session_id": "main", "job": as_job(), "output": as_piece(b"x")}
    first = gym.call("run_command", '{"command":"a"}', action_id="412.9.0")
    again = gym.call("run_command", '{"command":"a"}', action_id="412.9.0", resend=True)
    assert gym.node.carried_out == 1
    assert again.body() == first.body()
    assert [sent["resend"] for sent in gym.node.sent] == [False, True]
    assert gym.node.sent[0]["epoch"] == 3
    assert gym.node.sent[0]["path"] == "/v1/runs/412/ops"


def test_reading_goes_under_ids_derived_from_the_action(gym, as_piece):
    gym.node.script["session.read"] = {"job": None, "output": as_piece(b"x")}
    gym.call("get_session_output", '{"session_id":"main"}', action_id="412.9.0", resend=True)
    assert (gym.node.sent[0]["action_id"], gym.node.sent[0]["resend"]) == ("412.9.0.r1", False)


def test_last_lines_and_everything_since_an_offset(gym, as_piece, as_job):
    text = b"".join(b"%d\r\n" % number for number in range(100))
    gym.node.script["session.read"] = {"job": as_job("running", None), "output": as_piece(text)}
    seen = gym.call("get_session_output", '{"session_id":"main","start_lines":3,"end_lines":1}')
    assert seen.output == "97\n98"
    assert "is running" in seen.message
    assert f"since_offset={len(text)}" in seen.message
    assert gym.call("get_session_output", '{"session_id":"main","since_offset":0}').output.startswith("0\n1\n")
    assert gym.call("get_session_output", '{"session_id":"m","start_lines":3,"end_lines":3}').outcome is Outcome.REFUSED


def test_long_output_says_how_to_read_on(gym, ran):
    gym.max_chars = 500
    seen = ran(b"".join(b"line %d\r\n" % number for number in range(1000)))
    assert 'Read it with get_session_output(session_id="main", since_offset=' in seen.output
    assert len(seen.output) < 700
    assert seen.omitted > 8000


@pytest.mark.parametrize(
    ("code", "move"),
    [
        ("no_such_session", "list_sessions"),
        ("session_busy", "kill_session_processes"),
        ("session_exists", "another name"),
        ("session_closed", "create_session"),
    ],
)
def test_refusals_of_the_node_are_failed_actions_with_a_next_move(gym, code, move):
    gym.node.script["session.run"] = Refusal(code, "session train: no")
    seen = gym.call("run_command", '{"command":"a"}')
    assert seen.outcome is Outcome.FAILED
    assert seen.message.startswith("session train: no. ")
    assert move in seen.message


def test_failure_of_the_machinery_is_broken(gym):
    gym.node.script["session.run"] = Refusal("broken", "the keeper ended")
    assert gym.call("run_command", '{"command":"a"}').outcome is Outcome.BROKEN


def test_lost_memory_of_the_node_is_broken_with_outcome_unknown(gym):
    gym.node.script["session.run"] = Refusal("outcome_unknown", "n1 was restarted")
    seen = gym.call("run_command", '{"command":"a"}')
    assert seen.outcome is Outcome.BROKEN
    assert "Outcome unknown" in seen.message
    assert issubclass(OutcomeUnknown, Exception)


@pytest.mark.parametrize(
    ("script", "raised"),
    [
        (Refusal("epoch_too_low", "9"), EpochTooLow),
        (Refusal("no_such_run", "9"), NoSuchRun),
        (NodeUnreachable("n1", "cut"), NodeUnreachable),
        ({"nonsense": 1}, ProtocolMismatch),
    ],
)
def test_what_only_the_engine_can_settle_is_raised(gym, script, raised):
    gym.node.script["session.run"] = script
    with pytest.raises(raised):
        gym.call("run_command", '{"command":"a"}')


def test_input_says_whether_the_job_was_waiting(gym, as_piece):
    gym.node.script["session.input"] = {"was_waiting": False, "output": as_piece(b"y\r\n")}
    seen = gym.call("input_in_session", '{"session_id":"main","input_text":"y"}')
    assert seen.was_waiting is False
    assert "was not waiting" in seen.message
    assert gym.node.sent[0]["args"] == {"session_id": "main", "text": "y", "press_enter": True}


def test_sessions_of_all_nodes_are_listed_with_job_output_time_children_and_gpus(two_nodes, as_job):
    session = {"id": "train", "state": "busy", "cwd": "/w", "job": as_job("running", None, command="python t.py")}
    more = {"last_output_at": 1767323045.0, "background_pids": [12, 13], "gpus": [0, 1]}
    for node in two_nodes.nodes.values():
        node.script["session.list"] = {"sessions": [{**session, **more}]}
    seen = two_nodes.call("list_sessions")
    assert [session.node for session in seen.sessions] == ["n1", "n2"]
    for part in ("train on n2: busy", "`python t.py`", "2026-01-02 03:04:05 UTC", "12, 13", "holds GPU 0, 1"):
        assert part in seen.output
    assert len(two_nodes.call("list_sessions", '{"node":"n2"}').sessions) == 1


def test_unknown_node_is_refused_with_the_names(two_nodes):
    seen = two_nodes.call("run_command", '{"command":"a","node":"n3"}')
    assert seen.outcome is Outcome.REFUSED
    assert "n1, n2" in seen.message


def test_status_idle_and_ends(gym, as_job):
    gym.node.script |= {
        "session.status": {"job": as_job("running", None), "pids": [{"pid": 7, "command": "sh", "state": "S"}]},
        "session.idle": {"idle": False, "job": as_job("running", None)},
        "session.clear": {},
        "session.close": {"ended": [7]},
        "session.close_all": {"count": 2},
        "session.kill": {"killed": [7], "failed": [8]},
        "session.create": {"session": {"id": "s1", "cwd": "/workspace", "state": "idle"}},
    }
    at = '{"session_id":"main"}'
    assert "7 S sh" in gym.call("get_session_status", at).text()
    assert 'until_session_idle="main"' in gym.call("check_session_idle", at).message
    assert gym.call("clear_session_buffer", at).outcome is Outcome.OK
    assert gym.call("close_session", at).ended == (7,)
    assert gym.call("close_all_sessions").count == 2
    killed = gym.call("kill_session_processes", at)
    assert (killed.outcome, killed.killed, killed.failed) == (Outcome.FAILED, (7,), (8,))
    assert gym.call("create_session").session.node == "n1"
