"""Room: portal.leaderboard. The published InnovatorBench results as reported rows, computed from their task rows.

Source: arXiv 2510.27598, tables 3, 5 and 6. Means are never taken from the source, except for a row without task
rows: that one is shown as its source states it, and never ranked.
"""

from collections.abc import Mapping

from django.db import transaction
from django.utils.translation import gettext_noop

from portal.catalog.published import PublishedEntry, PublishedResult, published_results
from portal.leaderboard.models import Board, EntryCell, LeaderboardEntry, Tier
from portal.leaderboard.totals import CellFacts, totals_of

BOARDS = {"none": "innovatorbench-20", "upfront": "innovatorbench-20-upfront"}
NOTE = gettext_noop("paper-reported, single run, not verified here")


def published_import() -> int:
    """Write the reported rows of both boards; returns how many. Safe to call again: keyed by agent and model."""
    rows = published_results().entries
    for row in rows:
        _entry_import(row)
    return len(rows)


@transaction.atomic
def _entry_import(row: PublishedEntry) -> None:
    board = Board.objects.get(slug=BOARDS[row.hint])
    columns = {column.task.number: column.task_id for column in board.columns.select_related("task")}
    cells = {columns[result.task]: _cell(result) for result in row.results}
    entry, _made = LeaderboardEntry.objects.update_or_create(
        board=board,
        key=f"reported:{row.agent}:{row.model}"[:160],
        defaults={
            "agent": row.agent,
            "model": row.model,
            "source": f"arXiv 2510.27598, {row.source}",
            "tier": Tier.REPORTED,
            "ranked": bool(cells),
            "note": row.note or NOTE,
            "stated_final": None if cells else row.published_mean.final,
            "stated_best": None if cells else row.published_mean.best,
            **totals_of(cells, columns=len(columns)).columns(),
        },
    )
    _cells_write(entry, cells)


def _cells_write(entry: LeaderboardEntry, cells: Mapping[int, CellFacts]) -> None:
    entry.cells.all().delete()
    EntryCell.objects.bulk_create(
        EntryCell(entry=entry, task_id=task, final=cell.final, best=cell.best, n=1, usd=cell.usd, hours=cell.hours)
        for task, cell in cells.items()
    )


def _cell(result: PublishedResult) -> CellFacts:
    return CellFacts(final=result.final, best=result.best, usd=result.usd, hours=float(result.hours))
