"""What a reader is told of a failure: true durations, known names, older releases' rows."""

import pytest

from runs.failures import FAILURES, duration_text, failure_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "1 second"), (61, "61 seconds"), (119.6, "2 minutes"), (3600, "60 minutes"), (7199.6, "2 hours"),
     (21_700, "6 hours"), (172_800, "2 days"), (10**6, "12 days")],
)  # fmt: skip
def test_a_duration_is_said_in_a_unit_that_fits(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"node": "a1", "seconds": 63}, "Node a1 did not come back within 63 seconds."),
        ({"node": "a1", "hours": "6"}, "Node a1 did not come back within 6 hours."),
        ({"node": "", "seconds": 21_650}, "Its node did not come back within 6 hours."),
        ({"node": "–", "hours": "0"}, "The nodes of the run are gone and did not come back."),
        ({"node": "a1", "hours": "nonsense"}, "The nodes of the run are gone and did not come back."),
        ({}, "The nodes of the run are gone and did not come back."),
    ],
)
def test_a_lost_node_is_told_without_what_is_not_known(arguments: dict[str, str | int], text: str) -> None:
    """R16, N9: no dash for a name, no 0 hours."""
    assert failure_text("node_lost", arguments).startswith(text)


def test_a_redirect_names_the_address_to_write_where_it_is_known() -> None:
    goal = {"goal": "https://new.example.org"}
    assert "redirects to https://new.example.org, and" in failure_text("address_moved", goal)
    assert "redirects elsewhere, and" in failure_text("address_moved", {"goal": ""})


@pytest.mark.parametrize("code", FAILURES)
def test_a_sentence_that_has_a_shorter_form_shows_no_dash(code: str) -> None:
    """R16"""
    if FAILURES[code].shorter:
        assert "–" not in failure_text(code, {})
