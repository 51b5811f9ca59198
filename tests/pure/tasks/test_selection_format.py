"""What makes a selection invalid, each with its line."""

import contextlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from selection import SelectionError, selection_parse


def test_ids_are_read_in_order_with_or_without_a_last_newline():
    assert selection_parse(b"7\n 3 \r\n0012", 10_000).ids == (7, 3, 12)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty"),
        (b"\n\n", "the file is empty"),
        (b"1\n\n2", "line 2: '' is not an id (an integer from 0 to 9999)"),
        (b"1\n-2", "line 2: '-2' is not an id"),
        (b"1\n\x1c2\n", "line 2: '\\x1c2' is not an id"),
        (b"1.0", "line 1: '1.0' is not an id"),
        ("\u0661\n".encode(), "is not an id"),
        (b"10000", "line 1: id 10000 is out of range (0 to 9999)"),
        (b"5\n6\n5", "line 3: id 5 already on line 1"),
        (b"1\n\xff", "line 2: not UTF-8"),
        (b"1\n" * 812, "812 ids, at most 800"),
        (b" " * 11_000, "11000 bytes, at most 10240"),
        (b"a\nb\nc\nd\ne\nf\ng", "; and 2 more"),
    ],
)
def test_a_broken_selection_is_refused_with_its_line(data: bytes, message: str):
    with pytest.raises(SelectionError) as caught:
        selection_parse(data, 10_000)
    assert message in str(caught.value)


@given(st.binary(max_size=200))
@example(b"1\n2\x1c\n")
@example("1\n\u00a02\n\x85".encode())
def test_no_bytes_make_the_reader_raise_anything_but_its_own_error(data: bytes):
    with contextlib.suppress(SelectionError):
        assert selection_parse(data, 50).ids
