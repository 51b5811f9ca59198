"""Room: portal.leaderboard. From cells to a row's totals. Pure arithmetic over Decimals; no database."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from portal.leaderboard.ranking import half_width, mean_of


@dataclass(frozen=True)
class CellFacts:
    """One task of a row: means over `n` repeats. Points 0 to 100, USD, hours; None: not known."""

    final: Decimal | None
    best: Decimal | None
    n: int = 1
    usd: Decimal | None = None
    hours: float | None = None
    spread: Decimal | None = None
    tokens: int | None = None


@dataclass(frozen=True)
class Totals:
    """A row's figures. `mean_*` over all tasks of the board, `done_final` over those with a result."""

    mean_final: Decimal | None
    mean_best: Decimal | None
    done_final: Decimal | None
    half_width: Decimal | None
    tasks_done: int
    n_runs: int
    usd: Decimal | None
    hours: float | None
    tokens: int | None

    def columns(self) -> dict[str, Any]:
        """As the columns of an entry."""
        return dict(self.__dict__)


def totals_of(cells: Mapping[int, CellFacts], *, columns: int) -> Totals:
    """Totals of `cells` on a board of `columns` tasks; a task without a result counts 0 in the means."""
    done = [cell for cell in cells.values() if cell.final is not None]
    if not done or not columns:
        return Totals(None, None, None, None, 0, 0, None, None, None)
    missing = [Decimal(0)] * (columns - len(done))
    finals = [cell.final for cell in done if cell.final is not None]
    bests = [cell.best if cell.best is not None else Decimal(0) for cell in done]
    costs = [cell.usd for cell in done if cell.usd is not None]
    hours = [cell.hours for cell in done if cell.hours is not None]
    tokens = [cell.tokens for cell in done if cell.tokens is not None]
    return Totals(
        mean_final=_exact(mean_of(finals + missing)),
        mean_best=_exact(mean_of(bests + missing)),
        done_final=_exact(mean_of(finals)),
        half_width=half_width(finals + missing),
        tasks_done=len(done),
        n_runs=sum(cell.n for cell in done),
        usd=_exact(mean_of(costs)) if costs else None,
        hours=sum(hours) / len(hours) if hours else None,
        tokens=sum(tokens) if tokens else None,
    )


def _exact(value: Decimal) -> Decimal:
    return value.quantize(Decimal("0.000001"))
