"""Room: runs. Terminal bytes: masked and stored as they come from the collector, completed from the node before its
files are removed.

Pieces may overlap or come twice (the collector and the last pull both store); readers go by offsets. Of a session at
most `SESSION_BYTES` are kept, its first and its newest half; whatever isn't there is told by runs.terminal_log.
"""

import logging
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone
from pydantic import ValidationError

from gymnode.sessions import Session
from portal.core.secrets import VaultClosed
from runs import bell
from runs.environment import Environment, Place
from runs.models.log import TerminalChunk
from runs.services.masking import masks_for
from runs.terminal_log import SPAN_BYTES, terminal_gaps
from runs.terminal_masks import MaskedStream, byte_forms

PULL_BYTES = 192 * 1024
SESSION_BYTES = 256 * 1024 * 1024
RUN_BYTES = 1024 * 1024 * 1024  # of all sessions, when a run's logs are completed
PULLS = 3  # another look for what was lost in a race with the collector
MOST_STREAMS = 5000
UNMASKABLE = (VaultClosed, ValidationError)  # no vault here, or a config of another release: the key isn't known
log = logging.getLogger(__name__)
# The collector's streams that have something to mask, each used by the thread of its node.
_streams: OrderedDict[tuple[int, str], MaskedStream] = OrderedDict()


def terminal_take(*, run_id: int, session: str, offset: int, data: bytes, at: datetime) -> None:
    """Store one piece of a session's log as it comes, masked. What may begin a secret is kept back for `terminal_quiet`
    or the next piece. Without the vault nothing is stored.
    """
    try:
        masks = masks_for(run_id)
    except UNMASKABLE:
        log.error("run %s: output is not stored while its key can't be masked", run_id)
        return
    if masks is None:
        return
    forms = byte_forms(masks)
    if not forms:
        terminal_store(run_id=run_id, session=session, offset=offset, data=data, at=at)
        return
    stream = _streams.get((run_id, session))
    if stream is None or stream.forms != forms:
        if stream is not None:
            terminal_quiet(run_id=run_id, session=session, at=at)
        stream = _streams[run_id, session] = MaskedStream(forms, offset)
    stream.take(offset, data)
    _store_ready(stream, run_id, session, at)
    while len(_streams) > MOST_STREAMS:
        _streams.popitem(last=False)


def terminal_quiet(*, run_id: int, session: str, at: datetime) -> None:
    """Nothing followed for a moment: store what was kept back."""
    stream = _streams.get((run_id, session))
    if stream is not None:
        stream.let_go()
        _store_ready(stream, run_id, session, at)


def _store_ready(stream: MaskedStream, run_id: int, session: str, at: datetime) -> None:
    for offset, data in stream.ready():
        terminal_store(run_id=run_id, session=session, offset=offset, data=data, at=at)


def terminal_store(*, run_id: int, session: str, offset: int, data: bytes, at: datetime) -> None:
    """Store one masked piece, unless that very piece is there, and ring for the viewers of the session."""
    if not data:
        return
    TerminalChunk.objects.bulk_create(
        [TerminalChunk(run_id=run_id, session=session, offset=offset, data=data, at=at)], ignore_conflicts=True
    )
    behind = offset + len(data) - SESSION_BYTES // 2 - SPAN_BYTES
    if behind > SESSION_BYTES // 2:
        middle = TerminalChunk.objects.filter(run=run_id, session=session, offset__gte=SESSION_BYTES // 2)
        middle.filter(offset__lt=behind).delete()
    bell.ring_terminal(run_id, session)


def terminals_pull(environment: Environment, run_id: int) -> None:
    """Fetch what is missing of every session's log, as far as it is kept. Raises NodeError, RequestRefused."""
    try:
        masks = masks_for(run_id)
    except UNMASKABLE:
        log.error("run %s: output is not stored while its key can't be masked", run_id)
        return
    places = {place.name: place for place in environment.places}
    sessions = environment.sessions()
    most = min(SESSION_BYTES, RUN_BYTES // max(1, len(sessions)))
    forms = byte_forms(masks) if masks else ()
    for session in sessions:
        place = places[session.node or environment.places[0].name]
        pull = _Pull(environment, place, session, run_id, forms)
        for _ in range(PULLS):
            if not pull.complete(most):
                break


@dataclass(frozen=True)
class _Pull:
    """One session's log, fetched by stretches. Around each some more is read, so that secrets across its ends show."""

    environment: Environment
    place: Place
    session: Session
    run_id: int
    forms: tuple[bytes, ...]

    def complete(self, most: int) -> int:
        """Store what is missing of the first and the last half of `most` bytes; returns how much was stored."""
        total = self.session.total_bytes
        kept = ((0, min(most // 2, total)), (max(most // 2, total - most // 2), total))
        gaps = terminal_gaps(self.run_id, self.session.id, total)
        return sum(
            self._fetch(max(start, first), min(end, last))
            for start, end in gaps
            for first, last in kept
            if max(start, first) < min(end, last)
        )

    def _fetch(self, start: int, end: int) -> int:
        stored = 0
        for offset, shown in self._masked(start, end):
            data = shown[max(0, start - offset) : max(0, end - offset)]
            stored += len(data)
            at = max(offset, start)
            terminal_store(run_id=self.run_id, session=self.session.id, offset=at, data=data, at=timezone.now())
        return stored

    def _masked(self, start: int, end: int) -> Iterator[tuple[int, bytes]]:
        lap = max((len(form) for form in self.forms), default=0)
        begin, stop = max(0, start - lap), min(self.session.total_bytes, end + lap)
        stream = MaskedStream(self.forms, begin)
        for offset, data in self._raw(begin, stop):
            stream.take(offset, data)
            yield from stream.ready()
        stream.let_go()
        yield from stream.ready()

    def _raw(self, begin: int, stop: int) -> Iterator[tuple[int, bytes]]:
        """The node's own bytes; it may have dropped some in the middle."""
        while begin < stop:
            reply = self.environment.session_log(self.place, self.session.id, begin, min(PULL_BYTES, stop - begin))
            offset = reply.body.get("start_offset")
            offset = offset if isinstance(offset, int) else begin
            if not reply.payload or offset >= stop:
                return
            yield offset, reply.payload
            begin = offset + len(reply.payload)
