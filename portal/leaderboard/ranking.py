"""Room: portal.leaderboard. How rows are ordered and how sure that order is. Pure: no database, no Django.

Ranks are competition ranks of the mean (1, 1, 1, 4); rows of equal rank stand in the order of their scoring. The
interval is Student's t over task means at 95 %: for *agents on tasks like these*; repeats within a task are averaged
first. With fewer than two tasks there is no interval. `rank_low`..`rank_high` are the ranks that can't be told apart:
better are only rows whose interval lies wholly above.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from math import sqrt
from typing import Generic, TypeVar

# Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom; above, the normal's with its first correction.
_T95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131),
    *(2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
_Z = 1.959964


@dataclass(frozen=True)
class Standing:
    """What ranking needs of one row; `mean` None: not ranked. `half_width` is half of the interval's width."""

    key: int
    mean: Decimal | None
    half_width: Decimal | None
    scored_at: datetime | None


@dataclass(frozen=True)
class Rank:
    """Competition rank, and the best and worst rank that can't be told apart from it. None: unranked."""

    key: int
    rank: int | None
    low: int | None
    high: int | None


def t_quantile(degrees: int) -> float:
    """Two-sided 95 % quantile of Student's t; 95 % of the mass lies within plus or minus it."""
    if degrees < 1:
        raise ValueError(f"an interval needs at least two values; {degrees} degrees of freedom are left")
    if degrees <= len(_T95):
        return _T95[degrees - 1]
    return _Z + (_Z**3 + _Z) / (4 * degrees) + (5 * _Z**5 + 16 * _Z**3 + 3 * _Z) / (96 * degrees**2)


def mean_of(values: Sequence[Decimal]) -> Decimal:
    """Plain mean. Raises ValueError for no values."""
    if not values:
        raise ValueError("no values to average")
    return sum(values, Decimal(0)) / len(values)


def half_width(values: Sequence[Decimal]) -> Decimal | None:
    """Half of the 95 % interval of the mean of `values` (task means); None with fewer than two."""
    count = len(values)
    if count < 2:
        return None
    centre = float(mean_of(values))
    variance = sum((float(value) - centre) ** 2 for value in values) / (count - 1)
    return Decimal(str(round(t_quantile(count - 1) * sqrt(variance / count), 6)))


def ranked(rows: Iterable[Standing]) -> tuple[Rank, ...]:
    """Ranks of all rows in the board's order: by mean, then time of scoring, then key; unranked rows last."""
    ordered = sorted(rows, key=_order)
    counted = [row for row in ordered if row.mean is not None]
    places = Places([row.mean or Decimal(0) for row in counted], [row.half_width for row in counted])
    result = [Rank(row.key, *places.at(number)) for number, row in enumerate(counted)]
    result.extend(Rank(row.key, None, None, None) for row in ordered if row.mean is None)
    return tuple(result)


def _order(row: Standing) -> tuple[Decimal, float, int]:
    time = row.scored_at.timestamp() if row.scored_at else float("inf")
    return (-(row.mean or Decimal(0)), time, row.key)


Points = TypeVar("Points", int, Decimal)


class Places(Generic[Points]):
    """The ranks of rows that stand in the board's order; each is worked out when it is asked for."""

    def __init__(self, means: Sequence[Points], halves: Sequence[Points | None]) -> None:
        """`means` falling; half of the interval of each, or None."""
        pairs = list(zip(means, halves, strict=True))
        self._pairs: Sequence[tuple[Points, Points | None]] = pairs
        self._falling: Sequence[Points] = [-mean for mean in means]
        self._lows: Sequence[Points] = sorted(mean - (half or 0) for mean, half in pairs)
        self._highs: Sequence[Points] = sorted(mean + (half or 0) for mean, half in pairs)

    def at(self, place: int) -> tuple[int, int, int]:
        """Rank, best rank and worst rank of the row at `place` (from 0). Better for sure: whose lower end lies above
        this row's upper; worse for sure: whose upper end lies below.
        """
        mean, half = self._pairs[place]
        rank = bisect_left(self._falling, -mean) + 1
        if half is None:
            return rank, rank, rank
        better = len(self._lows) - bisect_right(self._lows, mean + half)
        worse = bisect_left(self._highs, mean - half)
        return rank, min(rank, better + 1), max(rank, len(self._lows) - worse)
