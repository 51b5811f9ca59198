"""The loop: phases, malformed replies, kills between phases, limits."""

import pytest

from gymnode.observations import Outcome
from runs.agent.events import Kind, MessageSent, Observed, Replied
from runs.agent.loop import ReActAgent
from runs.agent.protocols import AgentError, ChatMessage, Role, RunEnded, RunStatus, StopReason
from runs.agent.replay import AgentState, replay
from tests.pure.agent.memory import (
    NOW,
    SPEC,
    MemorySession,
    WorkerKilled,
    kinds,
    next_worker,
    opened,
    played_out,
    suspend_once,
)
from tests.pure.agent.models import ListedModel, said, scripted

RUN = ("run_command", '{"command": "ls"}')
FINISH = ("finish", "{}")
PLAY = """
  - say: look
    call: {run_command: {command: ls}}
  - say: two at once
    calls: [{run_command: {command: pwd}}, {list_sessions: {}}]
  - say: wait
    call: {sleep: {seconds: 5}}
  - say: only words
  - say: broken
    call: {run_command: '{"command":'}
  - say: done
    call: {finish: {}}
"""


def test_a_run_is_reply_intent_observation_until_finish():
    session = opened()
    assert played_out(ListedModel([said("look", RUN), said("done", FINISH)]), session) is StopReason.FINISH
    assert kinds(session) == ["task_given", "replied", "action_sent", "observed", "replied", "action_sent", "observed"]
    assert session.deltas == ["look", "done"]


def test_several_calls_of_one_reply_are_carried_out_in_order():
    session = opened()
    played_out(ListedModel([said("x", RUN, ("list_sessions", "{}"), FINISH)]), session)
    assert session.performed == ["r1.2.0", "r1.2.1", "r1.2.2"]


def test_a_reply_without_a_call_is_told_so():
    session = opened()
    model = ListedModel([said("I only talk"), said("done", FINISH)])
    played_out(model, session)
    told = Observed.read(session.log[2].body)
    assert (told.name, told.outcome, told.action_id) == ("null", Outcome.REFUSED, None)
    assert model.asked[1].messages[-1].role is Role.USER


@pytest.mark.parametrize("raw", ['{"a":', "null", "[]", "{} {}", '{"command": "ls"}"'])
def test_broken_arguments_are_answered_and_not_run(raw: str):
    """R12"""
    session = opened()
    model = ListedModel([said("x", ("run_command", raw)), said("done", FINISH)])
    played_out(model, session)
    told = Observed.read(session.log[2].body)
    assert told.outcome is Outcome.REFUSED
    assert told.action_id is None
    assert session.performed == ["r1.4.0"]
    assert model.asked[1].messages[-1].call_id == "c0"


def test_ten_faulty_replies_in_a_row_end_the_run():
    """R12"""
    session = opened()
    with pytest.raises(AgentError, match="10 replies in a row") as ended:
        _steps(ListedModel([said("x", ("run_command", "{"))] * 20), session, 20)
    assert (ended.value.code, ended.value.reason) == ("fault_streak", StopReason.AGENT_ERROR)
    assert replay(session.log).steps == 10
    with pytest.raises(AgentError):
        _steps(ListedModel([]), session, 1)


def test_one_good_call_ends_a_streak_of_faults():
    session = opened()
    bad, good = said("x", ("nothing", "{}"), ("run_command", "{")), said("y", ("nothing", "{}"), RUN)
    _steps(ListedModel([*[bad] * 9, good, *[bad] * 9]), session, 19)
    assert replay(session.log).faults_in_row == 9


def _steps(model: ListedModel, session: MemorySession, count: int) -> AgentState:
    state = replay(session.log)
    for _ in range(count):
        state = ReActAgent(SPEC, model).step(state, session)
    return state


def test_a_worker_killed_between_any_two_phases_changes_nothing():
    """R13: at every append the worker dies once; the trace equals the one of a worker that lived, nothing is done
    twice.
    """
    whole = opened(doings={"sleep": suspend_once()})
    played_out(scripted(PLAY), whole)
    for point in range(len(whole.log) - 1):
        session = opened(doings={"sleep": suspend_once()}, kill_before=point)
        model = scripted(PLAY)
        with pytest.raises(WorkerKilled):
            played_out(model, session)
        later = next_worker(session)
        assert played_out(model, later) is StopReason.FINISH
        assert later.log == whole.log
        assert len(set(later.performed)) == len(later.performed)


def test_the_request_after_a_kill_is_valid_for_the_provider():
    """R13: the kill came between call and result, and a person wrote a message meanwhile."""
    session = opened(kill_before=2)
    model = ListedModel([said("x", RUN, ("list_sessions", "{}")), said("done", FINISH)])
    with pytest.raises(WorkerKilled):
        played_out(model, session)
    later = next_worker(session)
    later.record(Kind.MESSAGE_SENT, MessageSent(text="keep going", by="alice"))
    played_out(model, later)
    assert _shape(model.asked[1].messages[2:]) == ["assistant c0 c1", "tool c0", "tool c1", "user"]


def _shape(messages: tuple[ChatMessage, ...]) -> list[str]:
    return [" ".join([m.role, *[call.id for call in m.calls], m.call_id]).strip() for m in messages]


def test_a_message_that_came_meanwhile_is_in_the_next_request():
    session = opened()
    model = ListedModel([said("x", RUN), said("done", FINISH)])
    state = ReActAgent(SPEC, model).step(replay(session.log), session)
    session.record(Kind.MESSAGE_SENT, MessageSent(text="hurry", by="bob"))
    session.record(Kind.REPLIED, Replied(text="meanwhile"))
    state = ReActAgent(SPEC, model).step(state.apply(session.log[-2]).apply(session.log[-1]), session)
    assert state.assisted
    assert state.last_seq == len(session.log)


def test_a_sleeping_run_goes_on_with_the_same_action():
    session = opened(doings={"sleep": suspend_once()})
    played_out(ListedModel([said("x", ("sleep", '{"seconds": 5}')), said("done", FINISH)]), session)
    assert kinds(session).count("action_sent") == 2


@pytest.mark.parametrize(
    ("left", "reason"),
    [
        (RunStatus(NOW, remaining_s=0), StopReason.DEADLINE),
        (RunStatus(NOW, steps_left=0), StopReason.STEP_LIMIT),
        (RunStatus(NOW, usd_left=0), StopReason.COST_LIMIT),
        (RunStatus(NOW, tokens_left=-5), StopReason.TOKEN_LIMIT),
    ],
)
def test_a_used_up_budget_ends_the_run_before_the_model_is_asked(left: RunStatus, reason: StopReason):
    session = opened(now=left)
    with pytest.raises(RunEnded) as ended:
        _steps(ListedModel([]), session, 1)
    assert ended.value.reason is reason


def test_replies_with_nul_and_lone_surrogates_are_survived():
    """T1: in thought, call id, name and arguments, nested and as a key."""
    session = opened()
    arguments = '{"a\\u0000": ["\\ud800", "\0"]}'
    nasty = said("a\0b\ud800c", ("run\0_command", arguments), ("run_command", '{"command": "x\\u0000y"}'))
    played_out(ListedModel([nasty, said("done", FINISH)]), session)
    assert "\0" not in str(session.log)
    assert "\ud800" not in str(session.log)
    assert Replied.read(session.log[1].body).text == "a\u2400b\ufffdc"
