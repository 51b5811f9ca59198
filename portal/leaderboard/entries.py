"""Room: portal.leaderboard. Entries from runs: rebuilt from nothing each time, so they can't drift from the truth.

Every run that a team started for a board counts once it has ended. Infrastructure failures and scores still pending are
left out of the means; a run cancelled by its team counts 0; of a repeat the latest attempt counts. What takes a row out
of the ranking is in trust.py, with the reason in the row's note.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from django.db import transaction

from portal.leaderboard.models import Board, BoardTask, EntryCell, LeaderboardEntry
from portal.leaderboard.ranking import half_width, mean_of
from portal.leaderboard.rowruns import Fate, board_runs, final_score, leases_by_run, row_runs
from portal.leaderboard.totals import CellFacts, totals_of
from portal.leaderboard.trust import badges_of, tier_of, unranked_because
from runs.models.run import Run

_STEP = Decimal("0.000001")


def on_run_changed(body: Mapping[str, Any]) -> None:
    """Outbox handler: a run was scored, ended, or its final score failed to come. Twice is as good as once."""
    run = Run.objects.select_related("config").filter(pk=body["run"]).first()
    if run is None or not run.board:
        return
    board = Board.objects.filter(slug=run.board).first()
    if board is not None:
        entry_rebuild(board=board, run=run)


@transaction.atomic
def entry_rebuild(*, board: Board, run: Run) -> LeaderboardEntry | None:
    """Make the row that `run` belongs to anew from all its runs; None while none of them counts."""
    Board.objects.select_for_update(no_key=True).get(pk=board.pk)
    columns = {column.task_id: column for column in board.columns.all()}
    same = board_runs(board, run.team_id).filter(config=run.config_id, engine_version=run.engine_version)
    counted = [one.run for one in row_runs(same, list(columns)) if one.fate is Fate.COUNTED]
    key = f"run:{run.team_id}:{run.config_id}:{run.engine_version}"
    if not counted:
        LeaderboardEntry.objects.filter(board=board, key=key).delete()
        return None
    groups = _by_task(counted)
    cells = {task: _cell(group) for task, group in groups.items()}
    facts = {
        **_identity(counted),
        **_trust(counted, board, columns),
        **totals_of(cells, columns=len(columns)).columns(),
    }
    entry, _made = LeaderboardEntry.objects.update_or_create(board=board, key=key, defaults=facts)
    entry.cells.all().delete()
    EntryCell.objects.bulk_create(_row(entry, task, cell, groups[task]) for task, cell in cells.items())
    return entry


def _by_task(runs: Sequence[Run]) -> dict[int, list[Run]]:
    groups: dict[int, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.task_version.task_id, []).append(run)
    return groups


def _cell(runs: Sequence[Run]) -> CellFacts:
    finals = [final_score(run) for run in runs]
    bests = [run.best if run.best is not None else Decimal(0) for run in runs]
    unpriced = any(run.unpriced for run in runs)
    return CellFacts(
        final=mean_of(finals).quantize(_STEP),
        best=mean_of(bests).quantize(_STEP),
        n=len(runs),
        usd=None if unpriced else mean_of([run.usd for run in runs]).quantize(_STEP),
        hours=sum(run.charged_s for run in runs) / len(runs) / 3600,
        spread=half_width(finals),
        tokens=sum(run.tokens for run in runs),
    )


def _identity(runs: Sequence[Run]) -> dict[str, Any]:
    """Who and what; the model as the provider returned it, each name once where it changed between runs."""
    run = runs[0]
    named = str((run.config.spec.get("model") or {}).get("name", ""))
    returned = dict.fromkeys(one.model_returned for one in runs if one.model_returned)
    return {
        "team_id": run.team_id,
        "config_id": run.config_id,
        "engine_version": run.engine_version,
        "agent": run.config.name,
        "model": (", ".join(returned) or named)[:160],
        "source": "",
        "stated_final": None,
        "stated_best": None,
    }


def _trust(runs: Sequence[Run], board: Board, columns: Mapping[int, BoardTask]) -> dict[str, Any]:
    reasons = {why for run in runs for why in unranked_because(run, board, columns.get(run.task_version.task_id))}
    scored = [one.scored_at for run in runs for one in run.evaluations.all() if one.scored_at]
    return {
        "ranked": not reasons,
        "note": "; ".join(sorted(reasons))[:300],
        "tier": tier_of(runs, leases_by_run(runs)),
        "badges": badges_of(runs),
        "scored_at": max(scored, default=None),
    }


def _row(entry: LeaderboardEntry, task: int, cell: CellFacts, runs: Sequence[Run]) -> EntryCell:
    return EntryCell(
        entry=entry,
        task_id=task,
        final=cell.final,
        best=cell.best,
        n=cell.n,
        spread=cell.spread,
        usd=cell.usd,
        hours=cell.hours,
        runs=[run.pk for run in runs],
    )
