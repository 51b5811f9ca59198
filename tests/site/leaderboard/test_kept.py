"""The board's page is kept until something on the board changes, whoever changes it and however."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.accounts.models import Team
from portal.leaderboard.models import Board, EntryCell, LeaderboardEntry, Tier
from tests.site.leaderboard.world import reported

KEPT = 1  # the board itself, for its version


def queries(client, address: str) -> int:
    with CaptureQueriesContext(connection) as seen:
        assert client.get(address).status_code == 200
    return len(seen)


def new_row(board: Board) -> LeaderboardEntry:
    return LeaderboardEntry(board=board, key="new", model="m", tier=Tier.SCORED_HERE, ranked=False)


@pytest.fixture
def address(board: Board, client) -> str:
    """A board of three rows, one of a team, whose page has been asked for."""
    reported(board, 3)
    board.entries.filter(pk=board.entries.first().pk).update(team=Team.objects.create(slug="owls", name="Night owls"))
    client.get(board.get_absolute_url())
    return board.get_absolute_url()


def test_a_page_asked_for_again_is_not_made_again(client, address):
    first = client.get(address).content.split(b"<main")[1]
    assert queries(client, address) == KEPT
    assert client.get(address).content.split(b"<main")[1] == first
    assert queries(client, f"{address}?sort=model") > KEPT


def test_each_language_has_its_own(client, address):
    client.cookies["django_language"] = "zh-hans"
    assert "Rank" not in client.get(address).content.decode().split("<thead")[1].split("</thead>")[0]


CHANGES: tuple[Callable[[Board], object], ...] = (
    lambda board: LeaderboardEntry.objects.filter(board=board).update(agent="another"),
    lambda board: LeaderboardEntry.objects.bulk_create([new_row(board)]),
    lambda board: LeaderboardEntry.objects.filter(board=board, key="new").delete(),
    lambda board: EntryCell.objects.filter(entry__board=board).update(final=1),
    lambda board: EntryCell.objects.filter(entry__board=board).delete(),
    lambda _board: Team.objects.filter(slug="owls").update(name="Early birds"),
    lambda _board: Team.objects.filter(slug="owls").update(deleted_at="2026-01-01T00:00:00Z"),
    lambda board: board.columns.all().delete(),
)


def test_every_change_makes_it_anew(client, board, address):
    for number, change in enumerate(CHANGES):
        assert queries(client, address) == KEPT, number
        change(board)
        assert queries(client, address) > KEPT, number


def test_a_change_elsewhere_leaves_it(client, board, address):
    other = Board.objects.create(slug="other", title="Other")
    new_row(other).save()
    assert queries(client, address) == KEPT


def test_what_few_ask_for_is_not_kept(client, address):
    """Nobody fills the cache with addresses made up."""
    for query in ("q=owl", "p=2", "sort=domain:x", "sort=rank&sort=model", "x=1", "desc=2", "tier=x"):
        client.get(f"{address}?{query}")
        assert queries(client, f"{address}?{query}") > KEPT, query
