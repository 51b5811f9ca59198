"""Room: runs.agent. The fold: events in, the agent's state out. Pure; the same events give the same state, on any
worker.

A run is resumed by reading the stored fold (`to_json`) and applying what came after it. Nothing else is remembered
anywhere.
"""

import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

from gymnode.observations import Outcome
from runs.agent.events import (
    ActionSent,
    Call,
    Compacted,
    EvaluationScored,
    Event,
    HintRevealed,
    MessageSent,
    Observed,
    Replied,
    ScoredBy,
    TaskGiven,
    Usage,
    read_body,
)
from runs.agent.protocols import Role

FINISH = "finish"


class Message(BaseModel):
    """One message of the conversation behind the task. `seq` is its event's."""

    model_config = ConfigDict(frozen=True)

    seq: int
    role: Role
    text: str
    calls: tuple[Call, ...] = ()
    call_id: str = ""
    name: str = ""


class AgentState(BaseModel):
    """What the loop needs to go on. Every field is a fold over events; changed only by `apply`.

    `calls_left`: calls of the newest reply that have no observation yet. `silent`: the newest reply had no call and
    hasn't been told so. `faults_in_row`: replies in a row of which no call became an action. `measured`: tokens of
    the context at the newest reply as the provider counted them (0 after a compaction), `measured_seq` that reply.
    `usd` None: some call had no known price.
    """

    model_config = ConfigDict(frozen=True)

    last_seq: int = 0
    given: TaskGiven | None = None
    messages: tuple[Message, ...] = ()
    summary: str = ""
    calls_left: tuple[Call, ...] = ()
    sent: Mapping[str, ActionSent] = {}
    silent: bool = False
    reply_seq: int = 0
    reply_judged: bool = False
    steps: int = 0
    faults_in_row: int = 0
    cursor: Mapping[str, Any] | None = None
    evaluations_used: int = 0
    evaluations_left: int | None = None
    best_score: Decimal | None = None
    best_seq: int | None = None
    last_score: Decimal | None = None
    hint_viewed: bool = False
    assisted: bool = False
    usage: Usage = Usage()
    usd: Decimal | None = Decimal(0)
    measured: int = 0
    measured_seq: int = 0
    compactions: int = 0
    compactions_in_row: int = 0
    finished: bool = False

    @property
    def pending(self) -> tuple[Call, ...]:
        """Calls that were replied and not yet observed, in order, each with the seq of its reply."""
        return tuple(call.model_copy(update={"reply_seq": self.reply_seq}) for call in self.calls_left)

    def apply(self, event: Event) -> Self:
        """The state after one more event. Unknown kinds only move `last_seq`; an event seen already changes nothing."""
        if event.seq <= self.last_seq:
            return self
        body = read_body(event)
        change = _CHANGES[type(body)](self, event.seq, body) if body is not None else {}
        return self.model_copy(update={**change, "last_seq": event.seq})

    def to_json(self) -> dict[str, Any]:
        """The stored form."""
        return self.model_dump(mode="json")

    @classmethod
    def from_json(cls, stored: Mapping[str, Any] | str) -> Self:
        """The stored form back. Raises pydantic's ValidationError; the engine then replays from the start."""
        return cls.model_validate(json.loads(stored) if isinstance(stored, str) else stored)


def replay(events: Iterable[Event], start: AgentState | None = None) -> AgentState:
    """Fold events onto a state."""
    state = start or AgentState()
    for event in events:
        state = state.apply(event)
    return state


def _task_given(state: AgentState, seq: int, body: TaskGiven) -> dict[str, Any]:
    return {"given": body}


def _replied(state: AgentState, seq: int, body: Replied) -> dict[str, Any]:
    message = Message(seq=seq, role=Role.ASSISTANT, text=body.text, calls=body.calls)
    return {
        "messages": (*state.messages, message),
        "calls_left": body.calls,
        "sent": {},
        "silent": not body.calls,
        "reply_seq": seq,
        "reply_judged": False,
        "steps": state.steps + 1,
        "usage": state.usage.plus(body.usage),
        "usd": _sum(state.usd, body.usd),
        "measured": 0 if body.usage.estimated else body.usage.total - body.usage.reasoning,
        "measured_seq": seq,
        "compactions_in_row": 0,
    }


def _action_sent(state: AgentState, seq: int, body: ActionSent) -> dict[str, Any]:
    return {"sent": {**state.sent, body.call_id: body}}


def _observed(state: AgentState, seq: int, body: Observed) -> dict[str, Any]:
    text = f"[{body.outcome}] {body.text or body.message}"
    mine = next((call for call in state.calls_left if call.id == body.call_id), None)
    role = Role.USER if mine is None else Role.TOOL
    change: dict[str, Any] = {
        "messages": (*state.messages, Message(seq=seq, role=role, text=text, call_id=body.call_id, name=body.name)),
        "calls_left": tuple(call for call in state.calls_left if call is not mine),
        "sent": {call_id: sent for call_id, sent in state.sent.items() if call_id != body.call_id},
        "silent": False,
        "cursor": state.cursor if body.cursor is None else body.cursor,
        "finished": state.finished or (body.name == FINISH and body.outcome is Outcome.OK),
    }
    if body.action_id is not None:
        return change | {"faults_in_row": 0, "reply_judged": True}
    if not state.reply_judged:
        return change | {"faults_in_row": state.faults_in_row + 1, "reply_judged": True}
    return change


def _evaluation_scored(state: AgentState, seq: int, body: EvaluationScored) -> dict[str, Any]:
    score = None if body.score is None or not body.valid else Decimal(body.score)
    better = score is not None and (state.best_score is None or score > state.best_score)
    own = body.by is ScoredBy.AGENT
    return {
        "evaluations_used": state.evaluations_used + own,
        "evaluations_left": body.left if own else state.evaluations_left,
        "last_score": state.last_score if score is None else score,
        "best_score": score if better else state.best_score,
        "best_seq": seq if better else state.best_seq,
    }


def _hint_revealed(state: AgentState, seq: int, body: HintRevealed) -> dict[str, Any]:
    return {"hint_viewed": True}


def _compacted(state: AgentState, seq: int, body: Compacted) -> dict[str, Any]:
    return {
        "summary": body.summary,
        "messages": tuple(capped(m, body.text_cap) for m in state.messages if m.seq >= body.kept_from_seq),
        "measured": 0,
        "compactions": state.compactions + 1,
        "compactions_in_row": state.compactions_in_row + 1,
        "usage": state.usage.plus(body.usage),
        "usd": _sum(state.usd, body.usd),
    }


def capped(message: Message, cap: int | None) -> Message:
    """The message with text and arguments cut to `cap` characters: head and tail, with a line between."""
    if cap is None:
        return message
    calls = tuple(
        call
        if len(call.arguments) <= cap
        else call.model_copy(update={"arguments": json.dumps({"cut": call.arguments[:cap]})})
        for call in message.calls
    )
    return message.model_copy(update={"text": _cut(message.text, cap), "calls": calls})


def _cut(text: str, cap: int) -> str:
    if len(text) <= cap:
        return text
    half = cap // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters left out to save context]\n{text[-half:]}"


def _message_sent(state: AgentState, seq: int, body: MessageSent) -> dict[str, Any]:
    text = f"[message from {body.by or 'a person who watches this run'}] {body.text}"
    return {"messages": (*state.messages, Message(seq=seq, role=Role.USER, text=text)), "assisted": True}


def _sum(total: Decimal | None, more: Decimal | None) -> Decimal | None:
    return None if total is None or more is None else total + more


_CHANGES: Mapping[type, Any] = {
    TaskGiven: _task_given,
    Replied: _replied,
    ActionSent: _action_sent,
    Observed: _observed,
    EvaluationScored: _evaluation_scored,
    HintRevealed: _hint_revealed,
    Compacted: _compacted,
    MessageSent: _message_sent,
}
