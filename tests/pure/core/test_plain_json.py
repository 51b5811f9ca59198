"""JSON from outside: what can be written again is read as it is, everything else is refused by its kind."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.core.plainjson import HalfCharacter, NotFinite, NotPlain, TooDeep, json_plain

PLACES = ("{}", "[{}]", '{{"a": [0, {{"b": {}}}]}}')
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e400", "1.5E+309", f"{'9' * 400}.0"])
@pytest.mark.parametrize("place", PLACES)
def test_a_number_that_is_not_finite_is_refused_wherever_it_stands(place, number):
    """T3: it would be kept as the text `inf`."""
    with pytest.raises(NotFinite):
        json_plain(place.format(number))


@pytest.mark.parametrize("text", ['"\\ud800"', '{"\\udfff": 1}', '["a\\udc00b"]', '["\ud800"]'])
def test_half_a_character_is_refused_in_values_and_keys(text):
    """T1"""
    with pytest.raises(HalfCharacter):
        json_plain(text)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000])
def test_what_is_nested_without_bounds_is_refused(text):
    """T1"""
    with pytest.raises(TooDeep):
        json_plain(text)


@pytest.mark.parametrize("text", ["", "{", "[1,]", "nul", "1 2", "'a'", "9" * 5_000, "\0", "\ufeff{}"])
def test_what_is_no_json_is_refused(text):
    with pytest.raises(NotPlain):
        json_plain(text)


@given(VALUES)
def test_everything_else_is_read_as_it_is(value):
    assert json_plain(json.dumps(value)) == value
