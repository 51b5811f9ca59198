"""Room: portal.pages. What the first page shows: runs under way, the top of the board, the newest tasks."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser

from portal.accounts.models import User
from portal.accounts.selectors import team_of
from portal.catalog.models import TaskVersion
from portal.catalog.selectors import DomainTasks, tasks_by_domain, versions_runnable
from portal.core import charts
from portal.leaderboard.models import Board
from portal.leaderboard.presenters import Line, top_lines
from portal.leaderboard.selectors import boards_list
from portal.submissions.quota import Quota, quota_of
from runs.models.run import Run
from runs.presenters import reason_text, run_strip, score_points
from runs.selectors import Viewer, runs_list_for, runs_live_for, working_s

MOST_RUNS = 5
MOST_ROWS = 5
MOST_TASKS = 6
RECORD_STEPS = (4, 600)
ROOM = 14.0  # percent of the width that a score needs at its dot


@dataclass(frozen=True)
class RunLine:
    """A run in a list with its budget and its score so far."""

    run: Run
    reason: str
    elapsed_s: float
    spark: charts.Spark


@dataclass(frozen=True)
class Record:
    """A finished public run as the figure beside the sentence: its score and its strip on one axis of steps."""

    run: Run
    plot: charts.Spark
    scores: tuple[charts.Point, ...]
    strip: charts.Strip


@dataclass(frozen=True)
class HomePage:
    """The first page."""

    live: tuple[RunLine, ...]
    live_count: int
    recent: tuple[RunLine, ...]
    board: Board | None
    top: tuple[Line, ...]
    newest: Sequence[TaskVersion]
    domains: Sequence[DomainTasks]
    quota: Quota | None
    record: Record | None


def run_lines(runs: Sequence[Run]) -> tuple[RunLine, ...]:
    """Runs as lines; their evaluations should be prefetched."""
    return tuple(_line(run) for run in runs)


def _line(run: Run) -> RunLine:
    now = working_s(run)
    return RunLine(run, reason_text(run), now, charts.spark(score_points(run), now=now, limit=run.limit_s))


def live_lines(user: Viewer) -> tuple[tuple[RunLine, ...], int]:
    """The newest runs under way that the reader may see, then queued ones, and how many there are."""
    runs = runs_live_for(user).prefetch_related("evaluations")
    return run_lines(list(runs[:MOST_RUNS])), runs.count()


def home_page(user: Viewer) -> HomePage:
    """Everything on the first page."""
    live, count = live_lines(user)
    recent = [] if live else list(runs_list_for(user, status=["finished"]).prefetch_related("evaluations")[:3])
    board = next((b for b in boards_list() if b.entries.exists()), None)
    newest = sorted(versions_runnable(), key=lambda v: v.published_at or v.created_at, reverse=True)
    return HomePage(
        live=live,
        live_count=count,
        recent=run_lines(recent),
        board=board,
        top=top_lines(board, MOST_ROWS) if board else (),
        newest=newest[:MOST_TASKS],
        domains=tasks_by_domain(),
        quota=quota_of(team_of(user)) if isinstance(user, User) else None,
        record=_record(),
    )


def _record() -> Record | None:
    found = runs_list_for(AnonymousUser(), status=["finished"]).filter(steps__range=RECORD_STEPS, score__isnull=False)
    run = found.prefetch_related("evaluations").first()
    if run is None:
        return None
    evaluations = [e for e in run.evaluations.all() if e.score is not None]
    # The final one is scored after the last step: it stands at the right edge.
    places = [(min(e.step or run.steps, run.steps) - 0.5, e.score) for e in evaluations]
    plot = charts.spark(places, now=run.steps, limit=run.steps)
    ordered = sorted(evaluations, key=lambda e: e.step or run.steps)
    following = [*(float(point.x) for point in plot.points[1:]), math.inf]
    scores = tuple(
        charts.Point(
            point.x, point.y, f"{e.score:.1f}" if after - float(point.x) > ROOM else "", end=float(point.x) > 70
        )
        for point, e, after in zip(plot.points, ordered, following, strict=True)
    )
    return Record(run, plot, scores, run_strip(run, []))
