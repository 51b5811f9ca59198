"""How numbers are written: the same everywhere, unknown never zero."""

import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.core import formats


def test_precision_is_kept_in_what_is_shown():
    """S4"""
    assert formats.decimal_text(Decimal("0.5"), 4) == "0.5000"
    assert formats.decimal_text(Decimal("0.12350"), 4) == "0.1235"


@pytest.mark.parametrize("unknown", [None, "", float("nan"), float("inf"), "NaN"])
def test_unknown_is_a_dash(unknown):
    """T3"""
    assert formats.decimal_text(unknown) == "–"


@pytest.mark.parametrize("write", [formats.decimal_text, formats.usd_text, formats.count_text, formats.bytes_text])
@given(number=st.floats() | st.integers() | st.just(10**400))
def test_any_number_is_written_short_and_raises_nothing(write, number):
    """T3"""
    text = write(number)
    assert 0 < len(text) <= 40
    assert not re.search("nan|inf", text.casefold())


@pytest.mark.parametrize("write", [formats.clock_text, formats.hours_text])
@given(number=st.floats())
def test_any_time_is_written_short_and_raises_nothing(write, number):
    """T3"""
    assert 0 < len(write(number)) <= 40


def test_zero_is_a_zero():
    assert formats.decimal_text(0) == "0.00"
    assert formats.usd_text(Decimal(0)) == "$0.00"


@pytest.mark.parametrize(
    ("seconds", "text"), [(51, "0:51"), (2292, "38:12"), (3600, "1:00:00"), (None, "–"), (-3, "0:00")]
)
def test_clock(seconds, text):
    assert formats.clock_text(seconds) == text


@pytest.mark.parametrize(
    ("hours", "text"), [(1, "1 h"), (0.75, "45 min"), (1.5, "1.5 h"), (48, "48 h"), (0.01, "36 s")]
)
def test_hours(hours, text):
    assert formats.hours_text(hours) == text


def test_money_below_a_cent_is_not_nothing():
    assert formats.usd_text(Decimal("0.0012")) == "$0.0012"
    assert formats.usd_text(Decimal("32.918")) == "$32.92"


@pytest.mark.parametrize(("low", "high", "text"), [(1, 3, "1–3"), (2, 2, "2"), (10, None, "10"), (None, None, "–")])
def test_rank_is_a_range(low, high, text):
    """S7"""
    assert formats.rank_text(low, high) == text


@pytest.mark.parametrize(("size", "text"), [(0, "0 bytes"), (1023, "1023 bytes"), (2202010, "2.1 MB"), (None, "–")])
def test_sizes(size, text):
    assert formats.bytes_text(size) == text
