"""Room: gymnode, pure. What the model sees of a terminal's bytes, and what may be stored of any value.

`render` resolves escape sequences (see `screen`) and keeps head and tail of what is too long, with a line
between them that says how many bytes were left out and how to read them. Memory is bounded by `RAW_LIMIT`.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from gymnode.screen import Line, Screen

NUL_SYMBOL = "\u2400"
RAW_LIMIT = 192 * 1024  # bytes of raw output looked at for one answer: what gymd sends in one piece
_EDGE = 4096  # how far from a cut a line end is looked for
_BROKEN_END = re.compile(rb"(?:[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\Z")
_BROKEN_START = re.compile(rb"\A[\x80-\xbf]{1,3}")


def moment(seconds: float) -> datetime | None:
    """A node's time in UTC; None for one that no calendar holds (a file may carry any)."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None


@dataclass(frozen=True)
class Raw:
    """A stretch of a log: `head`, then `omitted` bytes that aren't here, then `tail`; `start` is head's byte offset."""

    head: bytes
    tail: bytes = b""
    omitted: int = 0
    start: int = 0

    @property
    def end(self) -> int:
        """The offset of the first byte after the stretch."""
        return self.start + len(self.head) + self.omitted + len(self.tail)


@dataclass(frozen=True)
class Rendered:
    """`text` for the model, from offset `start` on; `omitted` bytes from `omitted_from` aren't in it (None: all is)."""

    text: str
    start: int
    omitted: int = 0
    omitted_from: int | None = None


def render(raw: Raw, *, max_chars: int, how: Callable[[int], str]) -> Rendered:
    """Text of at most about `max_chars` characters; `how(offset)` says how to read on from a byte offset."""
    raw = _bounded(raw)
    head, gap_from, tail = lines_of(raw)
    return _fitted(_Lines(head, gap_from, tail, raw.end), max_chars, how)


def render_last(raw: Raw, *, start: int, end: int, max_chars: int, how: Callable[[int], str]) -> Rendered:
    """Lines counted from the end of the stretch: from the `start`-th last on, without the last `end` ones."""
    raw = _bounded(raw)
    head, _, tail = lines_of(raw)
    lines = tail or head
    if lines and not lines[-1].text:
        lines = lines[:-1]
    stop = max(0, len(lines) - end)
    ends_at = lines[stop].offset if stop < len(lines) else raw.end
    chosen = lines[max(0, len(lines) - start) : stop]
    return _fitted(_Lines(chosen, ends_at, [], ends_at), max_chars, how)


@dataclass(frozen=True)
class _Lines:
    """Rendered lines before a gap that begins at `gap_from`, and after it (none: no gap); `end` is the whole's end."""

    head: list[Line]
    gap_from: int
    tail: list[Line]
    end: int


def _fitted(lines: _Lines, max_chars: int, how: Callable[[int], str]) -> Rendered:
    start = lines.head[0].offset if lines.head else lines.gap_from
    last_part = lines.tail or lines.head
    if len(last_part) > 1 and not last_part[-1].text:  # the empty line after a final newline
        last_part.pop()
    fits = sum(len(line.text) + 1 for line in lines.head + lines.tail) <= max_chars
    if fits and not lines.tail:
        return Rendered(_text(lines.head), start)
    if fits:
        first, stop, last, resume = lines.head, lines.gap_from, lines.tail, lines.tail[0].offset
    else:
        first, cut_at, rest = _front(lines.head, max_chars // 2)
        stop = lines.gap_from if cut_at is None else cut_at
        last, resume = _back(lines.tail or rest, max_chars - max_chars // 2, lines.end)
    omitted = max(0, resume - stop)
    note = f"[... {omitted:,} bytes left out here: offsets {stop} to {resume}. {how(stop)} ...]"
    return Rendered("\n".join(part for part in (_text(first), note, _text(last)) if part), start, omitted, stop)


def lines_of(raw: Raw) -> tuple[list[Line], int, list[Line]]:
    """Rendered head, the offset where it ends, rendered tail. Beside a gap the cut goes to a near line end."""
    first = Screen(raw.start)
    if not raw.omitted:
        first.feed(raw.head + raw.tail)
        return first.lines(), raw.end, []
    cut = raw.head.rfind(b"\n", max(0, len(raw.head) - _EDGE))
    head = raw.head[:cut] if cut >= 0 else _BROKEN_END.sub(b"", raw.head)
    first.feed(head)
    cut_tail = raw.tail.find(b"\n", 0, _EDGE)
    tail = raw.tail[cut_tail + 1 :] if cut_tail >= 0 else _BROKEN_START.sub(b"", raw.tail)
    second = Screen(raw.end - len(tail))
    second.feed(tail)
    return first.lines(), raw.start + len(head) + (cut >= 0), second.lines()


def _text(lines: Sequence[Line]) -> str:
    return "\n".join(line.text for line in lines)


def _bounded(raw: Raw) -> Raw:
    """The same stretch with no more than RAW_LIMIT bytes in hand."""
    half = RAW_LIMIT // 2
    if len(raw.head) + len(raw.tail) <= RAW_LIMIT:
        return raw
    kept_head, kept_tail = raw.head[:half], raw.tail[-half:]
    if not raw.omitted and len(kept_tail) < half:
        kept_tail = raw.head[max(half, len(raw.head) - (half - len(kept_tail))) :] + kept_tail
    return Raw(kept_head, kept_tail, raw.end - raw.start - len(kept_head) - len(kept_tail), raw.start)


def _front(lines: Sequence[Line], budget: int) -> tuple[list[Line], int | None, list[Line]]:
    """Lines from the start that fit; the byte offset where they stop (None: all fit); the lines that are left."""
    for index, line in enumerate(lines):
        if len(line.text) < budget:
            budget -= len(line.text) + 1
            continue
        kept = line.text[: max(0, budget)] if len(line.text) > _EDGE or not index else ""
        stop = line.offset + len(kept.encode())
        taken = [*lines[:index], Line(line.offset, kept)] if kept else list(lines[:index])
        return taken, stop, [Line(stop, line.text[len(kept) :]), *lines[index + 1 :]]
    return list(lines), None, []


def _back(lines: Sequence[Line], budget: int, end: int) -> tuple[list[Line], int]:
    """Lines from the end that fit, in order, and the byte offset of the first of them."""
    taken: list[Line] = []
    for line in reversed(lines):
        if len(line.text) < budget:
            taken.append(line)
            budget -= len(line.text) + 1
            continue
        kept = line.text[-budget:] if budget > 0 and (len(line.text) > _EDGE or not taken) else ""
        if kept:
            line_end = taken[-1].offset - 1 if taken else end
            taken.append(Line(max(line.offset, line_end - len(kept.encode())), kept))
        break
    return taken[::-1], taken[-1].offset if taken else end


def shorten(text: str, max_chars: int, what: str) -> str:
    """Head and tail of a text that is too long; `what` says how to see the rest."""
    if len(text) <= max_chars:
        return text
    half = max_chars // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half:,} characters left out here. {what} ...]\n{text[-half:]}"


def storable(value: Any) -> Any:
    """A copy of a JSON value that PostgreSQL's text and jsonb accept: no NUL, no lone surrogate, no NaN or infinity.

    Keys are cleaned as well. Non-finite floats become their names ("NaN", "Infinity", "-Infinity").
    """
    if isinstance(value, str):
        return _storable_text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, dict):
        return {_storable_text(str(key)): storable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [storable(item) for item in value]
    return value


def _storable_text(text: str) -> str:
    if text.isascii():
        return text.replace("\0", NUL_SYMBOL) if "\0" in text else text
    return text.replace("\0", NUL_SYMBOL).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
