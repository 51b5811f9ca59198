"""Room: runs.agent. The two borders of the loop: `RunSession` (towards the engine) and `LanguageModel` (towards a
provider).

Errors, and who is to blame::

    AgentSignal                        not faults: the step ends here, the stored events say where
    ├── Suspended                      the run waits (sleep, evaluation, node lost); call `step` again when it may go on
    ├── LeaseLost                      another worker holds this run; stop at once, write nothing
    └── RunEnded(reason, message)      a limit, the agent's finish, or
        └── AgentError                 the model: a streak of malformed replies, a context that can't be made to fit
    ModelError                         the provider
    ├── RateLimited(retry_after_s)     wait and ask again; nobody's time
    ├── ProviderDown(retry_after_s)    wait and ask again; nobody's time
    ├── ContextOverflow                the request was too long: the loop compacts
    └── ModelRefused(code, message)    final, shown at once
        ├── WrongKey  ├── UnknownModel  ├── ContentRefused  └── AddressRefused
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Protocol

from runs.agent.events import ActionSent, Body, Call, Event, Kind, Replied, ToolOffer


class StopReason(StrEnum):
    """Why the agent stops. The engine has further reasons of its own."""

    FINISH = "finish"
    DEADLINE = "deadline"
    STEP_LIMIT = "step_limit"
    COST_LIMIT = "cost_limit"
    TOKEN_LIMIT = "token_limit"  # noqa: S105 - a word, not a secret
    AGENT_ERROR = "agent_error"


class AgentSignal(Exception):
    """Ends a step before its time without being a fault."""


class Suspended(AgentSignal):
    """The run waits. `reason` is the engine's word for it (sleep, evaluation, ...)."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the run waits: {reason}")
        self.reason = reason


class LeaseLost(AgentSignal):
    """A newer holder drives this run."""


class RunEnded(AgentSignal):
    """The run is over for the agent; the engine goes on with the final evaluation."""

    def __init__(self, reason: StopReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class AgentError(RunEnded):
    """The agent itself can't go on. `code` tells which way: `fault_streak` or `context_too_small`."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(StopReason.AGENT_ERROR, message)
        self.code = code


class ModelError(Exception):
    """Root of what a provider can do to us. The message may be shown to the run's owner; it holds no secret."""


class RateLimited(ModelError):
    """Too many requests. `retry_after_s` as the provider asked, or None."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ProviderDown(ModelError):
    """No connection, a time-out, a 5xx, a broken stream. Nothing of the reply was kept; asking again is right."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ContextOverflow(ModelError):
    """The provider says that the request doesn't fit its window."""


class ModelRefused(ModelError):
    """Final: asking again gives the same. `code` is stable; `facts` are what its sentence names."""

    def __init__(self, message: str, code: str = "request_refused", **facts: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.facts = facts


class WrongKey(ModelRefused):
    """The key is missing, wrong, without credit, not for this host, or holds what can't be sent."""

    def __init__(self, message: str, code: str = "wrong_key") -> None:
        super().__init__(message, code)


class UnknownModel(ModelRefused):
    """The provider has no such model or path."""

    def __init__(self, message: str, code: str = "unknown_model") -> None:
        super().__init__(message, code)


class ContentRefused(ModelRefused):
    """The provider's content filter said no."""

    def __init__(self, message: str, code: str = "content_refused") -> None:
        super().__init__(message, code)


class AddressRefused(ModelRefused):
    """The address can't be used: private, loopback, link-local, metadata; a redirect; a text that is no address."""

    def __init__(self, message: str, code: str = "address_refused", **facts: str) -> None:
        super().__init__(message, code, **facts)


class Role(StrEnum):
    """Roles of the neutral message form."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True)
class ChatMessage:
    """One message of a request, in no provider's form. `call_id` only of a tool's result, `calls` only of the
    assistant.

    `volatile` is the status at the end of the newest message: it changes with every request, so caching ends before it.
    """

    role: Role
    text: str
    calls: tuple[Call, ...] = ()
    call_id: str = ""
    name: str = ""
    volatile: str = ""

    @property
    def whole(self) -> str:
        """The text with the part that changes from request to request at its end."""
        return f"{self.text}\n\n{self.volatile}" if self.volatile else self.text


@dataclass(frozen=True)
class ModelRequest:
    """What the model is asked: every tool call is followed by its result. `tools` empty: text mode, or a summary."""

    messages: tuple[ChatMessage, ...]
    tools: tuple[ToolOffer, ...] = ()
    text_tools: bool = False


class LanguageModel(Protocol):
    """A provider behind one call. Thread-safe; holds no state of a run."""

    def complete(self, request: ModelRequest, on_delta: Callable[[str], None]) -> Replied:
        """One reply; `on_delta` gets the text as it comes (lossy, for viewers). Raises `ModelError`."""
        ...


class ModelClient(LanguageModel, Protocol):
    """A language model that holds connections."""

    def close(self) -> None:
        """Give them back."""
        ...


@dataclass(frozen=True)
class RunningJob:
    """A job under way in a session of the run."""

    session: str
    node: str
    command: str
    running_s: float


@dataclass(frozen=True)
class RunStatus:
    """What is left, from the engine's stored state (None: no such limit), and what lives on the nodes.

    `idle_sessions`: open sessions without a job, as `session on node`.
    """

    now: datetime
    remaining_s: float | None = None
    steps_left: int | None = None
    evaluations_left: int | None = None
    usd_left: Decimal | None = None
    tokens_left: int | None = None
    jobs: tuple[RunningJob, ...] = ()
    idle_sessions: tuple[str, ...] = ()


class RunSession(Protocol):
    """One run, held by this worker. Everything it writes is fenced by the run's epoch."""

    def status(self) -> RunStatus:
        """What is left and what runs, now."""
        ...

    def record(self, kind: Kind, body: Body) -> Event:
        """Append one event (`body.stored()`) and return it. Raises `LeaseLost`."""
        ...

    def act(self, call: Call, *, sent: ActionSent | None) -> Event:
        """Carry a call out and return its `observed` event. Appends `action_sent` first unless `sent` is given: then
        the intent is stored already and the action goes out again under the same id. A call that can't be parsed is
        answered, not sent. Raises `Suspended`, `LeaseLost`, `RunEnded`.
        """
        ...

    def events_after(self, seq: int) -> Sequence[Event]:
        """All events with a greater seq, in order: what `act` wrote beside its observation, and what others wrote
        meanwhile.
        """
        ...

    def delta(self, text: str) -> None:
        """Text of a reply that is being written, for viewers. Lossy, never stored."""
        ...
