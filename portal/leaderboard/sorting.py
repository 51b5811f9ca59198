"""Room: portal.leaderboard. Any column sorts; a row without a value stands last in either direction. Pure."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

Row = TypeVar("Row")


def in_order(rows: Iterable[Row], value: Callable[[Row], Any], *, descending: bool) -> list[Row]:
    """`rows` by their `value` (one type, or None). Stable: rows of equal value keep the order they came in."""
    valued = [(value(row), row) for row in rows]
    known = [pair for pair in valued if pair[0] is not None]
    known.sort(key=lambda pair: pair[0], reverse=descending)
    return [*(row for _value, row in known), *(row for value, row in valued if value is None)]
