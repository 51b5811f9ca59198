"""From ended runs to a row: what counts, what is left out, what takes the row out of the ranking."""

from collections.abc import Callable
from decimal import Decimal

import pytest

from portal.leaderboard.entries import on_run_changed
from portal.leaderboard.models import LeaderboardEntry
from runs.models.run import Run
from runs.outbox import outbox_deliver, outbox_put
from tests.site.leaderboard.world import CONFIG, board_made, ended, evaluation_made, leased, run_made, version_made


@pytest.fixture
def queued(team, alice, version, board) -> Callable[..., Run]:
    """Queues a run for the board."""
    return lambda **facts: run_made(team, alice, facts.pop("version", version), **facts)


def row_of(run: Run) -> LeaderboardEntry | None:
    on_run_changed({"run": run.pk})
    return LeaderboardEntry.objects.filter(config=run.config_id).first()


@pytest.mark.parametrize("topic", ["run_ended", "evaluation_scored", "evaluation_failed"])
def test_news_of_a_run_make_its_row(queued, topic):
    run = ended(queued(), "80")
    outbox_put(topic, {"run": run.pk})
    while outbox_deliver():
        pass
    row = LeaderboardEntry.objects.get()
    assert (row.mean_final, row.n_runs, row.ranked, row.tasks_done) == (80, 1, True, 1)


def test_a_failed_run_counts_with_the_score_of_its_final_evaluation(queued):
    row = row_of(ended(queued(), "12.5", end="agent_error", status="failed"))
    assert row is not None
    assert (row.mean_final, row.ranked) == (Decimal("12.5"), True)


def test_a_cancelled_run_counts_as_nothing_scored(queued):
    run = ended(queued(), None, end="cancelled", status="cancelled", best=Decimal(70))
    row = row_of(run)
    assert row is not None
    assert (row.mean_final, row.mean_best) == (0, 70)


def test_a_run_lost_to_the_machinery_is_in_no_mean(queued):
    """R11: infrastructure is never a score of 0."""
    lost = ended(queued(), None, end="infrastructure", status="failed")
    assert row_of(lost) is None
    row = row_of(ended(queued(), "60"))
    assert row is not None
    assert (row.mean_final, row.n_runs) == (60, 1)


def test_a_score_still_to_come_is_not_a_zero(queued):
    run = ended(queued(), None)
    evaluation_made(run, None, state="failed")
    assert row_of(run) is None


def test_a_row_goes_away_with_its_last_counted_run(queued):
    run = ended(queued(), "60")
    assert row_of(run)
    Run.objects.filter(pk=run.pk).update(end_reason="infrastructure", score=None)
    assert row_of(run) is None


@pytest.mark.parametrize(
    ("column", "reason"),
    [({"assisted": True}, "assisted run"), ({"limits_altered": True}, "altered limits")],
)
def test_assisted_and_altered_runs_never_rank(queued, column, reason):
    row = row_of(ended(queued(), "99", **column))
    assert row is not None
    assert (row.ranked, row.note) == (False, reason)


def test_a_branched_run_never_ranks(queued):
    row = row_of(ended(queued(), "99", parent=queued()))
    assert row is not None
    assert (row.ranked, row.note) == (False, "branched run")


def test_another_version_than_the_board_s_never_ranks(queued, tmp_path):
    other = version_made(tmp_path / "other", authors=[{"name": "B. Author"}])
    row = row_of(ended(queued(version=other), "99"))
    assert row is not None
    assert (row.ranked, row.note) == (False, "another version than the board's")


def test_a_small_build_never_ranks_and_gives_way_to_a_full_one(team, alice, tmp_path):
    small = version_made(tmp_path / "small", size="small")
    board = board_made()
    assert board.columns.get().version == small
    row = row_of(ended(run_made(team, alice, small), "99"))
    assert row is not None
    assert (row.ranked, row.note) == (False, "small build of a task")
    full = version_made(tmp_path / "full")
    assert board_made().columns.get().version == full


@pytest.mark.parametrize("hint", ["upfront", "on_demand"])
def test_a_hint_where_the_board_gives_none_never_ranks(queued, hint):
    row = row_of(ended(queued(text=f"{CONFIG}hint: {hint}\n"), "99"))
    assert row is not None
    assert (row.ranked, row.note) == (False, "hint against the board's rule")
    assert "hint" in row.badges


def test_a_custom_prompt_is_badged_and_ranks(queued):
    row = row_of(ended(queued(text=CONFIG + "prompt: {extra: Be quick.}\n"), "50"))
    assert row is not None
    assert (row.ranked, row.badges) == (True, ["custom prompt", "scripted"])


def test_repeats_are_averaged_within_their_task(queued):
    runs = [ended(queued(), score) for score in ("10", "20", "60")]
    row = row_of(runs[0])
    assert row is not None
    cell = row.cells.get()
    assert (cell.final, cell.n, row.n_runs, cell.runs) == (30, 3, 3, [run.pk for run in runs])
    assert cell.spread is not None


def test_a_task_that_was_not_run_counts_nothing_in_the_mean(queued, team, alice, tmp_path):
    version_made(tmp_path / "second", "second-task")
    board_made()
    row = row_of(ended(queued(), "80"))
    assert row is not None
    assert (row.mean_final, row.done_final, row.tasks_done) == (40, 80, 1)


@pytest.mark.parametrize(
    ("own_node", "isolation", "level", "tier"),
    [
        (False, "namespace", 1, "run_here"),
        (True, "namespace", 1, "scored_here"),
        (False, "landlock", 1, "scored_here"),
        (False, "namespace", 2, "scored_here"),
    ],
)
def test_run_here_needs_the_site_s_node_and_level_one_on_both_sides(queued, team, own_node, isolation, level, tier):
    run = ended(queued(), "50", isolation=isolation)
    leased(run, owner=team if own_node else None)
    run.evaluations.update(sandbox_level=level)
    row = row_of(run)
    assert row is not None
    assert row.tier == tier


def test_a_run_whose_node_is_not_known_is_not_run_here(queued):
    row = row_of(ended(queued(), "50"))
    assert row is not None
    assert row.tier == "scored_here"


def test_another_engine_version_is_another_row(queued):
    first, second = ended(queued(), "10"), ended(queued(), "90", engine_version="99.0")
    on_run_changed({"run": first.pk})
    on_run_changed({"run": second.pk})
    assert sorted(LeaderboardEntry.objects.values_list("mean_final", flat=True)) == [10, 90]


def test_an_unpriced_run_makes_the_cost_unknown_and_never_nothing(queued):
    """R14"""
    row = row_of(ended(queued(), "50", unpriced=True))
    assert row is not None
    assert row.usd is None
