"""Room: portal.leaderboard. The order and the ranks of a board's rows, from few columns of all of them.

A board may hold ten thousand rows and show a hundred: only what order and rank need is read of each, as whole numbers
where it can be, and values no board can show (sound.py) count as unknown here too.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.models import BigIntegerField, Case, F, FilteredRelation, Q, QuerySet, Sum, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast
from django.utils.translation import gettext as _

from portal.leaderboard.models import Board, BoardTask, LeaderboardEntry
from portal.leaderboard.ranking import Places
from portal.leaderboard.sorting import in_order

MICRO = 1_000_000  # points are stored with six decimals: whole numbers of millionths are exact
DOMAIN = "domain:"


@dataclass(frozen=True)
class Wish:
    """What is asked of a board. `sort`: a name of SORTS or `domain:SLUG`; others: rank. `tiers` None: any."""

    sort: str = "rank"
    descending: bool = False
    search: str = ""
    tiers: Collection[str] | None = None


@dataclass(frozen=True)
class Seat:
    """One row's key and ranks; None: unranked."""

    key: int
    rank: int | None = None
    low: int | None = None
    high: int | None = None


@dataclass(frozen=True)
class Order:
    """The rows that match, in the order asked for: their seats, made when asked for. `total`: rows of the board."""

    rows: Sequence[tuple[Any, ...]]
    chosen: Sequence[int]
    sort: str

    @property
    def total(self) -> int:
        return len(self.rows)

    def seats(self, window: slice) -> list[Seat]:
        """The seats in `window` of the matching rows."""
        ranked = [row for row in self.rows if row[1] is not None]
        places = Places([row[1] for row in ranked], [row[2] for row in ranked])
        return [
            Seat(self.rows[at][0], *places.at(at)) if at < len(ranked) else Seat(self.rows[at][0])
            for at in self.chosen[window]
        ]


def _sound(name: str, most: float) -> Case:
    """The column, or NULL where it holds something no board can show; PostgreSQL's NaN is above every number."""
    return Case(When(**{f"{name}__gte": 0, f"{name}__lte": most}, then=F(name)))


def _mean(name: str) -> Case:
    stated = Q(mean_final__isnull=True, stated_final__isnull=False)
    return Case(When(stated, then=_sound(f"stated_{name}", 100)), default=_sound(f"mean_{name}", 100))


def _micro(name: str, most: int, **conditions: Any) -> Case:
    whole = Cast(F(name) * MICRO, BigIntegerField())
    return Case(When(**{f"{name}__gte": 0, f"{name}__lte": most}, **conditions, then=whole))


def _folded(text: Any) -> str | None:
    return str(text).casefold() or None if text is not None else None


def _team_folded(name: Any, deleted_at: Any) -> str | None:
    return _folded(_("deleted user") if deleted_at else name)


_TEAM = (F("team__name"), F("team__deleted_at"))
# The columns that a sort reads, and the value they make where it is not the column itself.
SORTS: Mapping[str, tuple[tuple[Combinable, ...], Callable[..., Any] | None]] = {
    "rank": ((), None),  # the order in which they are read
    "team": (_TEAM, _team_folded),
    "agent": ((F("agent"),), _folded),
    "model": ((F("model"),), _folded),
    "final": ((_mean("final"),), None),
    "best": ((_mean("best"),), None),
    "tasks": ((F("tasks_done"),), None),
    "runs": ((F("n_runs"),), None),
    "cost": ((_sound("usd", 1e9),), None),
    "hours": ((_sound("hours", 1e300),), None),
    "tokens": ((F("tokens"),), None),
    "date": ((F("scored_at"),), None),
}
_BASE = {"ib_mean": _micro("mean_final", 100, ranked=True), "ib_half": _micro("half_width", 999)}
_TEXTS = ("agent", "model", "note", "team__name", "team__deleted_at")


def order_of(board: Board, columns: Sequence[BoardTask], wish: Wish) -> Order:
    """The rows of `board` that match, in order; one query."""
    entries = board.entries.annotate(**_BASE)
    entries, keys, value = _sorted_by(entries, columns, wish.sort)
    texts = _TEXTS if wish.search else ()
    found = entries.order_by(F("ib_mean").desc(nulls_last=True), F("scored_at").asc(nulls_last=True), "pk")
    rows = values_of(found.values_list("pk", "ib_mean", "ib_half", "tier", *keys, *texts))
    chosen: Sequence[int] = range(len(rows))
    if wish.tiers is not None:
        chosen = [at for at in chosen if rows[at][3] in wish.tiers]
    if wish.search:
        chosen = [at for at in chosen if _matches(rows[at][-len(_TEXTS) :], wish.search.casefold())]
    if keys:
        chosen = in_order(chosen, lambda at: value(*rows[at][4 : 4 + len(keys)]), descending=wish.descending)
    elif wish.descending:  # by rank, that is by the mean, from the last one on
        chosen = in_order(chosen, lambda at: rows[at][1], descending=False)
    return Order(rows, chosen, wish.sort)


def values_of(query: QuerySet[Any, tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows of a `values_list` as the driver gives them. Django's own conversions of values that are right already
    take longer than reading them; JSON stays text.
    """
    try:
        asked = query.query.sql_with_params()
    except EmptyResultSet:  # Django knows without asking
        return []
    with connections[query.db].cursor() as cursor:
        cursor.execute(*asked)
        return list(cursor.fetchall())


def sort_known(sort: str, columns: Sequence[BoardTask]) -> str:
    """`sort`, or `rank` where the board has no such column."""
    domains = {DOMAIN + column.task.domain.slug for column in columns}
    return sort if sort in SORTS or sort in domains else "rank"


def _sorted_by(
    entries: QuerySet[LeaderboardEntry], columns: Sequence[BoardTask], sort: str
) -> tuple[QuerySet[Any], list[str], Callable[..., Any]]:
    """The rows with the columns that `sort` reads, the names of these, and what makes one value of them."""
    if sort.startswith(DOMAIN):
        tasks = [column.task_id for column in columns if DOMAIN + column.task.domain.slug == sort]
        sound = Q(cells__task__in=tasks, cells__final__gte=0, cells__final__lte=100)
        entries = entries.annotate(ib_cell=FilteredRelation("cells", condition=sound))
        return entries.annotate(ib_sort=Sum("ib_cell__final")), ["ib_sort"], _itself
    read, value = SORTS[sort]
    named = {f"ib_sort{number}": column for number, column in enumerate(read)}
    return entries.annotate(**named), list(named), value or _itself


def _itself(value: Any) -> Any:
    return value


def _matches(texts: tuple[Any, ...], wanted: str) -> bool:
    agent, model, note, team, deleted_at = texts
    shown = _("deleted user") if deleted_at else team or ""
    return any(wanted in text.casefold() for text in (agent, model, note, shown))
