"""The fold: same events, same state; stored and read back."""

from decimal import Decimal

import pytest
from pydantic import ValidationError

from gymnode.observations import Outcome
from runs.agent.events import (
    ActionSent,
    Body,
    Call,
    EvaluationScored,
    Event,
    HintRevealed,
    Kind,
    MessageSent,
    Observed,
    Replied,
    ScoredBy,
    Usage,
    read_body,
)
from runs.agent.replay import AgentState, replay
from tests.pure.agent.memory import NOW, opened, played_out
from tests.pure.agent.models import scripted

STEPS = """
  - {say: a, calls: [{run_command: {command: ls}}, {list_sessions: {}}]}
  - {say: words}
  - {say: c, call: {finish: {}}}
"""


def folded(*bodies: tuple[Kind, Body]) -> AgentState:
    return replay(Event(n, NOW, kind, body.stored()) for n, (kind, body) in enumerate(bodies, start=1))


def test_the_fold_can_be_stored_at_any_event_and_taken_up_again():
    session = opened()
    played_out(scripted(STEPS), session)
    whole = replay(session.log)
    for point in range(len(session.log) + 1):
        half = AgentState.from_json(replay(session.log[:point]).to_json())
        assert replay(session.log, half) == whole
    assert whole.finished
    assert whole.steps == 3


def test_events_that_were_seen_change_nothing():
    session = opened()
    played_out(scripted(STEPS), session)
    assert replay([*session.log, *session.log]) == replay(session.log)


def test_unknown_kinds_and_fields_pass_through():
    later = Event(1, NOW, "dreamt", {"of": "sheep"})
    reply = Event(2, NOW, Kind.REPLIED, {**Replied(text="x").stored(), "mood": "calm"})
    state = replay([later, reply])
    assert (state.last_seq, state.messages[0].text) == (2, "x")
    assert read_body(later) is None


def test_a_body_of_the_wrong_shape_is_told():
    with pytest.raises(ValidationError):
        replay([Event(1, NOW, Kind.REPLIED, {"calls": 5})])


def test_pending_calls_know_their_place_after_storing():
    calls = (Call(id="a", name="eval"), Call(id="b", name="eval", index=1))
    sent = ActionSent(call_id="a", action_id="r.1.0", name="eval")
    state = folded((Kind.REPLIED, Replied(calls=calls)), (Kind.ACTION_SENT, sent))
    again = AgentState.from_json(state.to_json())
    assert [call.place for call in again.pending] == ["1.0", "1.1"]
    assert again.sent["a"] == sent
    seen = Observed(call_id="a", action_id="r.1.0", name="eval", outcome=Outcome.OK).stored()
    later = again.apply(Event(3, NOW, Kind.OBSERVED, seen))
    assert [call.id for call in later.pending] == ["b"]
    assert later.sent == {}


def test_scores_hints_and_messages_are_counted():
    def scored(score: str | None, left: int, *, by: ScoredBy = ScoredBy.AGENT, valid: bool = True) -> tuple[Kind, Body]:
        body = EvaluationScored(evaluation=1, ordinal=1, by=by, valid=valid, score=score, left=left)
        return Kind.EVALUATION_SCORED, body

    state = folded(
        scored("40.5", 2),
        scored("30", 1),
        scored(None, 0, valid=False),
        scored("41", 0, by=ScoredBy.FINAL),
        (Kind.HINT_REVEALED, HintRevealed(text="h", penalty=10)),
        (Kind.MESSAGE_SENT, MessageSent(text="go", by="alice")),
    )
    assert (state.evaluations_used, state.evaluations_left) == (3, 0)
    assert (state.best_score, state.best_seq, state.last_score) == (Decimal(41), 4, Decimal(41))
    assert (state.hint_viewed, state.assisted) == (True, True)
    assert state.messages[-1].text == "[message from alice] go"


def test_money_and_tokens_add_up_and_one_unpriced_call_makes_the_sum_unpriced():
    """R14"""
    priced = (Kind.REPLIED, Replied(usage=Usage(input=10, cached=5, output=3), usd=Decimal("0.25")))
    assert folded(priced, priced).usd == Decimal("0.50")
    assert folded(priced, priced).usage == Usage(input=20, cached=10, output=6)
    assert folded(priced, (Kind.REPLIED, Replied(usage=Usage(input=1)))).usd is None


def test_bodies_are_storable():
    """T1: NUL and lone surrogates, in keys too; NaN and infinities."""
    body = Observed(
        call_id="a",
        name="x",
        outcome=Outcome.OK,
        text="a\0b",
        observation={"k\0": ["\ud800", float("nan"), {"n": float("-inf")}]},
    )
    assert body.stored()["observation"] == {"k\u2400": ["\ufffd", "NaN", {"n": "-Infinity"}]}
    assert Observed.read(body.stored()).text == "a\u2400b"


def test_the_cursor_is_that_of_the_newest_observation_that_has_one():
    seen = Observed(call_id="", name="open_file", outcome=Outcome.OK, cursor={"path": "a", "line": 1})
    other = Observed(call_id="", name="list_files", outcome=Outcome.OK)
    assert folded((Kind.OBSERVED, seen), (Kind.OBSERVED, other)).cursor == {"path": "a", "line": 1}
