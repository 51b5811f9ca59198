"""Room: portal.leaderboard. What pages, API and CSV show of boards: one reading for all three, so they can't differ."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from django.db.models import QuerySet
from django.http import Http404
from django.utils.translation import gettext as _

from portal.catalog.models import Domain, Task
from portal.leaderboard.models import Board, BoardTask, EntryCell, LeaderboardEntry
from portal.leaderboard.order import Order, Seat, Wish, order_of, sort_known, values_of
from portal.leaderboard.sound import Sieve


class Cell(NamedTuple):
    """One task of a row: points, repeats, half of the interval over repeats (None: one repeat), the runs behind it."""

    task: str
    final: Decimal | None
    best: Decimal | None
    n: int
    spread: Decimal | None
    usd: Decimal | None
    hours: float | None
    runs: tuple[int, ...]


@dataclass(frozen=True)
class BoardRow:
    """One row as shown. With `stated` the means are the source's own, for a row without task rows. `flags` name fields
    that held something no board can show: such values count as unknown.
    """

    id: int
    rank: int | None
    rank_low: int | None
    rank_high: int | None
    ranked: bool
    team: str
    team_slug: str
    agent: str
    model: str
    config: int | None
    engine_version: str
    tier: str
    source: str
    note: str
    badges: tuple[str, ...]
    mean_final: Decimal | None
    mean_best: Decimal | None
    done_final: Decimal | None
    half_width: Decimal | None
    stated: bool
    domains: Mapping[str, Decimal | None]
    cells: Mapping[str, Cell]
    tasks_done: int
    tasks_total: int
    n_runs: int
    usd: Decimal | None
    hours: float | None
    tokens: int | None
    scored_at: datetime | None
    url: str
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Column:
    """One task of the board, with its domain's code."""

    slug: str
    title: str
    number: int | None
    domain: str
    code: str
    hue: str


@dataclass(frozen=True)
class BoardPage:
    """A board in the order asked for. `rows` are those of the window; `count` match, and the board has `total`."""

    board: Board
    columns: tuple[Column, ...]
    domains: tuple[Domain, ...]
    rows: tuple[BoardRow, ...]
    count: int
    total: int
    tiers: frozenset[str]
    sort: str
    descending: bool


def boards_list() -> QuerySet[Board]:
    """All boards, the first one to show first."""
    return Board.objects.all()


def board_get(slug: str) -> Board:
    """The board at `slug`. Raises Http404."""
    board = Board.objects.filter(slug=slug).first()
    if board is None:
        raise Http404
    return board


def board_for_submission(slug: str) -> Board | None:
    """The board a run may be made for, or None when there is none of that name or it takes no runs."""
    return Board.objects.filter(slug=slug, open_for_runs=True).first()


def board_page(board: Board, wish: Wish = Wish(), window: slice = slice(None)) -> BoardPage:
    """The rows of `board` that match, in the order asked for; rows without a value always stand last.

    Of rows outside the `window` only what order and ranks need is read: four queries, whatever the size.
    """
    columns = list(board.columns.select_related("task__domain"))
    wish = replace(wish, sort=sort_known(wish.sort, columns))
    order = order_of(board, columns, wish)
    return _page(board, columns, order, order.seats(window), descending=wish.descending)


def entry_get(board_slug: str, entry_id: int) -> tuple[BoardPage, BoardRow]:
    """One row with its board, whose other rows are left out. Raises Http404."""
    board = board_get(board_slug)
    columns = list(board.columns.select_related("task__domain"))
    order = order_of(board, columns, Wish())
    at = next((at for at, row in enumerate(order.rows) if row[0] == entry_id), None)
    if at is None:
        raise Http404
    page = _page(board, columns, order, order.seats(slice(at, at + 1)), descending=False)
    return page, page.rows[0]


def _page(
    board: Board, columns: Sequence[BoardTask], order: Order, seats: Sequence[Seat], *, descending: bool
) -> BoardPage:
    domains = {column.task.domain.slug: column.task.domain for column in columns}
    return BoardPage(
        board=board,
        columns=tuple(_column(column) for column in columns),
        domains=tuple(domains.values()),
        rows=tuple(_filled(_rows(board, seats, len(columns)), columns)),
        count=len(order.chosen),
        total=order.total,
        tiers=frozenset(order.rows[at][3] for at in order.chosen),
        sort=order.sort,
        descending=descending,
    )


def cells_of_task(task: Task) -> QuerySet[EntryCell]:
    """Every board's result on `task`, best first, for the task's page."""
    return (
        EntryCell.objects.filter(task=task)
        .select_related("entry__board", "entry__team")
        .order_by("-final", "entry__scored_at")
    )


def entries_of_config(config_id: int) -> QuerySet[LeaderboardEntry]:
    """Rows of one agent config version."""
    return LeaderboardEntry.objects.filter(config=config_id).select_related("board")


def _rows(board: Board, seats: Sequence[Seat], columns: int) -> list[BoardRow]:
    """The rows at `seats`, without cells; one query. One that was removed meanwhile is left out."""
    found = board.entries.select_related("team").order_by().in_bulk([seat.key for seat in seats])
    address = board.get_absolute_url()
    return [_row(address, found[seat.key], seat, columns) for seat in seats if seat.key in found]


def _filled(rows: Sequence[BoardRow], columns: Sequence[BoardTask]) -> list[BoardRow]:
    """The same rows with their cells and domain means; one query."""
    slugs = {column.task_id: column.task.slug for column in columns}
    cells = EntryCell.objects.filter(entry__in=[row.id for row in rows]).order_by("pk")
    found: dict[int, list[tuple[str, tuple[Any, ...]]]] = {}
    read = values_of(cells.values_list("entry_id", "task_id", *_CELL))
    runs = json.loads(f"[{','.join(values[-1] for values in read)}]")  # at once: a call per cell takes longer
    for (entry, task, *values, _text), behind in zip(read, runs, strict=True):
        found.setdefault(entry, []).append((slugs.get(task, ""), (*values, behind)))
    domains = {column.task.slug: column.task.domain.slug for column in columns}
    return [_with_cells(row, found.get(row.id, []), domains) for row in rows]


def _with_cells(row: BoardRow, found: Sequence[tuple[str, tuple[Any, ...]]], domains: Mapping[str, str]) -> BoardRow:
    sieve = Sieve()
    cells = _cells(found, sieve)
    note = _note(row.note, sieve.faults)
    flags = (*row.flags, *sieve.faults)
    return replace(row, cells=cells, domains=_domain_means(cells, domains), note=note, flags=flags)


def _column(column: BoardTask) -> Column:
    task = column.task
    domain = task.domain
    return Column(task.slug, task.title, task.number, domain.slug, domain.code, domain.hue)


def _row(address: str, entry: LeaderboardEntry, seat: Seat, columns: int) -> BoardRow:
    sieve = Sieve()
    stated = entry.mean_final is None and entry.stated_final is not None
    team = entry.team
    mean_final = sieve.points("mean_final", entry.stated_final if stated else entry.mean_final)
    return BoardRow(
        id=entry.pk,
        rank=seat.rank,
        rank_low=seat.low,
        rank_high=seat.high,
        ranked=entry.ranked and mean_final is not None,
        team=team.shown_name if team else "",
        team_slug=team.slug if team else "",
        agent=entry.agent,
        model=entry.model,
        config=entry.config_id,
        engine_version=entry.engine_version,
        tier=entry.tier,
        source=entry.source,
        badges=sieve.texts("badges", entry.badges),
        mean_final=mean_final,
        mean_best=sieve.points("mean_best", entry.stated_best if stated else entry.mean_best),
        done_final=sieve.points("done_final", entry.done_final),
        half_width=sieve.money("half_width", entry.half_width),
        stated=stated,
        domains={},
        cells={},
        tasks_done=entry.tasks_done,
        tasks_total=columns,
        n_runs=entry.n_runs,
        usd=sieve.money("usd", entry.usd),
        hours=sieve.amount("hours", entry.hours),
        tokens=entry.tokens,
        scored_at=entry.scored_at,
        url=f"{address}{entry.pk}/",
        note=_note(entry.note, sieve.faults),
        flags=tuple(sieve.faults),
    )


def _note(note: str, faults: list[str]) -> str:
    if not faults:
        return note
    flagged = str(_("damaged row, shown without: {fields}")).format(fields=", ".join(faults))
    return f"{note}; {flagged}" if note else flagged


def _cells(found: Sequence[tuple[str, tuple[Any, ...]]], sieve: Sieve) -> dict[str, Cell]:
    cells = {}
    for slug, values in found:
        if slug:
            cells[slug] = _cell(slug, values, sieve)
        else:
            sieve.refuse("cells of other tasks")
    return cells


_CELL = ("final", "best", "n", "spread", "usd", "hours", "runs")


def _cell(slug: str, values: tuple[Any, ...], sieve: Sieve) -> Cell:
    final, best, n, spread, usd, hours, runs = values
    return Cell(
        task=slug,
        final=sieve.points("cell.final", final),
        best=sieve.points("cell.best", best),
        n=n,
        spread=sieve.money("cell.spread", spread),
        usd=sieve.money("cell.usd", usd),
        hours=sieve.amount("cell.hours", hours),
        runs=sieve.keys("cell.runs", runs),
    )


def _domain_means(cells: Mapping[str, Cell], domains: Mapping[str, str]) -> dict[str, Decimal | None]:
    """Mean final per domain over all its tasks (`domains`: by task); None where the row has no result in it."""
    sizes = Counter(domains.values())
    known: dict[str, list[Decimal]] = {domain: [] for domain in sizes}
    for task, domain in domains.items():
        cell = cells.get(task)
        if cell and cell.final is not None:
            known[domain].append(cell.final)
    return {domain: sum(finals, Decimal(0)) / sizes[domain] if finals else None for domain, finals in known.items()}
