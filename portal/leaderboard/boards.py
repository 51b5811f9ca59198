"""Room: portal.leaderboard. The boards that ship, and which task versions stand on them."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db import transaction
from django.utils.translation import gettext_noop

from portal.catalog.models import SeedKind, Size, Suite, Task, TaskVersion
from portal.catalog.selectors import version_current
from portal.leaderboard.models import Board, BoardTask, HintRule


@dataclass(frozen=True)
class BoardFacts:
    """One board as shipped. `suite` names the tasks that stand on it; `seed` the only builds it takes (None: any). A
    board of builds that nobody has made yet is not there.
    """

    slug: str
    title: str
    about: str
    suite: Suite
    hint_rule: HintRule = HintRule.NONE
    answers_public: bool = False
    open_for_runs: bool = True
    seed: SeedKind | None = None


SHIPPED = (
    BoardFacts(
        "innovatorbench-20",
        "InnovatorBench-20",
        gettext_noop(
            "The twenty published research tasks. Rows reported by the paper; runs here once their data is brought."
        ),
        Suite.INNOVATORBENCH,
        open_for_runs=False,
    ),
    BoardFacts(
        "innovatorbench-20-upfront",
        gettext_noop("InnovatorBench-20, hint upfront"),
        gettext_noop("The same tasks with the hint in the task text. A board of its own: a hint changes the problem."),
        Suite.INNOVATORBENCH,
        hint_rule=HintRule.UPFRONT,
        open_for_runs=False,
    ),
    BoardFacts(
        "nano",
        "Nano",
        gettext_noop(
            "Small tasks for two CPU cores, minutes instead of days. Built from this installation's own secret seed."
        ),
        Suite.NANO,
        seed=SeedKind.SECRET,
    ),
    BoardFacts(
        "nano-public",
        gettext_noop("Nano, public seed"),
        gettext_noop(
            "Small tasks for two CPU cores, minutes instead of days. Built from the public seed: answers are public."
        ),
        Suite.NANO,
        answers_public=True,
        seed=SeedKind.PUBLIC,
    ),
)


def boards_ensure() -> tuple[Board, ...]:
    """The shipped boards, made where missing; columns follow the catalog. Changes nothing when called again."""
    wanted = [(position, facts) for position, facts in enumerate(SHIPPED) if _has_builds(facts)]
    return tuple(_board_ensure(facts, position) for position, facts in wanted)


def _has_builds(facts: BoardFacts) -> bool:
    secret = TaskVersion.objects.filter(seed_kind=SeedKind.SECRET, task__suite=facts.suite)
    return facts.seed is not SeedKind.SECRET or secret.exists()


@transaction.atomic
def _board_ensure(facts: BoardFacts, position: int) -> Board:
    board, _made = Board.objects.get_or_create(
        slug=facts.slug,
        defaults={
            "title": facts.title,
            "about": facts.about,
            "hint_rule": facts.hint_rule,
            "answers_public": facts.answers_public,
            "open_for_runs": facts.open_for_runs,
            "position": position,
        },
    )
    columns_ensure(board=board, tasks=Task.objects.filter(suite=facts.suite, owner=None), seed=facts.seed)
    return board


def columns_ensure(*, board: Board, tasks: Iterable[Task], seed: SeedKind | None = None) -> None:
    """Add the columns of `tasks` that `board` lacks, and freeze the current version where none was frozen. A small
    build holds a column only until there is a full one: its scores never rank, so nothing that ranked is lost.
    """
    known = {column.task_id: column for column in board.columns.select_related("version")}
    for task in tasks:
        newest = version_current(task, seed=seed)
        column = known.get(task.pk)
        if column is None:
            known[task.pk] = BoardTask.objects.create(board=board, task=task, version=newest, position=len(known))
        elif newest is not None and _replaceable(column.version, newest):
            BoardTask.objects.filter(pk=column.pk, version=column.version).update(version=newest)


def _replaceable(frozen: TaskVersion | None, newest: TaskVersion) -> bool:
    return frozen is None or (frozen.size == Size.SMALL and newest.size == Size.FULL)
