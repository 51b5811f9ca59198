"""Room: gymnode.remote. Typing on a session's terminal: all of a text, as fast as it is read, or a word on why not.

A terminal takes some kilobytes ahead of its reader, the rest has to wait; and while the program reads whole lines, the
kernel silently drops what goes beyond 4095 bytes of one.
"""

from __future__ import annotations

import os
import re
import time
from typing import Callable

from gymnode.remote.loop import Loop
from gymnode.remote.refusals import Refusal
from gymnode.remote.terminals import is_raw

LINE_LIMIT = 4095
PATIENCE_S = 5.0
LONGEST_S = 20.0  # whoever asked waits half a minute for the answer
AGAIN_S = 0.01  # looked at again: not every kernel wakes a terminal's writer when its buffer is emptied
_LINE_END = re.compile(rb"[\r\n\x03\x04\x15\x1a\x1c]")

Typed = Callable[[int, str], None]


class Keyboard:
    """The one who types; one text at a time."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._master = -1
        self._text, self._count = b"", 0
        self._unended = 0  # bytes of the line that was begun and not ended
        self._began = self._moved = 0.0
        self._done: Typed | None = None

    def attach(self, master: int) -> None:
        """Another terminal."""
        self._master, self._unended = master, 0

    def forget_line(self) -> None:
        """What was typed and not read has been thrown away."""
        self._unended = 0

    def type_text(self, data: bytes, done: Typed) -> None:
        """Type `data`; then `done(bytes typed, why not all)`. Raises Refusal before anything is typed."""
        if self._done is not None:
            raise Refusal("session_busy", "the text before is still being typed")
        longest = max(map(len, _LINE_END.split(b"x" * self._unended + data)))
        if longest > LINE_LIMIT and not is_raw(self._master):
            raise Refusal(
                "path_too_large",
                f"a line of {longest} bytes can't be typed, nothing was: the program reads whole lines, and a terminal "
                f"takes {LINE_LIMIT} bytes of one. Write the text into a file and let the program read that",
            )
        self._text, self._count, self._done = data, 0, done
        self._began = self._moved = time.monotonic()
        self._go_on()

    def stop(self, why: str) -> None:
        """Type no more of what is being typed."""
        if self._done is not None:
            done, self._done = self._done, None
            done(self._count, why)

    def _go_on(self) -> None:
        if self._done is None:
            return
        now = time.monotonic()
        try:
            while self._count < len(self._text):
                self._typed(os.write(self._master, self._text[self._count : self._count + 4096]))
                self._moved = now
        except BlockingIOError:
            if now - self._moved > PATIENCE_S:
                self.stop(f"nothing read on for {PATIENCE_S:.0f} s")
            elif now - self._began > LONGEST_S:
                self.stop(f"{LONGEST_S:.0f} s were over: it is read too slowly")
            else:
                self._loop.later(AGAIN_S, self._go_on)
            return
        except OSError:
            self.stop("nothing had the terminal open any more")
            return
        self.stop("")

    def _typed(self, count: int) -> None:
        piece = self._text[self._count : self._count + count]
        self._count += count
        *ended, last = _LINE_END.split(piece)
        kept = 0 if ended else self._unended
        self._unended = 0 if is_raw(self._master) else kept + len(last)
