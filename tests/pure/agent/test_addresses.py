"""Addresses of models: what none can be, and what of a redirect's everybody may read."""

import pytest

from runs.agent.addresses import address_fault, redirect_goal

ASKED = "https://api.example.org/v1/chat/completions"


@pytest.mark.parametrize("url", ["https://api.example.org/v1", "http://10.0.0.5:8000", "http://[::1]:8000/v1"])
def test_an_address_is_fine(url: str) -> None:
    assert address_fault(url) is None


@pytest.mark.parametrize(
    "url",
    ["", "foo", "ftp://h/", "http://", "http://a..b/", "http://999.1.1.1/", "http://[::1/", f"http://{'a' * 64}/",
     "http://a<b/", "http://%zz/", "http://a:99999/", "http://a:0/", "http://a:b/", "http://ü/", "http://a b/",
     "http://u:p@h/", "http://h/?q=1", "http://h/#f"],
)  # fmt: skip
def test_what_no_request_can_be_sent_to_is_refused_before_one_is_tried(url: str) -> None:
    assert address_fault(url)


@pytest.mark.parametrize(
    ("location", "goal"),
    [
        ("https://new.example.org/v1/chat/completions", "https://new.example.org"),
        ("http://169.254.169.254:81/latest?token=x", "http://169.254.169.254:81"),
        ("https://user:secret@new.example.org/v1?key=secret#secret", "https://new.example.org"),
        ("//new.example.org/x", "https://new.example.org"),
        ("http://api.example.org/v1/chat/completions", "http://api.example.org"),
        ("/v2/chat/completions?key=secret", "https://api.example.org/v2/chat/completions"),
        ("/<b>\u202e", "https://api.example.org/%3Cb%3E%E2%80%AE"),
        ("ftp://new.example.org/", ""),
        ("https://[::1", ""),
        ("https://a b/", ""),
        ("javascript:alert(1)", ""),
    ],
)
def test_a_redirect_names_the_place_and_nothing_private(location: str, goal: str) -> None:
    assert redirect_goal(ASKED, location) == goal


def test_a_long_redirect_is_cut() -> None:
    assert len(redirect_goal(ASKED, "/" + "x" * 9000)) < 250
