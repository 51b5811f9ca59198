"""Room: runs. Selectors of what is stored of a session's log, and of what is missing of it. They only read.

Pieces may overlap; nothing is given twice. A stretch that isn't stored is told wherever the log is shown or handed out:
no reader takes two ends for neighbours.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import F, Max, QuerySet, RowRange, Window
from django.db.models.functions import Coalesce, Length
from django.http import Http404
from django.utils.translation import gettext as _

from runs.database import connection_give_back
from runs.models.log import TerminalChunk
from runs.models.run import Run

SPAN_BYTES = 512 * 1024  # no piece is longer
PAGE = 32
TAIL_PAGE = 256
TAIL_BYTES = 64 * 1024
MOST_SESSIONS = 60
MAIN = "main"


@dataclass(frozen=True)
class SessionTail:
    """The end of a session's log: text from byte `start` to `end`."""

    name: str
    start: int
    end: int
    text: str = ""


def _pieces(run_id: int, session: str) -> QuerySet[Any]:
    pieces = TerminalChunk.objects.filter(run=run_id, session=session)
    return pieces.annotate(end=F("offset") + Length("data")).order_by("offset")


def terminal_end(run_id: int, session: str) -> int:
    """The offset up to which a session's log is stored."""
    last = TerminalChunk.objects.filter(run=run_id, session=session).order_by("-offset").first()
    if last is None:
        return 0
    near = _pieces(run_id, session).filter(offset__gt=last.offset - SPAN_BYTES)
    return int(near.aggregate(most=Max("end"))["most"])


def terminal_after(run_id: int, session: str, offset: int) -> Sequence[TerminalChunk]:
    """Stored pieces of a session's log that end beyond `offset`, in order, a few at a time."""
    pieces = _pieces(run_id, session)
    covering = pieces.filter(offset__lte=offset).last()
    if covering is None or covering.offset + len(covering.data) > offset:
        return list(pieces.filter(offset__gte=covering.offset if covering else 0)[:PAGE])
    # Rarely one piece lies within another: the earlier one may reach further.
    return list(pieces.filter(offset__gt=offset - SPAN_BYTES, end__gt=offset)[:PAGE])


def terminal_pieces(run_id: int, session: str, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
    """What is stored from `start` to `stop`, in order, each byte once, with its place."""
    while start < stop:
        chunks = terminal_after(run_id, session, start)
        if not chunks:
            return
        for chunk in chunks:
            if chunk.offset >= stop:
                return
            data = bytes(chunk.data)[max(0, start - chunk.offset) : stop - chunk.offset]
            if data:
                start = max(start, chunk.offset)
                yield start, data
                start += len(data)


def terminal_gaps(run_id: int, session: str, total: int) -> list[tuple[int, int]]:
    """The stretches `(from, to)` of the first `total` bytes that are not stored."""
    reached = Window(Max("end"), order_by="offset", frame=RowRange(end=-1))
    rows = _pieces(run_id, session).annotate(reached=Coalesce(reached, 0)).filter(offset__gt=F("reached"))
    gaps = [(low, min(high, total)) for low, high in rows.values_list("reached", "offset") if low < total]
    end = terminal_end(run_id, session)
    return gaps if end >= total else [*gaps, (end, total)]


def session_names(run: Run) -> list[str]:
    """Sessions with stored output, `main` first, then the first by the alphabet, MOST_SESSIONS in all: an agent
    may open hundreds. One short look into the index each, however long the logs.
    """
    chunks = TerminalChunk.objects.filter(run=run).order_by("session").values_list("session", flat=True)
    first = [MAIN] if chunks.filter(session=MAIN).exists() else []
    others: list[str] = []
    while len(first) + len(others) < MOST_SESSIONS:
        rest = chunks.filter(session__gt=others[-1]) if others else chunks
        name = rest.exclude(session=MAIN).first()
        if name is None:
            break
        others.append(name)
    return first + others


def terminal_sessions(run: Run) -> list[SessionTail]:
    """The run's sessions with the bounds of what a page shows of each; `main` first."""
    return [_tail(run, name, terminal_end(run.pk, name)) for name in session_names(run)]


def session_tail(run: Run, session: str, end: int | None) -> SessionTail:
    """The part of a session's log that ends at byte `end` (None: at its end). Raises Http404 for an unknown session."""
    if "\0" in session or not TerminalChunk.objects.filter(run=run, session=session).exists():
        raise Http404
    last = terminal_end(run.pk, session)
    return _tail(run, session, last if end is None else min(end, last))


def _tail(run: Run, name: str, end: int) -> SessionTail:
    """Back from `end` as far as a page's worth of stored bytes reaches; what is missing between them takes no room."""
    low, room = end, TAIL_BYTES
    for offset, upto in _backwards(run.pk, name, end):
        top = min(upto, low)
        if top - offset >= room:
            return SessionTail(name, top - room, end)
        room -= max(0, top - offset)
        low = min(low, offset)
    return SessionTail(name, 0, end)


def _backwards(run_id: int, session: str, below: int) -> Iterator[tuple[int, int]]:
    """Beginning and end of each piece that begins before `below`, the last first."""
    chunks = _pieces(run_id, session).order_by("-offset").values_list("offset", "end")
    while rows := list(chunks.filter(offset__lt=below)[:TAIL_PAGE]):
        yield from rows
        below = rows[-1][0]


def terminal_text(run: Run, tail: SessionTail) -> SessionTail:
    """The same tail with its text; bytes that are no UTF-8 become replacement characters, a stretch that isn't stored
    becomes a line that says how long it is.
    """
    text, part, at = "", bytearray(), tail.start
    for offset, data in [*terminal_pieces(run.pk, tail.name, tail.start, tail.end), (tail.end, b"")]:
        if offset > at:
            # The first sequence ends whatever the bytes before left open, so that it can't swallow the line.
            told = _("[… {count} bytes left out …]").format(count=offset - at)
            text += f"{part.decode('utf-8', 'replace')}\x1b[0m\n{told}\n"
            part.clear()
        part += data
        at = offset + len(data)
    return SessionTail(tail.name, tail.start, tail.end, text + part.decode("utf-8", "replace"))


@dataclass(frozen=True)
class RawLog:
    """A session's log as it is handed out: `missing` bytes of it are not stored, each stretch is a line of `parts`."""

    missing: int
    parts: Iterator[bytes]


def terminal_raw(run: Run, session: str) -> RawLog:
    """All stored bytes of a session, read as they are taken; no connection is held for a slow reader."""
    end = terminal_end(run.pk, session)
    missing = sum(high - low for low, high in terminal_gaps(run.pk, session, end))
    return RawLog(missing, _raw_parts(run.pk, session, end))


def _raw_parts(run_id: int, session: str, end: int) -> Iterator[bytes]:
    at = 0
    for offset, data in terminal_pieces(run_id, session, 0, end):
        connection_give_back()
        if offset > at:
            yield b"\n[... %d bytes left out ...]\n" % (offset - at)
        yield data
        at = offset + len(data)
