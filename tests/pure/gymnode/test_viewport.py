"""Windows on files: every line reachable, none skipped."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymnode.workspace.viewport import (
    MAX_LINE,
    Chunk,
    chunk_decode,
    show_line,
    window_around,
    window_from,
    window_until,
)

LINES = st.lists(st.text("ab\t", max_size=60), min_size=1, max_size=120)


def numbers(text: str) -> list[int]:
    return [int(line.partition("|")[0]) for line in text.split("\n")]


@given(LINES, st.integers(1, 40), st.integers(20, 400))
def test_scrolling_down_shows_every_line_once_and_in_order(lines, height, max_chars):
    seen, first = [], 1
    while first <= len(lines):
        chunk = Chunk(first, tuple(lines[first - 1 : first - 1 + height]), len(lines))
        window = window_from(chunk, height=height, max_chars=max_chars)
        assert window.first == first
        seen += numbers(window.text)
        first = window.last + 1
    assert seen == list(range(1, len(lines) + 1))


@given(LINES, st.integers(1, 40), st.integers(20, 400))
def test_scrolling_up_shows_every_line_once_and_in_order(lines, height, max_chars):
    seen, last = [], len(lines)
    while last >= 1:
        first = max(1, last - height + 1)
        window = window_until(
            Chunk(first, tuple(lines[first - 1 : last]), len(lines)), height=height, max_chars=max_chars
        )
        assert window.last == last
        seen = numbers(window.text) + seen
        last = window.first - 1
    assert seen == list(range(1, len(lines) + 1))


@given(LINES, st.data())
def test_asked_line_is_in_the_window_whatever_the_limits(lines, data):
    line = data.draw(st.integers(1, len(lines)))
    height = data.draw(st.integers(1, 50))
    window = window_around(
        Chunk(1, tuple(lines), len(lines)), line, height=height, max_chars=data.draw(st.integers(0, 300))
    )
    assert window.first <= line <= window.last
    assert window.last - window.first < height
    assert numbers(window.text) == list(range(window.first, window.last + 1))


def test_asked_line_stands_in_the_middle():
    window = window_around(Chunk(1, tuple("x" * 100), 100), 50, height=11, max_chars=10_000)
    assert (window.first, window.last) == (45, 55)


def test_long_line_is_cut_and_marked():
    shown = show_line(7, "x" * 5000, 3)
    assert shown.startswith("  7| xxx")
    assert shown.endswith(f"[... this line goes on after {MAX_LINE} characters ...]")


def test_control_characters_in_a_file_are_visible():
    assert show_line(1, "a\x1b[31m\0\r", 1) == "1| a\u241b[31m\u2400"


@pytest.mark.parametrize(
    ("data", "encoding", "lines"),
    [
        (b"a\nb\n", "utf-8", ("a", "b")),
        (b"a\nb", "utf-8", ("a", "b")),
        (b"a\n\n", "utf-8", ("a", "")),
        (b"\xef\xbb\xbfa\nb", "utf-8-sig", ("a", "b")),
        ("é\nb".encode("latin-1"), "latin-1", ("é", "b")),
        (b"\xff\nb", "utf-8", ("\ufffd", "b")),
        (b"a\x0cb\xe2\x80\xa8c\nd", "utf-8", ("a\x0cb\u2028c", "d")),
    ],
)
def test_only_newlines_end_lines(data, encoding, lines):
    assert chunk_decode(data, first=1, last=2, total=2, encoding=encoding).lines == lines


def test_empty_file_has_a_window_that_says_so():
    window = window_around(Chunk(1, (), 0), 1, height=10, max_chars=100)
    assert (window.last, window.text) == (0, "(the file is empty)")
