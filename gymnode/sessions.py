"""Room: gymnode. gymd's answers as typed values: sessions, jobs, processes, files, machines. Values only.

Unknown fields are passed over, so that a newer gymd of the same protocol can say more. Times are seconds of the node's
clock since 1970, UTC; durations are seconds; offsets and sizes are bytes.
"""

import base64
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from gymnode.rendering import Raw


def _from_base64(value: object) -> object:
    return base64.b64decode(value) if isinstance(value, str) else value


Base64 = Annotated[bytes, BeforeValidator(_from_base64)]


class Answer(BaseModel):
    """Base of all answers of gymd."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Piece(Answer):
    """A stretch of a session's log; `omitted` bytes between head and tail didn't travel."""

    head: Base64 = b""
    tail: Base64 = b""
    omitted: int = 0
    start_offset: int = 0
    next_offset: int = 0
    total_bytes: int = 0

    def raw(self) -> Raw:
        """The same for rendering."""
        return Raw(self.head, self.tail, self.omitted, self.start_offset)


class JobState(StrEnum):
    """How far a command is; `lost` means that the node forgot it."""

    RUNNING = "running"
    EXITED = "exited"
    KILLED = "killed"
    LOST = "lost"


class Job(Answer):
    """One command in a session. `exit_code` is None until it has exited."""

    id: str
    state: JobState
    exit_code: int | None = None
    command: str | None = None
    started_at: float | None = None
    ended_at: float | None = None
    duration_s: float | None = None


class SessionState(StrEnum):
    """`busy` means a foreground job; background children don't count."""

    IDLE = "idle"
    BUSY = "busy"
    CLOSED = "closed"
    LOST = "lost"


class Session(Answer):
    """A named shell on one node. `node` is filled in by the controller."""

    id: str
    state: SessionState = SessionState.IDLE
    cwd: str | None = None
    node: str | None = None
    job: Job | None = None
    last_output_at: float | None = None
    background_pids: tuple[int, ...] = ()
    gpus: tuple[int, ...] = ()
    total_bytes: int = 0


class Process(Answer):
    """A process of a session. `state` is the kernel's letter or word."""

    pid: int
    ppid: int | None = None
    command: str = ""
    state: str = ""


class Created(Answer):
    """Answer of session.create."""

    session: Session


class Listed(Answer):
    """Answer of session.list."""

    sessions: tuple[Session, ...] = ()


class Ran(Answer):
    """Answer of session.run. Of the shell: `shell_ended` with the command, `shell_replaced` before it; `shell_cwd` is
    where the next or the new one starts.
    """

    session_id: str
    job: Job
    timed_out: bool = False
    waiting_for_input: bool = False
    output: Piece = Piece()
    shell_ended: bool = False
    shell_replaced: bool = False
    shell_cwd: str = ""


class Entered(Answer):
    """Answer of session.input."""

    was_waiting: bool = False
    output: Piece = Piece()


class Read(Answer):
    """Answer of session.read and session.recent."""

    job: Job | None = None
    output: Piece = Piece()


class Status(Answer):
    """Answer of session.status."""

    job: Job | None = None
    pids: tuple[Process, ...] = ()
    waiting_for_input: bool = False


class Idle(Answer):
    """Answer of session.idle."""

    idle: bool
    job: Job | None = None


class Ended(Answer):
    """Answer of session.clear, close, close_all and kill: each fills its own fields."""

    ended: tuple[int, ...] = ()
    count: int = 0
    killed: tuple[int, ...] = ()
    failed: tuple[int, ...] = ()


class PathKind(StrEnum):
    """What stands at a path; links aren't followed for the question."""

    FILE = "file"
    FOLDER = "dir"
    LINK = "link"
    OTHER = "other"


class Stat(Answer):
    """Answer of file.stat."""

    path: str = ""
    kind: PathKind
    size: int
    mode: int
    mtime: float


class Content(Answer):
    """Answer of file.read. `size` is the whole file's; `masked` when secrets in it were made unreadable."""

    data: Base64
    size: int
    mode: int
    mtime: float = 0.0
    masked: bool = False


class Lines(Answer):
    """Answer of file.lines: lines `first` to `last` (`last < first`: none); `cut` when a size limit ended them."""

    data: Base64
    first: int
    last: int
    total_lines: int
    size: int = 0
    cut: bool = False
    encoding_guess: str = "utf-8"
    binary: bool = False


class Written(Answer):
    """Answer of file.write."""

    created: bool
    size: int
    sha256: str


class Entry(Answer):
    """One name in a folder. `name` has replacement characters where the bytes aren't UTF-8; `name_base64` has those."""

    name: str
    kind: PathKind
    size: int
    mtime: float
    name_base64: str | None = None


class Listing(Answer):
    """Answer of file.list: one page of `total` entries."""

    entries: tuple[Entry, ...] = ()
    total: int = 0


class Hit(Answer):
    """A line that holds the searched text."""

    path: str
    line: int
    text: str


class Skipped(Answer):
    """A file that wasn't searched, and why."""

    path: str
    why: str


class Found(Answer):
    """Answer of file.search."""

    hits: tuple[Hit, ...] = ()
    files_searched: int = 0
    skipped: tuple[Skipped, ...] = ()
    truncated: bool = False


class Paths(Answer):
    """Answer of file.find."""

    paths: tuple[str, ...] = ()
    truncated: bool = False


class GpuHolder(Answer):
    """A process that holds memory of a GPU."""

    run: str | None = None
    session: str | None = None
    pid: int | None = None


class Gpu(Answer):
    """One GPU. Utilisation in percent, memory in MiB."""

    index: int
    utilisation: float | None = None
    memory_used_mb: float | None = None
    memory_total_mb: float | None = None
    holders: tuple[GpuHolder, ...] = Field(default=())
