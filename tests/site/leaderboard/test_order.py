"""Every sort of a board against a sort of five lines: random rows full of ties and unknowns, over pages too."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from portal.accounts.models import Team
from portal.leaderboard.models import Board, EntryCell, LeaderboardEntry
from portal.leaderboard.order import SORTS, Wish
from portal.leaderboard.selectors import board_page
from portal.leaderboard.table import board_csv
from tests.site.leaderboard.test_board import api, csv_rows, page_rows

START = datetime(2026, 1, 1, tzinfo=UTC)
LATE = datetime(9999, 1, 1, tzinfo=UTC)
Value = Callable[[LeaderboardEntry], Any]


def _shown(name: str) -> Value:
    def value(row: LeaderboardEntry) -> Any:
        stated = row.mean_final is None and row.stated_final is not None
        return getattr(row, f"{'stated' if stated else 'mean'}_{name}")

    return value


VALUES: dict[str, Value] = {
    "rank": lambda row: None if row.mean_final is None or not row.ranked else -row.mean_final,
    "team": lambda row: row.team.shown_name.casefold() if row.team else None,
    "agent": lambda row: row.agent.casefold() or None,
    "model": lambda row: row.model.casefold() or None,
    "final": _shown("final"),
    "best": _shown("best"),
    "tasks": lambda row: row.tasks_done,
    "runs": lambda row: row.n_runs,
    "cost": lambda row: row.usd,
    "hours": lambda row: row.hours,
    "tokens": lambda row: row.tokens,
    "date": lambda row: row.scored_at,
}


def rows_made(board: Board, random: Random, count: int = 200) -> list[LeaderboardEntry]:
    """`count` rows whose columns hold few different values and often none; each with a cell or not."""
    LeaderboardEntry.objects.all().delete()
    teams = [None, *Team.objects.all()]
    rows = LeaderboardEntry.objects.bulk_create(_row(board, random, number) for number in range(count))
    for row in rows:
        row.team = random.choice(teams)
    LeaderboardEntry.objects.bulk_update(rows, ["team"])
    task = board.columns.all()[0].task
    EntryCell.objects.bulk_create(
        EntryCell(entry=row, task=task, final=row.mean_best) for row in rows if random.random() < 0.7
    )
    return rows


def _row(board: Board, random: Random, number: int) -> LeaderboardEntry:
    def some(*values: Any) -> Any:
        return random.choice([None, *values])

    points = [Decimal(text) for text in ("0", "9.5", "50", "50.000001", "50.01", "100")]
    mean = some(*points)
    facts = {"mean_final": mean, "mean_best": some(*points), "ranked": mean is not None and random.random() < 0.8}
    facts |= {"stated_final": some(*points), "stated_best": some(*points)} if random.random() < 0.5 else {}
    facts |= {"usd": some(Decimal(0), Decimal("0.3"), Decimal(11)), "hours": some(0.0, 2.5, 10.0, 1e200)}
    facts |= {"tokens": some(0, 9, 10, 2**62), "n_runs": random.choice([0, 9, 10]), "tasks_done": random.choice([0, 2])}
    facts |= {"scored_at": some(*(START + timedelta(hours=hour) for hour in (1, 1, 2)))}
    names = {"agent": random.choice(["", "ada", "Zed", "école"]), "model": f"m{number}"}
    return LeaderboardEntry(board=board, key=f"r{number}", tier="reported", **names, **facts)


def reference(rows: list[LeaderboardEntry], value: Value, descending: bool) -> list[str]:
    """Known values in order, unknown ones last, equals by rank, then time, then row."""
    by_rank = sorted(rows, key=lambda row: (-_mean(row), row.scored_at or LATE, row.pk))
    known = [row for row in by_rank if value(row) is not None]
    known.sort(key=value, reverse=descending)
    return [row.model for row in known + [row for row in by_rank if value(row) is None]]


def _mean(row: LeaderboardEntry) -> Decimal:
    return row.mean_final if row.mean_final is not None and row.ranked else Decimal(-1)


@settings(max_examples=2, phases=[Phase.generate])
@given(seed=st.integers(0, 10**9))
def test_two_hundred_random_rows_sort_as_the_reference_does(board, team, charlie, seed):
    """S3: every column, both directions, as the page asks for it."""
    Team.objects.filter(personal_of=charlie).update(deleted_at=START)
    rows = rows_made(board, Random(seed))
    finals = dict(EntryCell.objects.values_list("entry", "final"))
    domain = {f"domain:{board_page(board).domains[0].slug}": lambda row: finals.get(row.pk)}
    assert set(VALUES) == set(SORTS)
    for sort, value in {**VALUES, **domain}.items():
        for descending in (False, True):
            shown = [row.model for row in board_page(board, Wish(sort, descending)).rows]
            assert shown == reference(rows, value, descending), (sort, descending)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("sort", ["rank", "final", "agent"])
def test_ties_and_missing_values_go_over_the_borders_of_pages(client, board, sort, descending):
    """S1, S2: each row once, in one order, whether pages are of HTML or JSON or there is one of CSV."""
    rows = rows_made(board, Random(7), 250)
    expected = reference(rows, VALUES[sort], descending)
    address = f"{board.get_absolute_url()}?sort={sort}{'&desc=1' if descending else ''}"
    html = [page_rows(client.get(f"{address}&p={number}").content.decode()) for number in (1, 2, 3)]
    assert [len(page) for page in html] == [100, 100, 50]
    assert [model for page in html for model in page] == expected
    wish = f"?sort={sort}&dir={'desc' if descending else 'asc'}&limit=17"
    json = [api(client, f"{wish}&offset={place}")["rows"] for place in range(0, 250, 17)]
    assert [row["model"] for page in json for row in page] == expected
    assert [row["model"] for row in csv_rows(board_csv(board_page(board, Wish(sort, descending))))] == expected


def test_a_rank_shared_over_a_page_border_is_one_rank_and_the_next_one_counts_them_all(client, board):
    """S1, S2: 90 better rows, 30 equal ones from place 91 to 120, one worse, and 20 without a score that have none."""
    means = [Decimal(60)] * 90 + [Decimal(50)] * 30 + [Decimal(40)] + [None] * 20
    Random(3).shuffle(means)
    facts = {"board": board, "agent": "a", "tier": "reported"}
    LeaderboardEntry.objects.bulk_create(
        LeaderboardEntry(key=n, model=f"t{n}", mean_final=mean, ranked=mean is not None, **facts)
        for n, mean in enumerate(means)
    )
    ranks = [1] * 90 + [91] * 30 + [121]
    json = [api(client, f"?limit=70&offset={place}")["rows"] for place in (0, 70, 140)]
    assert [row["rank"] for page in json for row in page] == ranks + [None] * 20
    assert [row["rank"] for row in csv_rows(board_csv(board_page(board)))] == [*map(str, ranks), *[""] * 20]
    html = [client.get(f"{board.get_absolute_url()}?p={number}").content.decode() for number in (1, 2)]
    assert [place for page in html for place in places(page)] == [*map(str, ranks), *["unranked"] * 20]


def places(html: str) -> list[str]:
    """What stands in the page's column of ranks, in its order."""
    body = html.split("<tbody", 1)[1].split("</tbody>", 1)[0]
    return [re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r'data-label="Rank"[^>]*>(.*?)</td>', body)]
