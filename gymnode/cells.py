"""Room: gymnode, pure. How many columns of a terminal a character takes, as terminals count: 2 for wide ones (Chinese,
emoji), 0 for marks that stand on the character before, 1 for all others. `static/js/run/ansi.js` counts alike.

In a list of cells a wide character is followed by an empty cell: the column of its other half.
"""

from collections.abc import Sequence
from functools import lru_cache
from unicodedata import category, east_asian_width

MOST_MARKS = 32  # on one character; more stand for themselves, so that a cell stays small


@lru_cache(maxsize=4096)
def width(char: str) -> int:
    """0, 1 or 2."""
    if char < "\u0300":
        return 1
    kind = category(char)
    if "\u1160" <= char <= "\u11ff" or kind in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if east_asian_width(char) in {"W", "F"} and kind != "Cn" else 1


def is_wide(cell: str) -> bool:
    """Whether a cell's character takes the next column too."""
    return not cell.isascii() and width(cell[0]) == 2


def spread(text: str) -> list[str]:
    """The cells of a text, marks on their characters. Marks that begin it are cells of their own."""
    if text.isascii():
        return list(text)
    cells: list[str] = []
    base = -1
    for char in text:
        columns = width(char)
        if columns == 0 and base >= 0 and len(cells[base]) <= MOST_MARKS:
            cells[base] += char
            continue
        base = len(cells)
        cells += [char, ""] if columns == 2 else [char]
    return cells


def marks_before(text: str) -> str:
    """The marks with which a text begins: they belong to what was written before."""
    end = 0
    while end < min(len(text), MOST_MARKS) and width(text[end]) == 0:
        end += 1
    return text[:end]


def last_of(text: str) -> str:
    """The last character that takes a column, or nothing."""
    return next((char for char in reversed(text) if width(char)), "")


def bearer(cells: Sequence[str], column: int, marks: str) -> int | None:
    """The cell before `column` that takes these marks; None where there is none, or it has enough of them."""
    at = min(column, len(cells)) - 1
    at -= at > 0 and cells[at] == ""
    return at if at >= 0 and len(cells[at]) + len(marks) <= MOST_MARKS + 1 else None


def halves(cells: Sequence[str], at: int) -> list[int]:
    """Around the border before column `at`: columns that hold half of a wide character whose other half is gone."""
    left = at - 1 if 0 < at <= len(cells) else None
    right = at if at < len(cells) else None
    whole = left is not None and right is not None and is_wide(cells[left]) and cells[right] == ""
    if whole:
        return []
    lost = [left] if left is not None and is_wide(cells[left]) else []
    return [*lost, right] if right is not None and cells[right] == "" else lost
