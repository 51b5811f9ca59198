"""Room: runs. Where a feed's pieces come from: the database, read in threads of their own. Used by runs.live alone.

A piece covers `(after, upto]` of its stream: event numbers of a run, or byte offsets of a session's log. It is made
once and sent as it is to every viewer.
"""

import asyncio
import base64
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from django.core.serializers.json import DjangoJSONEncoder
from django.utils.translation import override

from portal.core.words import code_told
from runs import presenters
from runs.database import connection_give_back
from runs.models.log import Event
from runs.models.run import Run
from runs.selectors import events_after
from runs.terminal_log import terminal_after, terminal_end
from runs.wire import event_shape

T = TypeVar("T")
EVENTS_IN_PIECE = 200
PIECE_CHARS = 256 * 1024
TERMINAL_PIECE_BYTES = 64 * 1024
SHARED = "shared"
_readers = ThreadPoolExecutor(max_workers=8, thread_name_prefix="live")


@dataclass(frozen=True)
class Piece:
    """One message, ready to send. `recheck`: whoever gets it must be asked for permission first. A piece whose `after`
    equals its `upto` is fleeting: nobody misses it.
    """

    after: int
    upto: int
    text: str
    recheck: bool = False


class Source(Protocol):
    """A stream that can be read from any position, again and again."""

    async def end(self) -> int:
        """The position up to which the stream is stored now."""
        ...

    async def read(self, position: int) -> Sequence[Piece]:
        """Pieces after `position`, in order, without a gap; empty when there is nothing new."""
        ...

    async def refresh(self, position: int) -> Piece | None:
        """What changed though nothing new came; None when nothing did."""
        ...


async def in_thread(work: Callable[[], T]) -> T:
    """Run blocking database work beside the event loop; its connection goes back to the pool."""

    def wrapped() -> T:
        try:
            return work()
        finally:
            connection_give_back()

    return await asyncio.get_running_loop().run_in_executor(_readers, wrapped)


def message_text(body: dict[str, Any]) -> str:
    """A message as it goes over the wire."""
    return json.dumps(body, cls=DjangoJSONEncoder, separators=(",", ":"), ensure_ascii=False)


class EventSource:
    """The events of a run, with the markup of the steps they belong to and the run's head."""

    def __init__(self, run_id: int, language: str) -> None:
        self.run_id = run_id
        self._language = language
        self._shown: tuple[object, ...] = ()

    async def end(self) -> int:
        return await in_thread(lambda: _run(self.run_id).seq)

    async def read(self, position: int) -> Sequence[Piece]:
        return await in_thread(lambda: self._told(self._read, position))

    async def refresh(self, position: int) -> Piece | None:
        return await in_thread(lambda: self._told(self._refresh, position))

    def _told(self, look: Callable[[int], T], position: int) -> T:
        with override(self._language):
            return look(position)

    def _read(self, position: int) -> Sequence[Piece]:
        run = _run(self.run_id)
        events = _fitting(events_after(run, position, EVENTS_IN_PIECE))
        if not events:
            return []
        self._shown = _state(run)
        text = message_text(
            {
                "type": "events",
                "run": run.pk,
                "last": events[-1].seq,
                "events": [{**event_shape(event), "word": code_told(event.kind)} for event in events],
                "steps": presenters.steps_html(run, events),
                "head": presenters.run_head(run),
            }
        )
        return [Piece(events[0].seq - 1, events[-1].seq, text, any(event.kind == SHARED for event in events))]

    def _refresh(self, position: int) -> Piece | None:
        run = _run(self.run_id)
        if self._shown == _state(run):
            return None
        self._shown = _state(run)
        head = presenters.run_head(run)
        body = {"type": "events", "run": run.pk, "last": position, "events": [], "steps": [], "head": head}
        return Piece(position, position, message_text(body))


def _run(run_id: int) -> Run:
    return Run.objects.select_related("team", "config", "task_version__task__domain", "created_by").get(pk=run_id)


def _state(run: Run) -> tuple[object, ...]:
    """What of a run's head can change without an event."""
    return (run.status, run.waiting_reason, run.failure_code, run.score, run.best, run.clock_kind, run.ended_at)


def _fitting(events: Sequence[Event]) -> Sequence[Event]:
    """As many as make a message of moderate size; always at least one."""
    size = 0
    for count, event in enumerate(events):
        size += len(json.dumps(event.body))
        if size > PIECE_CHARS and count:
            return events[:count]
    return events


class TerminalSource:
    """The raw bytes of one session's log. Stored pieces may overlap; what is sent doesn't."""

    def __init__(self, run_id: int, session: str) -> None:
        self.run_id = run_id
        self.session = session

    async def end(self) -> int:
        return await in_thread(lambda: terminal_end(self.run_id, self.session))

    async def read(self, position: int) -> Sequence[Piece]:
        return await in_thread(lambda: self._read(position))

    async def refresh(self, position: int) -> Piece | None:
        return None

    def _read(self, position: int) -> Sequence[Piece]:
        pieces: list[Piece] = []
        size = 0
        for chunk in terminal_after(self.run_id, self.session, position):
            end = chunk.offset + len(chunk.data)
            if end <= position:
                continue
            # A gap is a stretch that is not stored (see terminal_log.py): the offset tells the viewer.
            start = max(position, chunk.offset)
            data = bytes(chunk.data)[start - chunk.offset :]
            pieces.append(Piece(position, end, self._text(start, data)))
            position, size = end, size + len(data)
            if size >= TERMINAL_PIECE_BYTES:
                break
        return pieces

    def _text(self, offset: int, data: bytes) -> str:
        encoded = base64.b64encode(data).decode()
        body = {"type": "terminal", "run": self.run_id, "session": self.session, "offset": offset, "data": encoded}
        return message_text(body)
