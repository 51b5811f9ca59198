"""Order of a board: competition ranks, ranges that can't be told apart, sorting by any column."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.leaderboard.ranking import Standing, half_width, mean_of, ranked, t_quantile
from portal.leaderboard.sorting import in_order
from portal.leaderboard.totals import CellFacts, totals_of

START = datetime(2026, 1, 1, tzinfo=UTC)


def standing(key: int, mean: str | None, hour: int = 0, half: str | None = None) -> Standing:
    return Standing(
        key=key,
        mean=None if mean is None else Decimal(mean),
        half_width=None if half is None else Decimal(half),
        scored_at=START + timedelta(hours=hour),
    )


def test_equal_means_share_a_rank_and_stand_in_the_order_of_their_scoring() -> None:
    """S2: t1 < t2 < t3 gives 1 1 1, then 4."""
    rows = [standing(3, "50", 3), standing(1, "50", 1), standing(4, "40", 0), standing(2, "50", 2)]
    assert [(row.key, row.rank) for row in ranked(rows)] == [(1, 1), (2, 1), (3, 1), (4, 4)]


def test_a_row_without_a_score_is_unranked_and_last() -> None:
    """S1."""
    result = ranked([standing(1, None), standing(2, "0")])
    assert [(row.key, row.rank, row.low, row.high) for row in result] == [(2, 1, 1, 1), (1, None, None, None)]


def test_a_rank_is_a_range_where_intervals_overlap() -> None:
    rows = [standing(1, "60", half="5"), standing(2, "57", half="5"), standing(3, "20", half="5")]
    assert [(row.key, row.rank, row.low, row.high) for row in ranked(rows)] == [
        (1, 1, 1, 2),
        (2, 2, 1, 2),
        (3, 3, 3, 3),
    ]


def test_no_interval_from_a_single_value() -> None:
    assert half_width([Decimal(3)]) is None
    with pytest.raises(ValueError, match="at least two values"):
        t_quantile(0)
    with pytest.raises(ValueError, match="no values"):
        mean_of([])


def test_interval_of_known_values() -> None:
    """Mean 2, sd 1, n 3: 4.303 * 1 / sqrt(3)."""
    assert half_width([Decimal(1), Decimal(2), Decimal(3)]) == Decimal("2.484338")


def test_t_quantile_comes_down_to_the_normal() -> None:
    values = [t_quantile(degrees) for degrees in range(1, 200)]
    assert values == sorted(values, reverse=True)
    assert t_quantile(10_000) == pytest.approx(1.9602, abs=1e-3)


values = st.none() | st.decimals(min_value=0, max_value=100, places=4)


@given(rows=st.lists(st.tuples(values, st.integers()), max_size=40), descending=st.booleans())
def test_any_sort_equals_a_four_line_reference(rows: list[tuple[Decimal | None, int]], descending: bool) -> None:
    """S3: known values ordered, unknown ones last, ties in the order they came in."""
    known = [row for row in rows if row[0] is not None]
    unknown = [row for row in rows if row[0] is None]
    expected = sorted(known, key=lambda row: row[0] or Decimal(0), reverse=descending) + unknown
    assert in_order(rows, lambda row: row[0], descending=descending) == expected


def test_sorting_uses_the_full_value_not_the_shown_one() -> None:
    """S4: 0.5000 and 0.12351 look close at low precision, their order is by value."""
    rows = [Decimal("0.12345"), Decimal("0.123451"), Decimal("0.5")]
    assert in_order(rows, lambda row: row, descending=True) == rows[::-1]


def test_ranks_sort_as_numbers() -> None:
    """S7: 1 to 12, not 1 10 11 12 2."""
    assert in_order((10, 2, 1, 12, 11), lambda row: row, descending=False) == [1, 2, 10, 11, 12]


def test_a_task_not_done_counts_zero_in_the_mean_and_not_in_the_mean_of_done_ones() -> None:
    totals = totals_of({7: CellFacts(final=Decimal(80), best=Decimal(90), usd=Decimal("1.5"), hours=2.0)}, columns=4)
    assert (totals.mean_final, totals.mean_best, totals.done_final) == (Decimal(20), Decimal("22.5"), Decimal(80))
    assert (totals.tasks_done, totals.n_runs, totals.usd, totals.hours) == (1, 1, Decimal("1.5"), 2.0)


def test_no_result_gives_no_mean() -> None:
    totals = totals_of({}, columns=3)
    assert totals.mean_final is None
    assert totals.columns()["tasks_done"] == 0
