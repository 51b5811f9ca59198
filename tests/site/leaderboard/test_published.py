"""The published results: their means are computed from the twenty task rows, never copied."""

from decimal import Decimal

import pytest

from portal.leaderboard.models import LeaderboardEntry
from portal.leaderboard.published import published_import

# Source: arXiv 2510.27598, table 3, the two-decimal means as this board computes them.
FINAL_AND_BEST = {
    "claude-sonnet-4": ("24.01", "24.54"),
    "gpt-5": ("12.04", "12.52"),
    "glm-4.5": ("11.85", "13.35"),
    "kimi-k2": ("5.35", "5.45"),
}


def rows(client, slug: str) -> list[dict]:
    answer = client.get(f"/api/v1/leaderboards/{slug}/")
    assert answer.status_code == 200
    return answer.json()["rows"]


def test_the_four_means_are_computed_from_twenty_task_rows(client, published):
    ranked = [row for row in rows(client, "innovatorbench-20") if row["ranked"]]
    assert [(row["mean_final"], row["mean_best"]) for row in ranked] == list(FINAL_AND_BEST.values())
    assert [row["rank"] for row in ranked] == [1, 2, 3, 4]
    for row in ranked:
        finals = [Decimal(cell["final_exact"]) for cell in row["cells"].values()]
        assert len(finals) == 20
        assert (sum(finals) / 20).quantize(Decimal("0.01"), "ROUND_HALF_UP") == Decimal(row["mean_final"])


def test_a_row_without_task_rows_is_shown_as_stated_and_not_ranked(client, published):
    (row,) = [row for row in rows(client, "innovatorbench-20") if row["stated"]]
    assert "qwen3-32b" in row["model"].lower()
    assert (row["mean_final"], row["mean_best"], row["rank"], row["cells"]) == ("0.00", "0.00", None, {})


def test_the_hint_upfront_board_has_its_own_row(client, published):
    (row,) = rows(client, "innovatorbench-20-upfront")
    assert (row["mean_final"], row["mean_best"], row["ranked"]) == ("13.88", "16.67", True)


def test_reported_rows_say_so_and_come_once(client, published):
    before = LeaderboardEntry.objects.count()
    published_import()
    assert LeaderboardEntry.objects.count() == before
    for row in rows(client, "innovatorbench-20"):
        assert row["tier"] == "reported"
        assert row["source"].startswith("arXiv 2510.27598")
        assert row["note"]


@pytest.mark.parametrize("hidden", ["hint.md", "references", "api_key"])
def test_the_board_s_body_holds_nothing_hidden(client, published, hidden):
    assert hidden not in client.get("/api/v1/leaderboards/innovatorbench-20/").content.decode()
