"""Room: gymnode. What comes back from an action: values only. May import rendering and sessions, nothing that acts.

Every field of a subclass has a default: a refused or failed action answers with the same type, and has little to say.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, JsonValue, field_serializer, field_validator

from gymnode.rendering import storable
from gymnode.sessions import Entry, Gpu, Hit, Job, Process, Session, Skipped


class Outcome(StrEnum):
    """Four words on purpose: policy, command and machinery fail for different reasons and at different cost."""

    OK = "ok"
    REFUSED = "refused"
    FAILED = "failed"
    BROKEN = "broken"


class FileCursor(BaseModel):
    """The file an agent has open: its window goes from `line` to `last` (1-based), `context` lines high at most."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    node: str | None
    path: str
    line: int
    last: int = 0
    context: int = 100


class Observation(BaseModel):
    """Base of all answers. Times are UTC; `message` tells the model what to do next.

    `body()` is what the event log stores (JSON without NUL, lone surrogates, NaN or infinity);
    `text()` is what the model reads: the message, then the content.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: ClassVar[str] = "observation"

    outcome: Outcome
    message: str
    observation_type: str = ""
    started_at: datetime
    finished_at: datetime
    node: str | None = None
    cursor: FileCursor | None = None

    def model_post_init(self, context: Any, /) -> None:
        """Name the type after the class when the maker didn't: the stored form must say what it is."""
        if not self.observation_type:
            object.__setattr__(self, "observation_type", type(self).kind)

    @field_validator("started_at", "finished_at")
    @classmethod
    def _aware(cls, value: datetime) -> datetime:
        if value.tzinfo is None:
            raise ValueError("times of observations are timezone-aware")
        return value.astimezone(UTC)

    @field_serializer("started_at", "finished_at")
    def _milliseconds(self, value: datetime) -> str:
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def content(self) -> str:
        """The part of the text below the message; empty when the message says it all."""
        return ""

    def text(self) -> str:
        """What the model reads."""
        content = self.content()
        text = f"{self.message}\n{content}" if content else self.message
        return str(storable(text))

    def body(self) -> Mapping[str, Any]:
        """What is stored: plain JSON that PostgreSQL accepts."""
        stored: Mapping[str, Any] = storable(self.model_dump(mode="json", exclude_none=True))
        return stored


class Refusal(Observation):
    """A call that was not carried out: what was wrong with it, and the schema that it should have fitted."""

    kind = "refusal"
    tool: str = ""
    problems: tuple[str, ...] = ()
    parameters: Mapping[str, JsonValue] | None = None

    def content(self) -> str:
        if self.parameters is None:
            return ""
        return f"Parameters of {self.tool}: {json.dumps(self.parameters, ensure_ascii=False)}"


class TextObservation(Observation):
    """Base of answers whose content is one text."""

    output: str = ""

    def content(self) -> str:
        return self.output


class OutputObservation(TextObservation):
    """Rendered output of a session. Offsets are bytes of its log; `omitted` bytes aren't in `output`."""

    kind = "session_output"
    session_id: str | None = None
    job: Job | None = None
    exit_code: int | None = None
    start_offset: int | None = None
    next_offset: int | None = None
    total_bytes: int | None = None
    omitted: int = 0


class CommandObservation(OutputObservation):
    """A command that ended, goes on, or waits for input."""

    kind = "command"
    timed_out: bool = False
    waiting_for_input: bool = False


class InputObservation(OutputObservation):
    """`was_waiting`: whether the foreground job was waiting for input when it came."""

    kind = "session_input"
    was_waiting: bool | None = None


class SessionObservation(Observation):
    """A session that was made."""

    kind = "session"
    session: Session | None = None


class SessionsObservation(TextObservation):
    """All sessions of the nodes asked."""

    kind = "sessions"
    sessions: tuple[Session, ...] = ()


class StatusObservation(TextObservation):
    """The job and the processes of one session."""

    kind = "session_status"
    session_id: str | None = None
    job: Job | None = None
    exit_code: int | None = None
    pids: tuple[Process, ...] = ()
    waiting_for_input: bool = False


class IdleObservation(Observation):
    """Whether a session has no foreground job; `job` is the running or the last one."""

    kind = "session_idle"
    session_id: str | None = None
    idle: bool | None = None
    job: Job | None = None


class EndedObservation(Observation):
    """Processes that were ended, or that outlived the attempt (`failed`); `count` sessions closed."""

    kind = "sessions_ended"
    session_id: str | None = None
    ended: tuple[int, ...] = ()
    killed: tuple[int, ...] = ()
    failed: tuple[int, ...] = ()
    count: int | None = None


class WindowObservation(TextObservation):
    """Lines `first_line` to `last_line` of `total_lines`, each with its number, in `output`."""

    kind = "file_window"
    path: str | None = None
    first_line: int | None = None
    last_line: int | None = None
    total_lines: int | None = None


class EditObservation(TextObservation):
    """A file that was made or changed; `output` is the unified diff."""

    kind = "file_edit"
    path: str | None = None
    created: bool | None = None
    size: int | None = None
    sha256: str | None = None
    total_lines: int | None = None


class SearchObservation(TextObservation):
    """Lines that hold a text; files that weren't searched are named."""

    kind = "search"
    hits: tuple[Hit, ...] = ()
    files_searched: int | None = None
    skipped: tuple[Skipped, ...] = ()
    truncated: bool = False


class PathsObservation(TextObservation):
    """Paths whose name fits."""

    kind = "paths"
    paths: tuple[str, ...] = ()
    truncated: bool = False


class ListingObservation(TextObservation):
    """One page of a folder."""

    kind = "listing"
    path: str | None = None
    entries: tuple[Entry, ...] = ()
    page: int | None = None
    total: int | None = None


class FileInfoObservation(Observation):
    """Facts about a path. `encoding` and `lines` only for regular text files; `mode` as in `ls`: "0644"."""

    kind = "file_info"
    path: str | None = None
    path_kind: str | None = None
    size: int | None = None
    lines: int | None = None
    encoding: str | None = None
    mode: str | None = None
    modified_at: datetime | None = None


class NodeStatusObservation(TextObservation):
    """Load of a machine. `gpus` name the holders; sessions of other runs aren't told apart."""

    kind = "node_status"
    machine: Mapping[str, JsonValue] | None = None
    gpus: tuple[Gpu, ...] = ()


class ThoughtObservation(Observation):
    """A thought was taken note of."""

    kind = "thought"


class NullObservation(Observation):
    """A reply without a usable call; made by the engine."""

    kind = "null"


class EvaluationObservation(TextObservation):
    """A score. `score` is a decimal in a string (0 to 100), None when the outputs were invalid. Made by the engine."""

    kind = "evaluation"
    score: str | None = None
    valid: bool | None = None
    metrics: Mapping[str, JsonValue] = {}
    evaluations_left: int | None = None


class HintObservation(TextObservation):
    """The hint and what it costs. Made by the engine."""

    kind = "hint"
    cost: str | None = None


class Woke(StrEnum):
    """Why a sleep ended."""

    TIME = "time"
    SESSION_FINISHED = "session finished"
    DEADLINE_NEAR = "deadline near"


class SleepObservation(Observation):
    """Why and when a sleeping run woke. Made by the engine."""

    kind = "sleep"
    woke: Woke | None = None
    slept_s: float | None = None
    session_id: str | None = None


class FinishObservation(Observation):
    """The run is over; the last evaluation follows. Made by the engine."""

    kind = "finish"
    summary: str = ""
