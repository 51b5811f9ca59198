"""Room: portal.leaderboard. What the board's page and a row's evidence page show beside the rows themselves."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from io import StringIO
from typing import Any

from django.core.paginator import Page, Paginator
from django.http import QueryDict
from django.utils.http import urlencode

from portal.core import charts
from portal.core.formats import rank_text
from portal.leaderboard.models import Board, Tier
from portal.leaderboard.order import SORTS, Wish
from portal.leaderboard.selectors import BoardPage, BoardRow, board_page, boards_list

ROWS_PER_PAGE = 100
MOST_IN_CHART = 24
MOST_IN_DOMAINS = 8
TIERS: Mapping[str, frozenset[str]] = {
    "scored_here": frozenset({Tier.SCORED_HERE.value, Tier.RUN_HERE.value}),
    "run_here": frozenset({Tier.RUN_HERE.value}),
}


@dataclass(frozen=True)
class Query:
    """The state of the page, as the address holds it."""

    sort: str = "rank"
    descending: bool = False
    search: str = ""
    tier: str = ""
    number: int = 1

    @classmethod
    def of(cls, given: Mapping[str, str]) -> "Query":
        """Read a query string; unknown values fall back."""
        return cls(
            sort=given.get("sort", "rank"),
            descending=given.get("desc") == "1",
            search="" if "\0" in given.get("q", "") else given.get("q", "").strip()[:80],
            tier=given.get("tier", "") if given.get("tier") in TIERS else "",
            number=_number(given.get("p", "")),
        )

    @property
    def address(self) -> str:
        """The query string of the same rows in the same order, for CSV and JSON, without what no board knows."""
        sort = "" if self.sort == "rank" else self.sort
        given = {"sort": sort, "desc": "1" if self.descending else "", "q": self.search, "tier": self.tier}
        known = {name: text for name, text in given.items() if text}
        return f"?{urlencode(known)}" if known else ""


# What an address may hold for its page to be kept: few enough to keep them all.
_OFTEN = {"sort": frozenset(SORTS), "desc": {"", "1"}, "tier": {"", *TIERS}, "q": {""}, "p": {"", "1"}}
KEPT_S = 60  # for what a board's version doesn't cover: titles of boards, tasks, domains


def kept_s(given: QueryDict) -> int:
    """Seconds for which the page of this query string is kept; 0: made anew each time."""
    often = all(len(texts) == 1 and texts[0] in _OFTEN.get(name, ()) for name, texts in given.lists())
    return KEPT_S if often else 0


def _number(text: str) -> int:
    return max(1, int(text)) if text.isascii() and text.isdecimal() and len(text) < 7 else 1


@dataclass(frozen=True)
class DomainMean:
    """One domain's mean of a row, in the board's order of domains."""

    hue: str
    code: str
    value: Any


@dataclass(frozen=True)
class Line:
    """A row with its places' text and its domains in order."""

    row: BoardRow
    place: str
    domains: tuple[DomainMean, ...]
    low: Decimal | None
    high: Decimal | None


@dataclass(frozen=True)
class DotRow:
    """One row of the domain chart."""

    name: str
    y: str
    low: str
    high: str
    marks: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Note:
    """A remark under the table and the rows it is about."""

    text: str
    about: str


@dataclass(frozen=True)
class BoardView:
    """The page of one board."""

    page: BoardPage
    boards: Sequence[Board]
    query: Query
    lines: tuple[Line, ...]
    pages: Page[int]
    cost: charts.Plot
    hours: charts.Plot
    dots: tuple[DotRow, ...]
    dot_ticks: tuple[charts.Tick, ...]
    all_reported: bool
    any_stated: bool
    notes: tuple[Note, ...]

    @property
    def figures(self) -> dict[str, int]:
        """The numbers of the figures that are there."""
        there = {"cost": self.cost.points, "hours": self.hours.points, "dots": self.dots}
        return {name: number for number, name in enumerate((name for name, drawn in there.items() if drawn), 1)}


def page_of(board: Board, query: Query, window: slice = slice(None)) -> BoardPage:
    """The board as the query asks for it: the same for page, CSV and JSON."""
    wish = Wish(query.sort, query.descending, query.search, TIERS.get(query.tier))
    return board_page(board, wish, window)


def board_view(board: Board, query: Query) -> BoardView:
    """Everything on the board's page. Charts are of the rows that the table shows."""
    page = page_of(board, query, _window(query.number))
    if page.count and not page.rows:
        return board_view(board, replace(query, number=(page.count - 1) // ROWS_PER_PAGE + 1))
    drawn = [row for row in page.rows if row.mean_final is not None and not row.stated][:MOST_IN_CHART]
    dots, ticks = _dots(drawn[:MOST_IN_DOMAINS], page)
    return BoardView(
        page=page,
        boards=list(boards_list()),
        query=query,
        lines=tuple(_line(row, page) for row in page.rows),
        pages=Paginator(range(page.count), ROWS_PER_PAGE).get_page(query.number),
        cost=charts.scatter([(row.usd, row.mean_final, row.model, row.tier) for row in drawn], log=True),
        hours=charts.scatter([(row.hours, row.mean_final, row.model, row.tier) for row in drawn]),
        dots=dots,
        dot_ticks=ticks,
        all_reported=page.tiers == {Tier.REPORTED.value},
        any_stated=any(row.stated for row in page.rows),
        notes=_notes(page.rows),
    )


def _window(number: int) -> slice:
    return slice((number - 1) * ROWS_PER_PAGE, number * ROWS_PER_PAGE)


def _notes(rows: Sequence[BoardRow]) -> tuple[Note, ...]:
    """Each note once, with the rows it is about."""
    groups: dict[str, list[str]] = {}
    for row in rows:
        if row.note:
            groups.setdefault(row.note, []).append(row.model or row.agent)
    return tuple(Note(text, ", ".join(dict.fromkeys(names))) for text, names in groups.items())


def top_lines(board: Board, count: int) -> tuple[Line, ...]:
    """The first rows of a board, for the first page."""
    page = board_page(board, window=slice(count))
    return tuple(_line(row, page) for row in page.rows if row.mean_final is not None)


def _line(row: BoardRow, page: BoardPage) -> Line:
    domains = tuple(DomainMean(d.hue, d.code, row.domains.get(d.slug)) for d in page.domains)
    place = rank_text(row.rank_low, row.rank_high) if row.ranked and row.rank is not None else ""
    if row.mean_final is None or row.half_width is None:
        return Line(row, place, domains, None, None)
    return Line(row, place, domains, row.mean_final - row.half_width, row.mean_final + row.half_width)


def _dots(rows: Sequence[BoardRow], page: BoardPage) -> tuple[tuple[DotRow, ...], tuple[charts.Tick, ...]]:
    hues = {domain.slug: domain.hue for domain in page.domains}
    values = [float(v) for row in rows for v in row.domains.values() if v is not None]
    ticks = charts.nice_ticks(0, max([*values, 10.0]), 5)
    top = ticks[-1]
    out = []
    for i, row in enumerate(rows):
        placed = [(hues[slug], charts.place(float(v), 0, top)) for slug, v in row.domains.items() if v is not None]
        if placed:
            xs = [x for _, x in placed]
            y = charts.num(100 * (i + 0.5) / len(rows))
            marks = tuple((hue, charts.num(x)) for hue, x in placed)
            out.append(DotRow(row.model or row.agent, y, charts.num(min(xs)), charts.num(max(xs)), marks))
    return tuple(out), tuple(charts.Tick(charts.num(charts.place(t, 0, top)), f"{t:g}") for t in ticks)


_FIELDS = (
    *("rank", "rank_low", "rank_high", "team", "agent", "model", "mean_final", "mean_best", "done_final"),
    *("half_width", "tasks_done", "tasks_total", "n_runs", "usd", "hours", "tokens", "tier", "source", "note"),
)


def formula_shut(text: object) -> object:
    """A text that a spreadsheet would run as a formula gets an apostrophe in front."""
    return f"'{text}" if isinstance(text, str) and text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def csv_lines(page: BoardPage) -> Iterator[str]:
    """The table as CSV: one line at a time, domains and tasks as columns, empty where unknown."""
    domains = [domain.slug for domain in page.domains]
    tasks = [column.slug for column in page.columns]
    head = [*_FIELDS, "badges", "scored_at", *(f"domain:{d}" for d in domains), *(f"task:{t}" for t in tasks)]
    yield _csv(head)
    for row in page.rows:
        when = row.scored_at.isoformat() if row.scored_at else ""
        cells = [row.cells[t].final if t in row.cells else None for t in tasks]
        plain = [formula_shut(getattr(row, name)) for name in _FIELDS]
        yield _csv([*plain, ", ".join(row.badges), when, *(row.domains.get(d) for d in domains), *cells])


def _csv(values: Sequence[object]) -> str:
    buffer = StringIO()
    csv.writer(buffer).writerow(["" if value is None else value for value in values])
    return buffer.getvalue()
