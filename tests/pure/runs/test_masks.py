"""A2: a value is masked in every form in which it comes back, and nothing else is."""

import base64
import html
import json
from urllib.parse import quote, quote_plus

import pytest

from runs.masks import DOT, Masks

KEY = 'sk-a"b\\c/d+e=f&g<h>é-0123456789'
MASKS = Masks((KEY,))


@pytest.mark.parametrize(
    "form",
    [
        KEY,
        json.dumps(KEY),
        json.dumps(KEY, ensure_ascii=False),
        json.dumps({"arguments": json.dumps({"x": KEY})}),
        repr({"x": KEY}),
        quote(KEY, safe=""),
        quote_plus(KEY),
        html.escape(KEY),
        KEY.encode().hex(),
        *(base64.b64encode(b"x" * shift + KEY.encode() + b"yz").decode() for shift in range(4)),
        *(base64.urlsafe_b64encode(b"x" * shift + KEY.encode()).decode() for shift in range(4)),
    ],
)
def test_every_form_is_masked(form: str) -> None:
    shown = MASKS.apply(f"before {form} after")
    assert shown.count(DOT) >= len(KEY)
    assert len(shown) == len(f"before {form} after")
    assert shown.startswith("before ")
    assert shown.endswith(" after")


@pytest.mark.parametrize("name", ["arguments", "other"])
def test_arguments_are_read_as_json(name: str) -> None:
    spelt = "".join(f"\\u{ord(char):04X}" for char in KEY)
    masked = MASKS.over({name: f'{{"{spelt}": ["{spelt}"], "n": 1}}'})[name]
    assert (DOT * len(KEY) in masked) == (name == "arguments")


@pytest.mark.parametrize("text", ["", "{", "[" * 5000, '{"a": 1, "a": 2}', "plain words", '{"a":  [1.0]}', "sk-a"])
def test_what_holds_no_value_stays_as_it_is(text: str) -> None:
    assert MASKS.over({"arguments": text}) == {"arguments": text}


@pytest.mark.parametrize("cut", range(len(KEY) // 2, len(KEY)))
def test_what_a_cut_leaves_of_a_value_is_masked(cut: int) -> None:
    shown = MASKS.apply(f"z{KEY[:cut]}\n[... left out ...]\n{KEY[-cut:]} {KEY}z {KEY[:cut]}{KEY[:cut]}")
    assert KEY[: len(KEY) // 2] not in shown
    assert KEY[-(len(KEY) // 2) :] not in shown
    assert shown.count(DOT) == 4 * cut + len(KEY)
    assert "\n[... left out ...]\n" in shown


def test_the_beginning_of_any_form_is_held_back() -> None:
    for form in MASKS.forms:
        shown, held = MASKS.ready(f"text {form[:9]}")
        assert form[:9] not in shown
        assert MASKS.ready(held + form[9:])[0].strip(DOT) in ("", "text ")
