"""Whatever a model writes as tool arguments: one answer for each call, stored and sent back in a form that all take."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymnode.actions.registry import ACTIONS
from gymnode.observations import Outcome
from runs.agent.events import Call, Kind, Observed, Replied
from runs.agent.loop import ReActAgent
from runs.agent.parsing import RawCall, native_calls
from runs.agent.protocols import Role, RunEnded
from runs.agent.replay import AgentState, replay
from tests.pure.agent.memory import SPEC, MemorySession, WorkerKilled, next_worker, opened
from tests.pure.agent.models import ListedModel, said

ANY_TEXT = st.text(st.characters(exclude_categories=[]))
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=8,
)
NAMED = st.dictionaries(st.sampled_from(["command", "path", "timeout_s", "content", "seconds", "thought"]), ANY_JSON)
WRITTEN = (ANY_JSON | NAMED).map(json.dumps)
BROKEN = ['{"a":', "null", "[]", '{"a": 1}{"b": 2}', '{"a": 1}"', "NaN", "{1: 2}", '{"command": 1e999}', "9" * 5000]
RAW = (
    ANY_TEXT | WRITTEN | st.sampled_from(BROKEN) | st.builds(lambda text, end: text[:end], WRITTEN, st.integers(0, 40))
)
NAMES = ANY_TEXT | st.sampled_from(sorted(ACTIONS))
RAW_CALL = st.builds(RawCall, ANY_TEXT, NAMES, RAW)


def reply_of(raw: list[RawCall]) -> Replied:
    return said("x").model_copy(update={"calls": native_calls(raw, "reply")})


def stepped(session: MemorySession, model: ListedModel) -> AgentState:
    """One turn from what is stored; an end is an answer too."""
    state = AgentState.from_json(replay(session.log).to_json())
    try:
        return ReActAgent(SPEC, model).step(state, session)
    except RunEnded:
        return replay(session.log)


def answers(session: MemorySession) -> list[Observed]:
    return [Observed.read(event.body) for event in session.log if event.kind == Kind.OBSERVED]


@given(raw=st.lists(RAW_CALL, min_size=1, max_size=5))
def test_any_calls_get_one_answer_each_in_their_order(raw):
    """R12: never a crash; what is not run is refused, and storing loses nothing that PostgreSQL would refuse."""
    session = opened()
    reply = reply_of(raw)
    stepped(session, ListedModel([reply]))
    seen = answers(session)
    assert [each.call_id for each in seen] == [call.id for call in reply.calls]
    for each in seen:
        assert (each.action_id is None) == (each.outcome is Outcome.REFUSED)
    for event in session.log:
        text = json.dumps(event.body, ensure_ascii=False, allow_nan=False)
        assert "\\u0000" not in text.replace("\\\\", "")  # a backslash somebody wrote is no escape
        text.encode()


@given(raw=st.lists(RAW_CALL, min_size=1, max_size=4), killed=st.integers(1, 8))
def test_every_later_request_pairs_every_call_with_one_result(raw, killed):
    """R13: whatever was called, and whichever append the worker died at."""
    session = opened(kill_before=killed)
    model = ListedModel([reply_of(raw)] * 4)
    for _ in range(4):
        try:
            stepped(session, model)
        except WorkerKilled:
            session = next_worker(session)
    assert len(model.asked) > 1 or replay(session.log).finished
    for request in model.asked:
        paired(request.messages)


def paired(messages: Any) -> None:
    """As providers demand it: results directly behind their reply, one for each call, ids unique."""
    waiting: list[str] = []
    for message in messages:
        if message.role is Role.TOOL:
            assert message.call_id == waiting.pop(0)
            continue
        assert not waiting
        waiting = [call.id for call in message.calls]
        assert len(set(waiting)) == len(waiting)
    assert not waiting


@pytest.mark.parametrize("name", sorted(ACTIONS))
def test_no_action_runs_on_broken_arguments(name):
    """R12: of all actions alike."""
    session = opened()
    for raw in BROKEN:
        session.act(Call(id="c", name=name, arguments=raw, index=0), sent=None)
    assert [(seen.outcome, seen.action_id) for seen in answers(session)] == [(Outcome.REFUSED, None)] * len(BROKEN)
    assert session.performed == []
