"""Room: portal.leaderboard. What an old row may hold and a board must bear: NaN, wrong ranges, broken JSON. Pure.

PostgreSQL's numeric and double take NaN and infinities; one such value must neither raise in a sort nor reach JSON. It
is shown as unknown, and its row is flagged.
"""

import math
from decimal import Decimal
from typing import Any


class Sieve:
    """Takes the values of one row; `faults` names the fields that held something unsound."""

    def __init__(self) -> None:
        self.faults: list[str] = []

    def points(self, name: str, value: Decimal | None) -> Decimal | None:
        """0 to 100, or None."""
        if value is None or (value.is_finite() and 0 <= value <= 100):
            return value
        self.refuse(name)
        return None

    def money(self, name: str, value: Decimal | None) -> Decimal | None:
        """USD or the half of an interval: finite, never negative; or None."""
        if value is None or (value.is_finite() and value >= 0):
            return value
        self.refuse(name)
        return None

    def amount(self, name: str, value: float | None) -> float | None:
        """A finite number that isn't negative, or None."""
        if value is None or (math.isfinite(value) and value >= 0):
            return value
        self.refuse(name)
        return None

    def texts(self, name: str, value: Any) -> tuple[str, ...]:
        """A list of texts; whatever else counts as none."""
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            return tuple(value)
        self.refuse(name)
        return ()

    def keys(self, name: str, value: Any) -> tuple[int, ...]:
        """A list of primary keys; whatever else counts as none."""
        if isinstance(value, list) and all(type(each) is int and each > 0 for each in value):
            return tuple(value)
        self.refuse(name)
        return ()

    def refuse(self, name: str) -> None:
        """Note a field whose value was left out."""
        if name not in self.faults:
            self.faults.append(name)
