"""The tables and the arithmetic of runs: states, failures, the ledger, fair share. No database."""

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.failures import FAILURES, Code, Retry, failure_of, failure_text
from runs.ledger import CHARGED, Clock, Span, clip, clock_sums, union_seconds
from runs.services.queueing import Queued, fair_order
from runs.states import LIVE, MOVES, STARTED, TERMINAL, MoveRefused, Status, move_check, sources_of

DAY = datetime(2026, 3, 29, tzinfo=UTC)


def span(begin: float, end: float, kind: str = Clock.MODEL) -> Span:
    return Span(kind, DAY + timedelta(seconds=begin), DAY + timedelta(seconds=end))


@pytest.mark.parametrize(("old", "new"), list(product(sorted(TERMINAL), sorted(Status))))
def test_nothing_leaves_a_final_state(old: str, new: str) -> None:
    """R6"""
    with pytest.raises(MoveRefused, match=f"is {old} and can't become {new}"):
        move_check(412, old, new)


def test_every_live_state_can_be_left_for_every_bad_end() -> None:
    for status in LIVE:
        assert {Status.FAILED, Status.CANCELLED} <= MOVES[status]
    assert set(MOVES) == set(Status)
    assert {Status.QUEUED} | STARTED == LIVE


def test_only_finishing_leads_to_finished() -> None:
    assert sources_of(Status.FINISHED) == [Status.FINISHING]


@pytest.mark.parametrize("code", sorted(Code))
def test_every_failure_has_a_sentence_that_ends(code: str) -> None:
    """R16: machine code, human sentence; unknown arguments show as a dash, never as an error."""
    text = failure_text(code, {})
    assert text[0].isupper()
    assert "%(" not in text
    assert "Traceback" not in text


def test_a_code_of_a_newer_release_reads_as_unknown() -> None:
    assert failure_of("from_the_future").code is Code.UNKNOWN


def test_what_is_waited_for_is_charged_to_nobody_and_leaves_the_result_valid() -> None:
    """R10, R11"""
    for row in FAILURES.values():
        if row.retry is Retry.WAIT:
            assert row.payer not in CHARGED
            assert row.valid


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 500)), max_size=30))
def test_the_union_counts_every_second_once(pairs: list[tuple[int, int]]) -> None:
    seconds = {second for begin, end in pairs for second in range(begin, end)}
    assert union_seconds([span(*pair) for pair in pairs]) == len(seconds)


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99), st.sampled_from(sorted(Clock))), max_size=20))
def test_sums_are_never_negative_and_never_more_than_all(rows: list[tuple[int, int, str]]) -> None:
    sums = clock_sums([span(begin, end, kind) for begin, end, kind in rows])
    assert all(value >= 0 for value in sums.by_kind.values())
    assert sums.charged_s <= sums.total_s


def test_clipping_keeps_what_lies_inside() -> None:
    held = span(10, 20)
    assert clip(held, DAY, DAY + timedelta(seconds=15)) == span(10, 15)
    assert clip(held, DAY + timedelta(seconds=20), DAY + timedelta(seconds=30)) is None


def test_the_team_with_fewer_active_runs_is_first_then_first_come() -> None:
    """R8"""
    kind = (1, 1, False)
    queued = [Queued(run_id, team, kind) for run_id, team in [(1, 7), (2, 7), (3, 8), (4, 9)]]
    assert [each.run_id for each in fair_order(queued, {7: 2, 8: 1})] == [4, 3, 1, 2]
