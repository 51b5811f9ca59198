"""Room: runs. One viewer of one feed: gives every piece after its position, once and in order, at its own pace."""

from collections.abc import Awaitable, Callable, Hashable

from runs.live.hub import Feed, Hub
from runs.streaming import Piece, Source

Give = Callable[[Piece], Awaitable[None]]


class Viewer:
    """`position` is the last event number or byte offset that was given. `give` sends a piece, or raises to end it."""

    def __init__(self, *, give: Give, position: int) -> None:
        self.position = position
        self._give = give

    async def follow(self, hub: Hub, key: Hashable, source: Source) -> None:
        """Until cancelled, or until `give` raises."""
        async with hub.watching(key, source) as feed:
            # A position beyond the end is nobody's: it would wait for ever.
            self.position = min(self.position, feed.position)
            while True:
                cursor = await self._catch_up(feed)
                await self._ride(feed, cursor)

    async def _catch_up(self, feed: Feed) -> int:
        """Read from the database up to where the ring is; returns the place on the ring from which to go on."""
        while self.position < feed.position:
            pieces = await feed.source.read(self.position)
            if not pieces:
                break
            for piece in pieces:
                await self._given(piece)
        # No await since the comparison above: nothing was put on the ring in between.
        return feed.count

    async def _ride(self, feed: Feed, cursor: int) -> None:
        """Send what comes; return when this viewer fell behind the ring, or finds a hole before a piece."""
        while True:
            changed = feed.changed
            pieces = feed.since(cursor)
            if pieces is None:
                return
            for piece in pieces:
                if not await self._fits(piece):
                    return
            cursor += len(pieces)
            if not pieces:
                await changed.wait()

    async def _fits(self, piece: Piece) -> bool:
        if piece.after == piece.upto:
            if piece.after <= self.position:
                await self._give(piece)
            return True
        if piece.upto <= self.position:
            return True
        if piece.after != self.position:
            return False
        await self._given(piece)
        return True

    async def _given(self, piece: Piece) -> None:
        await self._give(piece)
        self.position = piece.upto
