"""Secrets in the bytes of terminals: masked in every form, wherever the stream is cut, at the same offsets."""

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymnode.remote.masking import Masker
from runs.masks import Masks
from runs.terminal_masks import MaskedStream, byte_forms

KEY = "PlainKey0123456789abc/defXYZ+é"
FORMS = byte_forms(Masks((KEY,)))
ENCODED = base64.b64encode(KEY.encode()).decode()[:41]  # what follows it depends on its last six bits


def shown(stream: MaskedStream, size: int) -> bytearray:
    """All that is ready, each piece at its place."""
    out = bytearray(b"?" * size)
    for offset, data in stream.ready():
        out[offset : offset + len(data)] = data
    return out


@pytest.mark.parametrize("form", [KEY, quote(KEY, safe=""), json.dumps(KEY)[1:-1], ENCODED, "x" + ENCODED])
@pytest.mark.parametrize("size", [1, 7, 10**6])
def test_every_form_is_masked_at_its_place_however_the_stream_is_cut(form: str, size: int) -> None:
    """A2"""
    printed = f"key={form} end\r\n".encode()
    stream = MaskedStream(FORMS, 0)
    for at in range(0, len(printed), size):
        stream.take(at, printed[at : at + size])
    stream.let_go()
    seen = bytes(shown(stream, len(printed)))
    assert seen.startswith(b"key=")
    assert seen.endswith(b" end\r\n")
    assert form[-20:].encode() not in seen
    assert seen.count(b"*") >= len(KEY)


@given(st.integers(1, len(KEY.encode()) - 1))
def test_a_beginning_that_is_let_go_gives_three_bytes_away_at_most(cut: int) -> None:
    """A2: nothing is kept back for ever, and what follows later is masked all the same."""
    raw = f"{KEY}.".encode()
    stream = MaskedStream(FORMS, 0)
    stream.take(0, raw[:cut])
    stream.let_go()
    first = shown(stream, cut)
    stream.take(cut, raw[cut:])
    seen = first + shown(stream, len(raw))[cut:]
    assert first == (b"*" * cut if cut > 3 else raw[:cut])
    assert bytes(seen[3:]) == b"*" * (len(raw) - 4) + b"."


@given(st.integers(4, len(KEY.encode()) - 1))
def test_behind_a_gap_the_end_of_a_secret_is_masked(cut: int) -> None:
    """A2: the part that can be seen of it says nothing."""
    rest = KEY.encode()[cut:]
    stream = MaskedStream(FORMS, 0)
    stream.take(0, b"before ")
    stream.take(1000, rest + b" after")
    seen = shown(stream, 1100)
    assert seen[:7] == b"before "
    assert seen[1000 : 1000 + len(rest)] == (b"*" * len(rest) if len(rest) > 3 else rest)
    assert seen[1000 + len(rest) : 1006 + len(rest)] == b" after"


def test_what_is_offered_again_is_taken_once() -> None:
    """R3"""
    stream = MaskedStream(FORMS, 0)
    stream.take(0, b"hello ")
    stream.take(0, b"hello world")
    assert [*stream.ready()] == [(0, b"hello "), (6, b"world")]
    assert [*stream.ready()] == []


def test_a_piece_that_its_taker_fails_to_store_is_given_again() -> None:
    """R3"""
    stream = MaskedStream(FORMS, 0)
    stream.take(0, b"once")
    assert next(stream.ready()) == (0, b"once")
    assert [*stream.ready()] == [(0, b"once")]


def test_masks_of_a_long_secret_cost_no_more_than_a_look() -> None:
    """Not timed: looking at every length of every form for every piece would not end."""
    forms = list(byte_forms(Masks(("ab" * 2000,))))
    masker = Masker(forms)
    seen = b"".join(masker.feed(b"ab" * 5_000) for _ in range(3)) + masker.flush()
    assert seen == b"*" * 30_000
