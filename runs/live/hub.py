"""Room: runs. The hub of a web process: one feed per run or session that somebody watches, read once, sent to all.

A feed appends pieces to a ring and wakes its viewers; each viewer's own task sends from its own place. Whoever falls
off the ring, because its socket is slow, reads from the database and holds nobody up. The bell only says where to look;
every feed also looks by itself every few seconds, so a bell that didn't ring delays and loses nothing.
"""

import asyncio
import json
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager, suppress
from weakref import WeakKeyDictionary

import redis.asyncio
from django.conf import settings
from redis.exceptions import RedisError

from runs.bell import CHANNEL, DELTAS, TERMINALS
from runs.streaming import EventSource, Piece, Source, TerminalSource, message_text

RING = 256
LOOK_EVERY_S = 5.0
BATCH_S = 0.1
RECONNECT_S = 0.5
log = logging.getLogger(__name__)


def _cancelled() -> bool:
    """Whether this task was told to end. The word itself may get lost: `wait_for` drops it when what it waits for comes
    at that moment, and a connection that fails while it is closed raises its own error instead.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class Feed:
    """What is new of one stream since the first viewer came. `position`: up to where the ring has been filled."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.position = 0
        self.count = 0
        self.viewers = 0
        self.changed = asyncio.Event()
        self._ring: deque[Piece] = deque(maxlen=RING)
        self._poked = asyncio.Event()

    def poke(self) -> None:
        """There may be something new."""
        self._poked.set()

    def add(self, piece: Piece) -> None:
        """Put a piece on the ring and wake everybody who waits."""
        self._ring.append(piece)
        self.count += 1
        self.position = max(self.position, piece.upto)
        waiting, self.changed = self.changed, asyncio.Event()
        waiting.set()

    def since(self, cursor: int) -> list[Piece] | None:
        """Pieces from number `cursor` on; None when the first of them has left the ring."""
        if cursor < self.count - len(self._ring):
            return None
        return list(self._ring)[len(self._ring) - (self.count - cursor) :] if cursor < self.count else []

    async def run(self) -> None:
        """Look when poked and every few seconds, at most ten times a second."""
        while not _cancelled():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._poked.wait(), LOOK_EVERY_S)
            self._poked.clear()
            started = time.monotonic()
            try:
                await self._look()
            except asyncio.CancelledError:
                raise
            except Exception:
                log.exception("a feed could not be read; it looks again")
                await asyncio.sleep(RECONNECT_S)
            await asyncio.sleep(max(0.0, BATCH_S - (time.monotonic() - started)))

    async def _look(self) -> None:
        new = False
        while pieces := await self.source.read(self.position):
            new = True
            for piece in pieces:
                self.add(piece)
        if not new:
            fleeting = await self.source.refresh(self.position)
            if fleeting is not None:
                self.add(fleeting)


class Hub:
    """All feeds of one event loop, and the ear on the bell."""

    def __init__(self) -> None:
        self._feeds: dict[Hashable, Feed] = {}
        self._tasks: dict[Hashable, asyncio.Task[None]] = {}
        self._ear: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def watching(self, key: Hashable, source: Source) -> AsyncIterator[Feed]:
        """The feed of `key`, made when nobody watched it yet; it begins at what is stored now."""
        end = await source.end()
        if self._ear is None or self._ear.done():
            self._ear = asyncio.create_task(self._listen(), name="bell")
        feed = self._feeds.get(key)
        if feed is None:
            feed = self._feeds[key] = Feed(source)
            feed.position = end
            self._tasks[key] = asyncio.create_task(feed.run(), name=f"feed-{key}")
            feed.poke()
        feed.viewers += 1
        try:
            yield feed
        finally:
            feed.viewers -= 1
            if feed.viewers == 0:
                del self._feeds[key]
                self._tasks.pop(key).cancel()
            if not self._feeds and self._ear is not None:
                self._ear.cancel()
                self._ear = None

    async def _listen(self) -> None:
        """Hear the bell; after every break, look everywhere, because rings were missed."""
        while not _cancelled():
            connection = redis.asyncio.Redis.from_url(settings.REDIS_URL, health_check_interval=10)
            try:
                async with connection, connection.pubsub() as ear:
                    await ear.subscribe(CHANNEL, DELTAS, TERMINALS)
                    for feed in self._feeds.values():
                        feed.poke()
                    async for message in ear.listen():
                        if message["type"] == "message":
                            self._heard(message["channel"].decode(), message["data"].decode())
            except (RedisError, OSError) as problem:
                log.warning("the bell can't be heard (%s); listening again", type(problem).__name__)
            await asyncio.sleep(RECONNECT_S)

    def _heard(self, channel: str, data: str) -> None:
        if channel == DELTAS:
            run, text = json.loads(data)
            body = message_text({"type": "delta", "run": run, "text": text})
            for feed in self._of_run(run):
                feed.add(Piece(feed.position, feed.position, body))
            return
        run, _, rest = data.partition(" ")
        if channel == CHANNEL:
            for feed in self._of_run(int(run)):
                feed.poke()
        elif terminal := self._feeds.get(("terminal", int(run), rest)):
            terminal.poke()

    def _of_run(self, run_id: int) -> list[Feed]:
        """The run's feeds: one per language that somebody reads it in."""
        keys: list[Hashable] = [("run", run_id, code) for code, _name in settings.LANGUAGES]
        return [self._feeds[key] for key in keys if key in self._feeds]


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()


def hub() -> Hub:
    """The hub of the running event loop."""
    return _hubs.setdefault(asyncio.get_running_loop(), Hub())


def run_key(run_id: int, language: str) -> tuple[Hashable, Source]:
    """Key and source of a run's events, their markup in `language`."""
    return ("run", run_id, language), EventSource(run_id, language)


def terminal_key(run_id: int, session: str) -> tuple[Hashable, Source]:
    """Key and source of a session's bytes."""
    return ("terminal", run_id, session), TerminalSource(run_id, session)
