"""The board's page: order, dashes, marks and filters; page and CSV show the same."""

import csv
import re
from decimal import Decimal

import pytest
from django.urls import reverse

from portal.catalog.services import catalog_import_published, domain_rows_ensure
from portal.leaderboard.boards import boards_ensure
from portal.leaderboard.models import Board, LeaderboardEntry, Tier
from portal.leaderboard.published import published_import


@pytest.fixture
def board(db) -> Board:
    domain_rows_ensure()
    catalog_import_published()
    boards_ensure()
    return Board.objects.get(slug="innovatorbench-20")


def entry(board: Board, name: str, mean: str | None, **facts) -> LeaderboardEntry:
    values = {"agent": "ReAct", "model": name, "tier": Tier.RUN_HERE, "tasks_done": 20, "n_runs": 20}
    final = None if mean is None else Decimal(mean)
    return LeaderboardEntry.objects.create(
        board=board, key=name, mean_final=final, mean_best=final, **{**values, **facts}
    )


def names(html: str) -> list[str]:
    return re.findall(r'<th role="rowheader" scope="row"><a href="[^"]+">([^<]+)</a>', html)


def test_twelve_rows_stand_in_numeric_order_in_page_and_csv(client, board):
    """S7"""
    for place in range(12, 0, -1):
        entry(board, f"m{place}", str(100 - place))
    wanted = [f"m{place}" for place in range(1, 13)]
    assert names(client.get(board.get_absolute_url()).content.decode()) == wanted
    text = b"".join(client.get(reverse("board_csv", args=[board.slug])).streaming_content).decode()
    rows = list(csv.DictReader(text.splitlines()))
    assert [row["model"] for row in rows] == wanted
    assert [row["rank"] for row in rows] == [str(n) for n in range(1, 13)]


@pytest.mark.parametrize("query", ["sort=final&desc=1", "sort=final", "sort=best", "sort=nonsense", "sort=cost&desc=1"])
def test_a_row_without_a_value_stands_last_either_way(client, board, query):
    """S1"""
    entry(board, "known", "10", usd=Decimal(1))
    entry(board, "unknown", None, ranked=False, tasks_done=0, n_runs=0)
    assert names(client.get(f"{board.get_absolute_url()}?{query}").content.decode())[-1] == "unknown"


def test_unknown_is_a_dash_and_zero_is_a_zero(client, board):
    entry(board, "m", "0", usd=None)
    html = client.get(board.get_absolute_url()).content.decode()
    assert 'data-label="Final">0.00<' in html
    assert 'data-label="$ / task">–<' in html


def test_published_rows_are_marked_as_reported_and_open(client, board):
    published_import()
    html = client.get(board.get_absolute_url()).content.decode()
    assert html.count(">reported</span>") >= 5
    assert 'class="pt open"' in html
    assert "single run per task, not verified here" in html


def test_a_filter_narrows_page_and_csv_alike(client, board):
    entry(board, "alpha", "10")
    entry(board, "beta", "20", tier=Tier.REPORTED)
    assert names(client.get(f"{board.get_absolute_url()}?tier=run_here").content.decode()) == ["alpha"]
    text = b"".join(client.get(reverse("board_csv", args=[board.slug]), {"q": "beta"}).streaming_content).decode()
    assert [row["model"] for row in csv.DictReader(text.splitlines())] == ["beta"]


def test_every_row_leads_to_its_evidence(client, board):
    made = entry(board, "alpha", "10", half_width=Decimal("3.2"))
    html = client.get(reverse("entry", args=[board.slug, made.pk])).content.decode()
    assert "± 3.20 over tasks" in html
    assert client.get(reverse("entry", args=[board.slug, made.pk + 1])).status_code == 404


def test_an_empty_board_says_how_it_fills(client, board):
    assert "No entry yet" in client.get(board.get_absolute_url()).content.decode()


def test_filters_that_hide_everything_offer_a_way_back(client, board):
    entry(board, "alpha", "10")
    html = client.get(f"{board.get_absolute_url()}?tier=run_here&q=nobody").content.decode()
    assert "No entry" in html
