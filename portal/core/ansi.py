"""Room core: terminal output as markup. Pure: text in, escaped HTML out.

What a command printed is hostile text. Colours and weight become classes of ours; carriage returns, backspaces and
erasures act on their line, as a terminal shows it, wide characters in two columns; every other sequence (titles, links,
clipboard, device queries, alternate screen) vanishes; stray controls become visible symbols. `static/js/run/ansi.js`
does the same for live text.
"""

import re
from dataclasses import dataclass, replace
from html import escape

from gymnode.cells import bearer, halves, last_of, marks_before, spread

_TOKEN = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC: title, link, clipboard
    r"|\x1b[PX^_][^\x1b]*(?:\x1b\\)?"  # DCS, SOS, PM, APC
    r"|\x1b\[[0-?]*[ -/]*[@-~]?"  # CSI
    r"|\x1b[ -/]*[0-~]?"  # two-character escapes
    r"|[\x00-\x1f\x7f-\x9f]"
)
_COLOURS = ("d", "r", "g", "y", "b", "m", "c", "")  # 30..37; black and white are the theme's own
_MAX_LINE = 200_000  # cells of one line; a longer one is cut there and marked
_REACH = 1024  # as far as a sequence alone moves or fills: a few bytes must not make a long line


@dataclass(frozen=True)
class _Style:
    colour: str = ""
    bold: bool = False
    dim: bool = False

    def classes(self) -> str:
        names = [f"c-{self.colour}"] if self.colour else []
        names += ["c-1"] if self.bold else []
        names += ["c-d"] if self.dim and not self.colour else []
        return " ".join(names)


_PLAIN = _Style()


class _Screen:
    """One line being written, and the lines done."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.cells: list[str] = []
        self.styles: list[_Style] = []
        self.column = 0
        self.style = _PLAIN
        self.last = ""

    def write(self, text: str) -> None:
        cells = spread(self._marked(text))
        self.last = last_of(text) or self.last
        start, end = self.column, self.column + len(cells)
        self.column = end
        if not cells or start > _MAX_LINE:
            return
        if end > _MAX_LINE:
            cells = [*cells[: _MAX_LINE - start], "…"]
        self._put(start, cells, self.style)

    def _put(self, start: int, cells: list[str], style: _Style) -> None:
        missing = start - len(self.cells)
        self.cells += [" "] * missing
        self.styles += [_PLAIN] * missing
        end = start + len(cells)
        self.cells[start:end] = cells
        self.styles[start:end] = [style] * len(cells)
        self._mend(start, end)

    def _marked(self, text: str) -> str:
        """The text without the marks at its beginning, which are put on the character before the cursor."""
        marks = "" if text.isascii() else marks_before(text)
        at = bearer(self.cells, self.column, marks) if marks else None
        if at is None:
            return text
        self.cells[at] += marks
        return text[len(marks) :]

    def _mend(self, *borders: int) -> None:
        """Blank what is left of a wide character of which one half was overwritten or cut off."""
        for border in borders:
            for half in halves(self.cells, border):
                self.cells[half], self.styles[half] = " ", _PLAIN

    def control(self, sign: str) -> None:
        if sign == "\n":
            self.end_line()
        elif sign == "\r":
            self.column = 0
        elif sign == "\b":
            self.column = max(0, self.column - 1)
        elif sign == "\t":
            self.write(" " * (8 - self.column % 8))
        elif sign.startswith("\x1b["):
            self._csi(sign[2:-1], sign[-1])
        elif not sign.startswith("\x1b") and sign != "\x07":
            self.write(chr(0x2400 + ord(sign)) if ord(sign) < 0x20 else "\ufffd")

    def end_line(self) -> None:
        self.done.append(_line_html(self.cells, self.styles))
        self.cells, self.styles, self.column = [], [], 0

    def _csi(self, parameters: str, final: str) -> None:
        numbers = [int(n) if n.isdigit() else 0 for n in parameters[:200].split(";")]
        count, farthest = max(1, numbers[0]), max(_REACH, len(self.cells))
        if final == "m":
            for number in numbers:
                self.style = _restyled(self.style, number)
        elif final == "K":
            self._erase(numbers[0])
        elif final == "G":
            self.column = min(count - 1, farthest)
        elif final == "C":
            self.column = min(self.column + count, max(self.column, farthest))
        elif final == "D":
            self.column = max(0, self.column - count)
        elif final == "b" and self.last:
            room = max(0, _REACH - self.column) // len(spread(self.last))
            self.write(self.last * min(count, room))

    def _erase(self, mode: int) -> None:
        if mode == 0:
            del self.cells[self.column :], self.styles[self.column :]
            self._mend(self.column)
        elif mode == 1:
            self._put(0, [" "] * min(self.column + 1, len(self.cells)), _PLAIN)
        elif mode == 2:
            self.cells.clear()
            self.styles.clear()


def _restyled(style: _Style, number: int) -> _Style:
    if number == 0:
        return _PLAIN
    if number in (1, 2):
        return replace(style, bold=number == 1, dim=number == 2)
    if number == 22:
        return replace(style, bold=False, dim=False)
    if 30 <= number <= 37 or 90 <= number <= 97:
        return replace(style, colour=_COLOURS[number % 10])
    return replace(style, colour="") if number == 39 else style


def _line_html(cells: list[str], styles: list[_Style]) -> str:
    out: list[str] = []
    start = 0
    for i in range(1, len(cells) + 1):
        if i == len(cells) or styles[i] != styles[start]:
            text = escape("".join(cells[start:i]))
            classes = styles[start].classes()
            out.append(f'<span class="{classes}">{text}</span>' if classes else text)
            start = i
    return "".join(out)


def ansi_html(text: str) -> str:
    """Escaped HTML of terminal text, for the inside of a `<pre>`."""
    text = text.replace("\r\n", "\n")
    if not _TOKEN.search(text.replace("\n", "")):
        return escape(text)
    screen = _Screen()
    at = 0
    for match in _TOKEN.finditer(text):
        screen.write(text[at : match.start()])
        screen.control(match.group())
        at = match.end()
    screen.write(text[at:])
    screen.end_line()
    return "\n".join(screen.done)
