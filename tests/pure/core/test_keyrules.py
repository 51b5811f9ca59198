"""Where a stored key may go, and which text a request can carry."""

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.core.keyrules import place_binds, place_of, place_read, unsendable_at


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("https://api.openai.com/v1", "api.openai.com"),
        ("https://API.openai.com.:443/v1", "api.openai.com"),
        ("http://lab.example.org:80/v1", "lab.example.org"),
        ("http://lab.example.org:443/v1", "lab.example.org:443"),
        ("https://lab.example.org:80/v1", "lab.example.org:80"),
        ("http://127.0.0.1:8977/v1", "127.0.0.1:8977"),
        ("http://my_vllm:8000", "my_vllm:8000"),
        ("https://[2001:DB8:0::1]:8443/v1", "[2001:db8::1]:8443"),
    ],
)
def test_what_an_address_asks_for_is_what_a_key_can_be_stored_for(url: str, place: str) -> None:
    assert str(place_of(url)) == str(place_read(place)) == place
    assert place_binds(place, url)
    assert place_binds(f" {place.upper()} ", url)


@pytest.mark.parametrize(
    ("bound", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8977/v1"),
        ("127.0.0.1:8978", "http://127.0.0.1:8977/v1"),
        ("api.example.org", "https://api.example.org:8443/v1"),
        ("api.example.org:443", "http://api.example.org/v1"),
        ("api.example.org:80", "https://api.example.org/v1"),
        ("api.example.org", "https://api.example.org.evil.org/v1"),
        ("api.example.org", "https://user@evil.org/api.example.org"),
        ("example.org", "https://api.example.org/v1"),
        ("api.example.org", "ftp://api.example.org/v1"),
        ("", "https://api.example.org/v1"),
    ],
)
def test_a_key_goes_to_no_other_host_and_to_no_other_port(bound: str, url: str) -> None:
    assert not place_binds(bound, url)


@pytest.mark.parametrize("url", ["http://h/v1", "https://h/v1", "http://h:80/v1", "https://h:443/v1"])
def test_a_key_without_a_port_is_for_the_own_port_of_either_scheme(url: str) -> None:
    assert place_binds("h", url)


@pytest.mark.parametrize(
    "text",
    ["h:0", "h:65536", "h:", ":80", "h:8o", "a b", "a/b", "u@h", "http://h", "a..b", "999.1.1.1", "[::g]", "::1",
     "x" * 64, "x." * 130, "ü.org", "a\nb", "a\0b"],
)  # fmt: skip
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no host|no port|not permitted|Invalid|Expected|At least"):
        place_read(text)


@pytest.mark.parametrize(
    ("key", "place"),
    [("sk-é", 3), ("密钥", 0), ("sk\nx", 2), ("sk\r\nX-Y: 1", 2), ("sk-x\n", 4), (" sk", 0), ("sk\u200b", 2),
     ("a\tb", 1), ("a\x7f", 1), ("\ud800", 0), ("sk-proj_A1.b+c/d==", None), ("two words", None), ("", 0)],
)  # fmt: skip
def test_the_first_character_that_no_header_carries_is_found(key: str, place: int | None) -> None:
    assert unsendable_at(key) == place


@given(st.text())
def test_a_key_that_passes_is_written_into_a_request(key: str) -> None:
    """Whatever is accepted here, the library that writes requests accepts, too."""
    if unsendable_at(key) is None:
        headers = [("Host", "h"), ("Authorization", f"Bearer {key}")]
        sent = h11.Connection(h11.CLIENT).send(h11.Request(method="GET", target="/", headers=headers))
        assert sent is not None
        assert key.encode("ascii") in sent
