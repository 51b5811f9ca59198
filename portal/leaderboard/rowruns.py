"""Room: portal.leaderboard. The runs behind a row of a board, and what becomes of each. Only reads.

Every run that a team started for a board stands here, also a failed, lost or superseded one: a row is made of those
that count, its evidence page lists all.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from django.db.models import QuerySet
from django.utils.translation import gettext_noop

from portal.leaderboard.models import Board
from portal.nodes.models import Lease
from runs.models.evaluation import By, EvaluationState
from runs.models.run import Run
from runs.states import End


class Fate(StrEnum):
    """What a run does to its row."""

    COUNTED = "counted"
    UNDER_WAY = "under_way"  # not ended yet
    PENDING = "pending"  # ended, its score still to come
    INFRASTRUCTURE = "infrastructure"  # ended by our machinery: in no mean, listed apart
    SUPERSEDED = "superseded"  # a later attempt of the same repeat exists
    OFF_BOARD = "off_board"  # the board has no such task


WORDS = (
    gettext_noop("counted"),
    gettext_noop("under way"),
    gettext_noop("pending"),
    gettext_noop("infrastructure"),
    gettext_noop("superseded"),
    gettext_noop("off board"),
)


@dataclass(frozen=True)
class RowRun:
    """One run with its place in a submission; runs outside one are the first attempt of a repeat of their own."""

    run: Run
    fate: Fate
    submission: int | None
    repeat: int
    attempt: int

    @property
    def task(self) -> int:
        return self.run.task_version.task_id


def board_runs(board: Board, team_id: int | None) -> QuerySet[Run]:
    """Every run of a team that was started for `board`, oldest first, with all that rows and evidence need."""
    runs = Run.objects.filter(board=board.slug, team=team_id).order_by("id")
    return runs.select_related("config", "task_version__task", "place__submission").prefetch_related(
        "evaluations__revision"
    )


def row_runs(runs: Iterable[Run], tasks: Sequence[int]) -> list[RowRun]:
    """What becomes of each of `runs` (one row's) on a board of `tasks` (primary keys)."""
    everything = list(runs)
    newest: dict[tuple[int, int, int], int] = {}
    for run in everything:
        place = getattr(run, "place", None)
        if place is not None:
            key = (place.submission_id, place.task_version_id, place.repeat)
            newest[key] = max(newest.get(key, 0), place.attempt)
    return [_row_run(run, newest, tasks) for run in everything]


def _row_run(run: Run, newest: dict[tuple[int, int, int], int], tasks: Sequence[int]) -> RowRun:
    place = getattr(run, "place", None)
    if place is None:
        return RowRun(run, _fate(run, latest=True, tasks=tasks), None, 1, 1)
    latest = newest[place.submission_id, place.task_version_id, place.repeat] == place.attempt
    fate = _fate(run, latest=latest, tasks=tasks)
    return RowRun(run, fate, place.submission_id, place.repeat, place.attempt)


def _fate(run: Run, *, latest: bool, tasks: Sequence[int]) -> Fate:
    if run.task_version.task_id not in tasks:
        return Fate.OFF_BOARD
    if not latest:
        return Fate.SUPERSEDED
    if not run.ended:
        return Fate.UNDER_WAY
    if run.end_reason == End.INFRASTRUCTURE:
        return Fate.INFRASTRUCTURE
    return Fate.PENDING if score_pending(run) else Fate.COUNTED


def score_pending(run: Run) -> bool:
    """The run ended by itself and its final evaluation has no result yet: asked for, or failed through us."""
    if run.score is not None or run.end_reason == End.CANCELLED:
        return False
    finals = [one for one in run.evaluations.all() if one.by == By.FINAL]
    return any(one.state != EvaluationState.SCORED for one in finals)


def final_score(run: Run) -> Decimal:
    """Points that a counted run brings. Without a final evaluation: the last one's; cancelled or never scored: 0."""
    if run.score is not None:
        return run.score
    if run.end_reason == End.CANCELLED:
        return Decimal(0)
    scored = [one.score for one in run.evaluations.all() if one.score is not None]
    return scored[-1] if scored else Decimal(0)


def leases_by_run(runs: Iterable[Run]) -> dict[int, list[Lease]]:
    """The machines that each run held, ended leases too; one query."""
    keys = {run.key: run.pk for run in runs}
    found: dict[int, list[Lease]] = {pk: [] for pk in keys.values()}
    for lease in Lease.objects.filter(run_key__in=keys).select_related("node").order_by("id"):
        found[keys[lease.run_key]].append(lease)
    return found
