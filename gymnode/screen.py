"""Room: gymnode, pure. A terminal small enough to be linear: raw bytes in, lines of text out.

It keeps the last `HEIGHT` rows addressable, as a real terminal does, so that progress bars (one line or several),
`watch` and spinners fold to their last state. Colours, titles, links (OSC 8), clipboard writes (OSC 52), device queries
and the alternate screen leave nothing behind; a full-screen program that is still on shows its screen below a line that
says so. Wide characters take two columns, marks none. NUL and other control characters become visible symbols. Each
step costs at most `WIDTH`, whatever the input.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gymnode.cells import bearer, halves, last_of, marks_before, spread

HEIGHT = 50
WIDTH = 1024
FULL_SCREEN = "[a full-screen program is on; its screen now:]"

# A string sequence (OSC, DCS, APC, PM, SOS, title) never runs over a line end: an unterminated one must not hide what
# follows. Possessive quantifiers keep the whole pattern linear.
_TOKEN = re.compile(
    rb"(?P<text>[^\x00-\x1f\x7f]+)"
    rb"|(?P<newline>\r*\n)"
    rb"|(?P<csi>\x1b\[[0-?]*+[ -/]*+[@-~])"
    rb"|(?P<string>\x1b[\]PX^_k][^\x07\x1b\n]*+(?:\x07|\x1b\\))"
    rb"|(?P<escape>\x1b[ -/]*+[0-OQ-WYZ\\`-jl-~])"
    rb"|(?P<cut>\x1b(?:\[[0-?]*+[ -/]*+|[\]PX^_k][^\x07\x1b\n]{0,4096}+\x1b?)?\Z)"
    rb"|(?P<control>[\x00-\x1f\x7f])"
)
_SYMBOLS = {code: chr(0x2400 + code) for code in range(32) if code != 9} | {127: "\u2421"}
_SYMBOLS |= dict.fromkeys(range(0x80, 0xA0), "\ufffd")
_ALTERNATE = {"?47", "?1047", "?1049"}


def visible(text: str) -> str:
    """Control characters (tabs excepted) as symbols that can be seen and can't act."""
    return text.translate(_SYMBOLS)


@dataclass(frozen=True)
class Line:
    """One line of rendered text and the byte offset at which it began in the input."""

    offset: int
    text: str


@dataclass(slots=True)
class _Row:
    offset: int
    cells: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)  # what a long line has pushed out of reach of the cursor

    def line(self) -> Line:
        return Line(self.offset, "".join(self.before) + "".join(self.cells))

    def mend(self, *borders: int) -> None:
        """Blank what is left of a wide character of which one half was overwritten or cut off."""
        for border in borders:
            for half in halves(self.cells, border):
                self.cells[half] = " "


class _Grid:
    """Rows, a cursor, and what has scrolled away."""

    def __init__(self, offset: int, *, cleared: bool = False) -> None:
        self.done: list[Line] = []
        self.rows = [_Row(offset)]
        self.row = self.col = 0
        self.saved = (0, 0)
        self.last = ""
        self.cleared = cleared

    @property
    def current(self) -> _Row:
        return self.rows[self.row]

    def write(self, text: str) -> None:
        cells = spread(self._marked(text))
        self.last = last_of(text) or self.last
        row, col = self.current, self.col
        if col > len(row.cells):
            row.cells.extend(" " * (col - len(row.cells)))
        if col + len(cells) > WIDTH:  # a real terminal would wrap here: the cursor can't come back to what is above
            row.before += ["".join(row.cells[:col]), *cells]
            row.cells.clear()
            self.col = 0
            return
        row.cells[col : col + len(cells)] = cells
        self.col = col + len(cells)
        row.mend(col, self.col)

    def _marked(self, text: str) -> str:
        """The text without the marks at its beginning, which are put on the character before the cursor."""
        marks = "" if text.isascii() else marks_before(text)
        at = bearer(self.current.cells, self.col, marks) if marks else None
        if at is None:
            return text
        self.current.cells[at] += marks
        return text[len(marks) :]

    def repeat(self, count: int) -> None:
        """The last character again, as often as it fits in the line."""
        cells = spread(self.last)
        if cells:
            self.write(self.last * min(max(1, count), (WIDTH - self.col) // len(cells)))

    def newline(self, offset: int) -> None:
        self.col = 0
        self.row += 1
        if self.row == len(self.rows):
            self.rows.append(_Row(offset))
        if len(self.rows) > HEIGHT:
            self.done.append(self.rows.pop(0).line())
            self.row -= 1

    def move(self, row: int, col: int) -> None:
        row = max(0, min(row, HEIGHT - 1))
        while row >= len(self.rows):
            self.rows.append(_Row(self.rows[-1].offset))
        self.row, self.col = row, max(0, min(col, WIDTH - 1))

    def clear(self, offset: int) -> None:
        """The first clearing scrolls what was there away; later ones wipe only what was drawn since."""
        if not self.cleared:
            self.done.extend(self._drawn())
        self.cleared = True
        self.rows = [_Row(offset)]
        self.row = self.col = 0

    def lines(self) -> list[Line]:
        """All lines; blanks at line ends are dropped but in the last line, which may be a prompt."""
        lines = [*self.done, *self._drawn()]
        return [Line(line.offset, line.text.rstrip(" ")) for line in lines[:-1]] + lines[-1:]

    def _drawn(self) -> list[Line]:
        lines = [row.line() for row in self.rows]
        while len(lines) > self.row + 1 and not lines[-1].text.strip():
            lines.pop()
        return lines


class Screen:
    """Feed bytes once, then read `lines()`. `offset` is the place of the first byte in the log."""

    def __init__(self, offset: int = 0) -> None:
        self.offset = offset
        self.main = _Grid(offset)
        self.alternate: _Grid | None = None

    def feed(self, data: bytes) -> None:
        """Take all of `data`; a sequence that is cut off at its end is dropped."""
        for match in _TOKEN.finditer(data):
            kind, raw = match.lastgroup, match.group()
            if kind == "text":
                self._grid.write(visible(raw.decode("utf-8", "replace")))
            elif kind == "newline":
                self._grid.newline(self.offset + match.end())
            elif kind == "control":
                self._control(raw[0])
            elif kind == "csi":
                self._csi(raw[2:].decode("ascii"), self.offset + match.end())
            elif kind == "escape":
                self._escape(chr(raw[-1]), self.offset + match.end())
        self.offset += len(data)

    def lines(self) -> list[Line]:
        """What a reader of the terminal sees, oldest line first."""
        lines = self.main.lines()
        if self.alternate is None:
            return lines
        return [*lines, Line(self.offset, FULL_SCREEN), *self.alternate.lines()]

    @property
    def _grid(self) -> _Grid:
        return self.main if self.alternate is None else self.alternate

    def _control(self, code: int) -> None:
        grid = self._grid
        if code == 0x0D:
            grid.col = 0
        elif code == 0x08:
            grid.col = max(0, grid.col - 1)
        elif code == 0x09:
            grid.write("\t")
        elif code != 0x07:
            grid.write(_SYMBOLS[code])

    def _escape(self, final: str, offset: int) -> None:
        grid = self._grid
        if final == "7":
            grid.saved = (grid.row, grid.col)
        elif final == "8":
            grid.move(*grid.saved)
        elif final == "M":
            grid.move(grid.row - 1, grid.col)
        elif final in "DE":
            grid.newline(offset)
        elif final == "c":
            self.alternate = None
            self.main.clear(offset)

    def _csi(self, body: str, offset: int) -> None:
        parameters, final = body[:-1], body[-1]
        if final in "hl":
            if _ALTERNATE & set(parameters.split(";")):
                self.alternate = _Grid(offset, cleared=True) if final == "h" else None
            return
        act = _CSI.get(final)
        if act is not None and not parameters.startswith(("?", ">", "<", "=")):
            first, _, second = parameters.partition(";")
            act(self._grid, _number(first), _number(second), offset)


def _number(text: str) -> int:
    """A parameter, 0 when it is missing or no number; more than four digits mean "as far as it goes"."""
    return int(text[:5]) if text.isdecimal() else 0


def _erase_line(grid: _Grid, mode: int) -> None:
    cells = grid.current.cells
    if mode == 0:
        del cells[grid.col :]
        grid.current.mend(grid.col)
    elif mode == 1:
        cells[: grid.col + 1] = " " * min(grid.col + 1, len(cells))
        grid.current.mend(grid.col + 1)
    else:
        cells.clear()


def _erase_display(grid: _Grid, mode: int, offset: int) -> None:
    if mode == 0:
        _erase_line(grid, 0)
        del grid.rows[grid.row + 1 :]
    elif mode == 1:
        for row in grid.rows[: grid.row]:
            row.cells.clear()
        _erase_line(grid, 1)
    elif mode == 2:
        place = (grid.row, grid.col) if grid.cleared else (0, 0)
        grid.clear(offset)
        grid.move(*place)


def _erase_characters(grid: _Grid, count: int) -> None:
    cells = grid.current.cells
    end = min(len(cells), grid.col + max(1, count))
    cells[grid.col : end] = " " * max(0, end - grid.col)
    grid.current.mend(grid.col, end)


def _delete_characters(grid: _Grid, count: int) -> None:
    grid.current.mend(grid.col)
    del grid.current.cells[grid.col : grid.col + max(1, count)]
    grid.current.mend(grid.col)


def _insert_blanks(grid: _Grid, count: int) -> None:
    cells = grid.current.cells
    count = min(max(1, count), max(0, WIDTH - len(cells)))
    cells[grid.col : grid.col] = " " * count
    grid.current.mend(grid.col, grid.col + count)


def _insert_rows(grid: _Grid, count: int, offset: int) -> None:
    fresh = [_Row(offset) for _ in range(min(max(1, count), HEIGHT - grid.row))]
    grid.rows[grid.row : grid.row] = fresh
    del grid.rows[HEIGHT:]


def _delete_rows(grid: _Grid, count: int, offset: int) -> None:
    del grid.rows[grid.row : grid.row + max(1, count)]
    if grid.row >= len(grid.rows):
        grid.rows.append(_Row(offset))
        grid.move(grid.row, grid.col)


_CSI: Mapping[str, Callable[[_Grid, int, int, int], None]] = {
    "A": lambda grid, n, _m, _at: grid.move(grid.row - max(1, n), grid.col),
    "B": lambda grid, n, _m, _at: grid.move(min(grid.row + max(1, n), len(grid.rows) - 1), grid.col),
    "C": lambda grid, n, _m, _at: grid.move(grid.row, grid.col + max(1, n)),
    "D": lambda grid, n, _m, _at: grid.move(grid.row, grid.col - max(1, n)),
    "E": lambda grid, n, _m, _at: grid.move(grid.row + max(1, n), 0),
    "F": lambda grid, n, _m, _at: grid.move(grid.row - max(1, n), 0),
    "G": lambda grid, n, _m, _at: grid.move(grid.row, max(1, n) - 1),
    "`": lambda grid, n, _m, _at: grid.move(grid.row, max(1, n) - 1),
    "b": lambda grid, n, _m, _at: grid.repeat(n),
    "d": lambda grid, n, _m, _at: grid.move(max(1, n) - 1, grid.col),
    "H": lambda grid, n, m, _at: grid.move(max(1, n) - 1, max(1, m) - 1),
    "f": lambda grid, n, m, _at: grid.move(max(1, n) - 1, max(1, m) - 1),
    "J": lambda grid, n, _m, at: _erase_display(grid, n, at),
    "K": lambda grid, n, _m, _at: _erase_line(grid, n),
    "L": lambda grid, n, _m, at: _insert_rows(grid, n, at),
    "M": lambda grid, n, _m, at: _delete_rows(grid, n, at),
    "P": lambda grid, n, _m, _at: _delete_characters(grid, n),
    "X": lambda grid, n, _m, _at: _erase_characters(grid, n),
    "@": lambda grid, n, _m, _at: _insert_blanks(grid, n),
    "s": lambda grid, _n, _m, _at: setattr(grid, "saved", (grid.row, grid.col)),
    "u": lambda grid, _n, _m, _at: grid.move(*grid.saved),
}
