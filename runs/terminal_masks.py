"""Room: runs. Secrets masked in the bytes of terminals, wherever the stream is cut. Pure.

A mask has the length of what it hides, so offsets hold. What may be the beginning of a secret is kept back until more
comes or it is let go; where a stream begins in the middle of a log, what may be the end of one is masked.
"""

from collections import deque
from collections.abc import Iterator
from functools import lru_cache

from gymnode.remote.masking import MASK, Masker
from runs.masks import Masks

Piece = tuple[int, bytes]


@lru_cache(maxsize=256)
def byte_forms(masks: Masks) -> tuple[bytes, ...]:
    """The forms of a run's masks as a terminal prints them, the longest first."""
    raw = {form.encode("utf-8", "surrogatepass") for form in masks.forms}
    raw |= {form.replace(b"\n", b"\r\n") for form in raw}
    return tuple(sorted(raw, key=len, reverse=True))


class MaskedStream:
    """One session's log from byte `offset` on. `end`: up to where bytes were taken; some of them may be kept back."""

    def __init__(self, forms: tuple[bytes, ...], offset: int) -> None:
        self.forms = forms
        self.end = offset
        self._ready: deque[Piece] = deque()
        self._shown = offset
        self._begun = offset > 0
        self._hidden = 0  # so many of the next bytes are masked whatever they are
        self._masker = Masker(list(forms))

    def take(self, offset: int, data: bytes) -> None:
        """These bytes of the log follow. What was taken before is passed over; after a gap a stretch begins anew."""
        if offset > self.end:
            self.let_go()
            self.end = self._shown = offset
            self._masker, self._begun, self._hidden = Masker(list(self.forms)), True, 0
        fresh = data[self.end - offset :]
        self.end += len(fresh)
        if self._begun and fresh:
            self._hidden, self._begun = self._masker.ending(fresh), False
        self._show(self._masker.feed(fresh))

    def let_go(self) -> None:
        """Nothing follows for now: what was kept back goes, masked where it is more than a few bytes of a secret."""
        self._show(self._masker.flush())

    def ready(self) -> Iterator[Piece]:
        """What may be shown, with its place in the log. A piece leaves only when the next one is asked for: what its
        taker fails to store is given again.
        """
        while self._ready:
            yield self._ready[0]
            self._ready.popleft()

    def _show(self, shown: bytes) -> None:
        if not shown:
            return
        hidden = min(self._hidden, len(shown))
        self._hidden -= hidden
        self._ready.append((self._shown, MASK * hidden + shown[hidden:]))
        self._shown += len(shown)
