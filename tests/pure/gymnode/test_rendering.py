"""What a model reads of a stretch of a log, and what may be stored."""

import json
import os
import tracemalloc

from hypothesis import given, settings
from hypothesis import strategies as st

from gymnode.rendering import RAW_LIMIT, Raw, render, render_last, shorten, storable


def how(offset: int) -> str:
    return f"READ({offset})"


def test_short_output_is_shown_whole():
    seen = render(Raw(b"a\r\nb\r\n", start=7), max_chars=100, how=how)
    assert (seen.text, seen.start, seen.omitted, seen.omitted_from) == ("a\nb", 7, 0, None)


def test_long_output_keeps_head_and_tail_and_says_what_was_left_out_and_how_to_read_it():
    lines = [b"line %04d" % number for number in range(1000)]
    seen = render(Raw(b"\n".join(lines)), max_chars=400, how=how)
    assert seen.text.startswith("line 0000\n")
    assert seen.text.endswith("line 0999")
    assert f"[... {seen.omitted:,} bytes left out here" in seen.text
    assert f"READ({seen.omitted_from})" in seen.text


@given(st.lists(st.text("abcä", max_size=40), min_size=1, max_size=200), st.integers(50, 500))
def test_omitted_bytes_are_exactly_those_between_head_and_tail(lines, max_chars):
    data = "\n".join(lines).encode()
    seen = render(Raw(data), max_chars=max_chars, how=how)
    if seen.omitted_from is None:
        assert seen.text.encode() == data.removesuffix(b"\n")
        return
    head, _, tail = seen.text.partition("[... ")
    tail = tail.partition("...]")[2].removeprefix("\n")
    resume = seen.omitted_from + seen.omitted
    assert data[: seen.omitted_from].decode().rstrip("\n") == head.rstrip("\n")
    assert data[resume:].removesuffix(b"\n").decode() == tail
    assert len(seen.text) < max_chars + 150


def test_gap_that_the_node_left_is_stated_with_its_offsets():
    raw = Raw(b"one\ntwo\nthr", b"ee\nfour\nfive\n", omitted=1000, start=50)
    seen = render(raw, max_chars=1000, how=how)
    assert seen.text == "one\ntwo\n[... 1,006 bytes left out here: offsets 58 to 1064. READ(58) ...]\nfour\nfive"


def test_characters_and_sequences_cut_by_a_gap_leave_no_rubbish():
    word = "ä".encode()
    seen = render(Raw(b"x" + word[:1], word[1:] + b"y", omitted=10), max_chars=1000, how=how)
    assert "\ufffd" not in seen.text


def test_one_line_of_a_hundred_megabytes_is_bounded():
    """T6"""
    raw = Raw(b"x" * (100 * 2**20))
    tracemalloc.start()
    seen = render(raw, max_chars=30_000, how=how)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 2**20
    assert len(seen.text) < 31_000
    assert seen.omitted == 100 * 2**20 - 30_000


def test_random_bytes_are_rendered_and_counted():
    """T2"""
    seen = render(Raw(os.urandom(4096)), max_chars=30_000, how=how)
    assert seen.omitted == 0
    assert seen.text


@given(st.binary(max_size=3000), st.binary(max_size=3000), st.integers(0, 10**6), st.integers(10, 4000))
def test_rendering_never_raises_and_stays_near_its_limit(head, tail, omitted, max_chars):
    seen = render(Raw(head, tail, omitted, 5), max_chars=max_chars, how=how)
    assert len(seen.text) <= max_chars + 200
    assert seen.omitted >= 0


def test_last_lines_are_counted_from_the_end():
    data = b"".join(b"%d\r\n" % number for number in range(1, 101))
    seen = render_last(Raw(data), start=5, end=2, max_chars=1000, how=how)
    assert seen.text == "96\n97\n98"
    assert data[seen.start :].startswith(b"96\r\n")


def test_last_lines_of_little_output_are_all_lines():
    assert render_last(Raw(b"only\n"), start=50, end=0, max_chars=1000, how=how).text == "only"
    assert render_last(Raw(b""), start=50, end=0, max_chars=1000, how=how).text == ""


def test_input_beyond_the_limit_is_cut_to_head_and_tail():
    seen = render(Raw(b"\r10%" * RAW_LIMIT + b"\r99%"), max_chars=1000, how=how)
    assert seen.text.startswith("10%\n[... ")
    assert seen.text.endswith("99%")


def test_shortened_text_says_how_much_is_missing():
    assert shorten("abc", 3, "More.") == "abc"
    assert shorten("a" * 50 + "b" * 50, 10, "More.") == "aaaaa\n[... 90 characters left out here. More. ...]\nbbbbb"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=[])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=[])), inner),
    max_leaves=20,
)


@settings(max_examples=30)
@given(JSON)
def test_storable_values_hold_nothing_that_postgresql_refuses(value):
    """T1"""
    text = json.dumps(storable(value), ensure_ascii=False, allow_nan=False)
    text.encode()
    assert "\\u0000" not in text


def test_storable_cleans_keys_lists_and_surrogates():
    """T1"""
    assert storable({"a\0": ["\ud83d\ude00", "x\ud800", float("nan")]}) == {"a\u2400": ["😀", "x\ufffd", "NaN"]}
