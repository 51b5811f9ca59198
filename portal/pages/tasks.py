"""Room: portal.pages. What the pages of tasks show: text, curves, results."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from evaluator.manifest import ScoreRule
from portal.catalog.models import Task, TaskVersion
from portal.catalog.selectors import DomainTasks, task_sheet, tasks_by_domain, version_current, versions_of
from portal.catalog.sheets import TaskSheet
from portal.core import charts
from portal.core.markdown import markdown_html
from portal.leaderboard.models import EntryCell
from portal.leaderboard.selectors import cells_of_task

MOST_RESULTS = 60


@dataclass(frozen=True)
class CurveView:
    """One curve of a task's score: its plot and the points as a table."""

    name: str
    metric: str
    label: str
    plot: charts.Plot
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class TaskLine:
    """A task in the list: whether it can be run here, and its limits."""

    task: Task
    sheet: TaskSheet | None
    runnable: bool


@dataclass(frozen=True)
class DomainLines:
    """One domain of the list."""

    slug: str
    name: str
    hue: str
    lines: tuple[TaskLine, ...]


@dataclass(frozen=True)
class TaskPage:
    """A task's page. `version` is None where nobody brought the data of a published task."""

    task: Task
    version: TaskVersion | None
    sheet: TaskSheet | None
    text: SafeString
    curves: tuple[CurveView, ...]
    versions: Sequence[TaskVersion]
    results: Sequence[EntryCell]


def tasks_page(suite: str = "") -> tuple[DomainLines, ...]:
    """Every task by domain; `suite` narrows it."""
    return tuple(_domain(group) for group in tasks_by_domain(suite=suite or None))


def _domain(group: DomainTasks) -> DomainLines:
    lines = tuple(TaskLine(task, task_sheet(task), runnable=version_current(task) is not None) for task in group.tasks)
    return DomainLines(group.domain.slug, group.domain.name, group.domain.hue, lines)


def task_page(task: Task, number: int | None = None) -> TaskPage:
    """The page of `task`, of its version `number` where one is asked for."""
    versions = list(versions_of(task))
    chosen = next((v for v in versions if v.number == number), None) or version_current(task)
    sheet = task_sheet(task, chosen)
    return TaskPage(
        task=task,
        version=chosen,
        sheet=sheet,
        text=markdown_html(_below_title(chosen.description, task.title)) if chosen else SafeString(""),
        curves=curve_views(sheet.score) if sheet and sheet.score else (),
        versions=versions,
        results=list(cells_of_task(task)[:MOST_RESULTS]),
    )


def _below_title(text: str, title: str) -> str:
    """The text without a first line that only repeats the title: the page has it above already."""
    first, _, rest = text.lstrip().partition("\n")
    return rest if first.lstrip("# ").strip() == title.strip() else text


def curve_views(score: ScoreRule) -> tuple[CurveView, ...]:
    """The curves of a score, each with its baseline and reference marked where its points name them."""
    return tuple(_curve(name, curve.metric, curve.points, score) for name, curve in score.curves.items())


def _curve(name: str, metric: str, given: Sequence[tuple[float, float]], score: ScoreRule) -> CurveView:
    pairs = tuple((float(x), float(y)) for x, y in given)
    baseline, reference = _marks(pairs, score.baseline / 100, score.reference / 100)
    points = ", ".join(_("{y} at {x}").format(y=f"{y:g}", x=f"{x:g}") for x, y in pairs)
    label = _("{name} over {metric}: {points}").format(name=name, metric=metric, points=points)
    return CurveView(name, metric, label, charts.curve_plot(pairs, baseline=baseline, reference=reference), pairs)


def _marks(
    pairs: Sequence[tuple[float, float]], baseline: float, reference: float
) -> tuple[float, float] | tuple[None, None]:
    """Where baseline and reference lie: only on a curve that has one point of its own for each, else nowhere."""
    zeros = [x for x, y in pairs if y == baseline]
    goals = [x for x, y in pairs if y == reference]
    return (zeros[0], goals[0]) if len(zeros) == len(goals) == 1 else (None, None)
