"""Room: gymnode, pure. Windows on text files: lines with their numbers, every line reachable, none skipped.

Line numbers are 1-based; only a newline byte ends a line. A window is one unbroken range of lines, so the next one
begins at `last + 1` and the one before ends at `first - 1`, however few lines fitted.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gymnode.screen import visible

MAX_LINE = 2000  # characters of one line that are shown; the window says how to read the rest of it


@dataclass(frozen=True)
class Chunk:
    """Consecutive lines of a file as they were read: `lines[0]` is line `first`; the file has `total` lines."""

    first: int
    lines: tuple[str, ...]
    total: int

    @property
    def last(self) -> int:
        return self.first + len(self.lines) - 1


@dataclass(frozen=True)
class Window:
    """What is shown: lines `first` to `last` of `total`. An empty file is `first=1, last=0, total=0`."""

    first: int
    last: int
    total: int
    text: str


def chunk_decode(data: bytes, *, first: int, last: int, total: int, encoding: str) -> Chunk:
    """Lines out of the bytes of lines `first` to `last`; a line cut off by a size limit counts as that line."""
    text = data.decode("latin-1" if encoding == "latin-1" else "utf-8", "replace")
    if text.startswith("\ufeff") and first == 1:
        text = text[1:]
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    count = max(0, last - first + 1)
    lines = lines[:count] + [""] * (count - len(lines))
    return Chunk(first, tuple(lines), total)


def window_around(chunk: Chunk, line: int, *, height: int, max_chars: int) -> Window:
    """A window of at most `height` lines that holds `line`, in the middle where it can be."""
    return _window(chunk, line, height=height, max_chars=max_chars)


def window_from(chunk: Chunk, *, height: int, max_chars: int) -> Window:
    """A window that begins with the chunk's first line."""
    return _window(chunk, chunk.first, height=height, max_chars=max_chars)


def window_until(chunk: Chunk, *, height: int, max_chars: int) -> Window:
    """A window that ends with the chunk's last line."""
    return _window(chunk, chunk.last, height=height, max_chars=max_chars)


def _window(chunk: Chunk, line: int, *, height: int, max_chars: int) -> Window:
    if not chunk.lines:
        return Window(1, 0, chunk.total, "(the file is empty)" if not chunk.total else "")
    width = len(str(chunk.total))
    shown = [show_line(number, text, width) for number, text in enumerate(chunk.lines, chunk.first)]
    low, high = _grow([len(text) + 1 for text in shown], line - chunk.first, height, max_chars)
    return Window(chunk.first + low, chunk.first + high - 1, chunk.total, "\n".join(shown[low:high]))


def _grow(costs: Sequence[int], anchor: int, height: int, budget: int) -> tuple[int, int]:
    """The range [low, high) that holds `anchor` and grows to both sides in turn while lines and characters last."""
    low, high = anchor, anchor + 1
    budget -= costs[anchor]
    up = down = True
    while (up or down) and high - low < height:
        down = down and high < len(costs) and costs[high] <= budget
        if down:
            budget -= costs[high]
            high += 1
        up = up and low > 0 and costs[low - 1] <= budget and high - low < height
        if up:
            low -= 1
            budget -= costs[low]
    return low, high


def show_line(number: int, text: str, width: int) -> str:
    """`  12| text`, control characters made visible, over-long lines cut and marked."""
    text = text.removesuffix("\r")
    if len(text) <= MAX_LINE:
        return f"{number:>{width}}| {visible(text)}"
    return f"{number:>{width}}| {visible(text[:MAX_LINE])} [... this line goes on after {MAX_LINE} characters ...]"
