"""Room: portal.nodes. Where the collector hands over what it sees; the composition root registers who wants it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class TerminalBytes:
    """Raw output of one session: `data` begins at byte `offset` of its log."""

    run: str
    node: int
    session: str
    offset: int
    data: bytes
    at: datetime


@dataclass(frozen=True)
class Change:
    """Something that happened on a node. `kind` is `job_ended`, `session_closed`, `node_lost`, `node_back` or another
    that gymd names; `run` is empty for what concerns the whole node.
    """

    kind: str
    node: int
    run: str
    session: str
    at: datetime


@dataclass(frozen=True)
class Quiet:
    """One session whose output paused."""

    run: str
    session: str
    at: datetime


TerminalSink = Callable[[TerminalBytes], None]
QuietSink = Callable[[Quiet], None]
ChangeSink = Callable[[Change], None]
StoredEnd = Callable[[str, str], int]

_terminal: list[TerminalSink] = []
_quiet: list[QuietSink] = []
_change: list[ChangeSink] = []
_ends: list[StoredEnd] = []


def register(
    *,
    on_terminal: TerminalSink | None = None,
    on_quiet: QuietSink | None = None,
    on_change: ChangeSink | None = None,
    stored_end: StoredEnd | None = None,
) -> None:
    """Called once at start by portal/apps.py. A sink is called in the collector's threads and must be quick; one that
    raises is called again with the same thing. `on_quiet` is told of a session after whose last bytes nothing came for
    a moment, so that whoever keeps an unclear end back lets it go. `stored_end(run, session)` tells up to which byte of
    a session's log somebody has it, so that a restarted collector goes on from there.
    """
    if on_terminal is not None:
        _terminal.append(on_terminal)
    if on_quiet is not None:
        _quiet.append(on_quiet)
    if on_change is not None:
        _change.append(on_change)
    if stored_end is not None:
        _ends.append(stored_end)


def terminal_put(piece: TerminalBytes) -> None:
    """Hand terminal bytes to every sink, in the order of registration."""
    for sink in _terminal:
        sink(piece)


def quiet_put(quiet: Quiet) -> None:
    """Tell every sink that a session paused, in the order of registration."""
    for sink in _quiet:
        sink(quiet)


def change_put(change: Change) -> None:
    """Hand a change to every sink, in the order of registration."""
    for sink in _change:
        sink(change)


def terminal_end(run: str, session: str) -> int:
    """The byte up to which a session's log is stored; 0 where nobody stores it."""
    return max((end(run, session) for end in _ends), default=0)
