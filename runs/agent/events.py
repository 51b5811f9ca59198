"""Room: runs.agent. The agent-visible events: closed set of kinds, one frozen body per kind. Values only.

An event is what happened, written once, never changed; the conversation is a fold over them (`replay.py`). Bodies
ignore fields they don't know, and kinds they don't know pass through: a newer release may have written them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field

from gymnode.observations import Outcome
from gymnode.rendering import storable


class Kind(StrEnum):
    """Kinds that the model sees or makes. Written only by the holder of the run's epoch (`message_sent`: by whoever
    sends it).
    """

    TASK_GIVEN = "task_given"
    REPLIED = "replied"
    ACTION_SENT = "action_sent"
    OBSERVED = "observed"
    EVALUATION_SCORED = "evaluation_scored"
    HINT_REVEALED = "hint_revealed"
    COMPACTED = "compacted"
    MESSAGE_SENT = "message_sent"


@dataclass(frozen=True)
class Event:
    """One row of the log. `seq` is gap-free per run, `at` is UTC."""

    seq: int
    at: datetime
    kind: str
    body: Mapping[str, Any]


class Body(BaseModel):
    """Base of all bodies. `stored()` is what goes into the log: JSON without NUL, lone surrogates, NaN or infinity."""

    model_config = ConfigDict(frozen=True, extra="ignore", ser_json_inf_nan="constants")

    def stored(self) -> Mapping[str, Any]:
        """Plain JSON that PostgreSQL takes."""
        clean: Mapping[str, Any] = storable(self.model_dump(mode="json"))
        return clean

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> Self:
        """The stored form back as a value. Raises pydantic's ValidationError for a body that isn't of this kind."""
        return cls.model_validate(body)


class ToolOffer(Body):
    """One tool as it is offered to the model: name, description, JSON schema of its parameters."""

    name: str
    description: str
    parameters: Mapping[str, Any]


class NodeBrief(Body):
    """One node of the lease, as the first prompt lists it. Memory in GB; `workspace` as the agent sees it."""

    name: str
    role: str = "main"
    cpus: int | None = None
    memory_gb: float | None = None
    gpus: int = 0
    gpu_memory_gb: float | None = None
    network: str = "none"
    workspace: str = "/workspace"
    labels: tuple[str, ...] = ()


class TaskGiven(Body):
    """The first event: all that stands before the conversation, in the order in which the model reads it."""

    system: str
    task: str
    task_id: str
    task_version: int
    engine_version: str
    prompt_version: str = ""
    tools: tuple[ToolOffer, ...] = ()
    nodes: tuple[NodeBrief, ...] = ()
    outputs: tuple[str, ...] = ()


class Call(Body):
    """One tool call of a reply. `arguments` is the raw text; `index` its place in the reply; `refused` why it is not
    even looked at, where that was seen when the reply was read; `reply_seq` is filled in by the fold.
    """

    id: str
    name: str
    arguments: str = "{}"
    index: int = 0
    refused: str = ""
    reply_seq: int = Field(default=0, exclude=True)

    @property
    def place(self) -> str:
        """`<seq of the reply>.<index>`: the same however often the call is carried out, so an action id can be made
        of it.
        """
        return f"{self.reply_seq}.{self.index}"


class Usage(Body):
    """Tokens of one model call. `written`, part of `input`, went into the provider's cache. `cached` is part of
    `input`, `reasoning` part of `output`. `estimated`: the provider sent no figures.
    """

    input: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0
    reasoning: int = 0
    estimated: bool = False

    def plus(self, other: "Usage") -> "Usage":
        """The sum of two."""
        return Usage(
            input=self.input + other.input,
            cached=self.cached + other.cached,
            written=self.written + other.written,
            output=self.output + other.output,
            reasoning=self.reasoning + other.reasoning,
            estimated=self.estimated or other.estimated,
        )

    @property
    def total(self) -> int:
        """What counts against a token limit."""
        return self.input + self.output


class Replied(Body):
    """One reply of the model, stored before anything acts on it. `usd` None: no price is known. `model` is the id as
    returned.
    """

    text: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    model: str = ""
    usage: Usage = Usage()
    usd: Decimal | None = None
    finish_reason: str = ""
    host: str = ""


class ActionSent(Body):
    """The intent, stored before the action is carried out: a resend has the same action id and runs nothing twice."""

    call_id: str
    action_id: str
    name: str
    arguments: Mapping[str, Any] = Field(default_factory=dict)
    node: str | None = None


class Observed(Body):
    """What came back for a call. `action_id` None: the call was malformed or not allowed and never became an action."""

    call_id: str
    action_id: str | None = None
    name: str
    outcome: Outcome
    message: str = ""
    text: str = ""
    observation: Mapping[str, Any] = Field(default_factory=dict)
    cursor: Mapping[str, Any] | None = None


class ScoredBy(StrEnum):
    """Who asked for an evaluation."""

    AGENT = "agent"
    FINAL = "final"


class EvaluationScored(Body):
    """A scored evaluation. `score` is a decimal text or None (invalid, or not told); `left` evaluations of the
    agent's own.
    """

    evaluation: int
    ordinal: int
    by: ScoredBy = ScoredBy.AGENT
    valid: bool = True
    score: str | None = None
    metrics: Mapping[str, Any] = Field(default_factory=dict)
    message: str = ""
    left: int = 0


class HintRevealed(Body):
    """The hint was shown; `penalty` points off each later evaluation."""

    text: str
    penalty: float = 0


class CompactedBy(StrEnum):
    """Who wrote the summary: the model, or the engine by cutting."""

    MODEL = "model"
    TRIM = "trim"


class Compacted(Body):
    """Messages before `kept_from_seq` gave way to `summary`; kept ones are cut to `text_cap` characters where it is
    given.

    The summary was written by a model call of its own: `usage` and `usd` are what all tries of it cost.
    """

    summary: str
    kept_from_seq: int
    tokens_before: int
    tokens_after: int
    by: CompactedBy = CompactedBy.MODEL
    text_cap: int | None = None
    usage: Usage = Usage()
    usd: Decimal | None = Decimal(0)


class MessageSent(Body):
    """A person's message to the agent. It marks the run as assisted. `person` is their row; no reader sees it."""

    text: str
    by: str = ""
    person: int | None = None


BODIES: Mapping[Kind, type[Body]] = {
    Kind.TASK_GIVEN: TaskGiven,
    Kind.REPLIED: Replied,
    Kind.ACTION_SENT: ActionSent,
    Kind.OBSERVED: Observed,
    Kind.EVALUATION_SCORED: EvaluationScored,
    Kind.HINT_REVEALED: HintRevealed,
    Kind.COMPACTED: Compacted,
    Kind.MESSAGE_SENT: MessageSent,
}


def read_body(event: Event) -> Body | None:
    """The typed body, or None for a kind that isn't agent-visible or not known here."""
    kind = next((kind for kind in Kind if kind == event.kind), None)
    return None if kind is None else BODIES[kind].read(event.body)
