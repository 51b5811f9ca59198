"""The program language: what it refuses, that it says everything at once, and that nothing makes it raise."""

import contextlib
import json

import pytest
from grpo.dialect import LANGUAGE
from hypothesis import given
from hypothesis import strategies as st
from lang.program import ProgramFaultsError, program_parse


def faults(**program: object) -> tuple[str, ...]:
    with pytest.raises(ProgramFaultsError) as caught:
        program_parse(json.dumps(program).encode(), LANGUAGE)
    return caught.value.faults


def test_an_unknown_name_is_told_with_its_place_and_the_known_names():
    (fault,) = faults(let=[["a", "1"], ["b", "2"], ["adv", "rewards"]], objective="adv")
    assert fault.startswith("let[2] adv: unknown name 'rewards'; known: a, b, entropy, ")


def test_all_faults_come_in_one_list():
    found = faults(let=[["adv", "foo(1)"], ["adv", "2"]], objective="x + exp(1, 2)", weight="a.b", extra=1)
    places = [fault.split(":")[0] for fault in found]
    assert places == ["program", "let[0] adv", "let[1] adv", "objective", "objective", "weight"]


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("logp.real", "an attribute"),
        ("logp[0]", "an index"),
        ("'text'", "str 'text' is not a number"),
        ("f'{logp}'", "a string"),
        ("True", "bool True is not a number"),
        ("1j", "complex"),
        ("clip(logp, lo=1, hi=2)", "no keywords"),
        ("min(*logp)", "no stars"),
        ("min(logp)", "min takes 2 arguments, not 1"),
        ("exp", "a function needs its arguments"),
        ("(lambda: 1)()", "only a named function"),
        ("__import__('os')", "unknown function '__import__'"),
        ("logp and reward", "and/or"),
        ("1 if reward else 2", "if/else"),
        ("logp % 2", "operator Mod"),
        ("not logp", "unary operator Not"),
        ("logp is reward", "comparison Is"),
        ("logp := 1", "not an expression"),
        ("", "not an expression"),
        ("logp\0", "not an expression"),
        ("ｌogp", "only ASCII"),
        ("1e7", "above 1e+06"),
        ("1e999", "above 1e+06"),
        ("9" * 400, "above 1e+06"),
        ("-" * 30 + "1", "deeper than 20"),
        ("1" + "*1" * 300, "601 characters, at most 600"),
    ],
)
def test_what_is_not_in_the_language_is_refused(expression: str, words: str):
    assert any(words in fault for fault in faults(objective=expression))


def test_a_chained_comparison_is_refused_and_not_read_as_its_first_half():
    """Trap 6 of the design of the task."""
    assert faults(objective="(0 < reward < 1) * logp") == ("objective: a chained comparison; write (a<b)*(b<c)",)


def test_thousands_of_chained_factors_are_refused_by_their_length():
    """Trap 7: the parser's own recursion error is never met."""
    assert "at most 600" in faults(objective="*".join(["1"] * 3000))[0]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "the file is empty"),
        (b"\xff", "byte 0 is not UTF-8"),
        (b"[" * 5000, "not JSON that can be read"),
        (b"[]", "a JSON object is expected, not list"),
        (b"x" * 9000, "9000 bytes, at most 8192"),
        (b'{"objective": "1", "objective": "2"}', "key 'objective' is given twice"),
        (b"{}", "objective: is required"),
        (b'{"objective": 1}', "an expression is a string, not int"),
        (b'{"objective": "1", "let": {}}', "a list of [name, expression]"),
        (b'{"objective": "1", "let": [["reward", "1"]]}', "this name is taken"),
        (b'{"objective": "1", "let": [["exp", "1"]]}', "this name is taken"),
        (b'{"objective": "1", "let": [["_x", "1"]]}', "a name is a letter"),
        (b'{"objective": "1", "aggregate": ["sequence"]}', 'is one of "sequence", "token"'),
        (b'{"objective": "1", "sampling": "reward"}', "sampling: unknown name 'reward'; known: pass_rate"),
        (b'{"objective": "1", "sampling": "group_mean(seen)"}', "unknown function 'group_mean'"),
        (b'{"objective": "\\ud800"}', "only ASCII"),
    ],
)
def test_a_broken_file_is_refused_with_its_reason(data: bytes, words: str):
    with pytest.raises(ProgramFaultsError) as caught:
        program_parse(data, LANGUAGE)
    assert any(words in fault for fault in caught.value.faults)


def test_counts_are_bounded():
    many = [[f"n{i}", "1"] for i in range(17)]
    assert "17 lets, at most 16" in faults(objective="1", let=many)[0]
    wide = [[f"n{i}", "+".join(["logp"] * 20)] for i in range(10)]
    assert faults(objective="1", let=wide) == ("program: 391 nodes in all, at most 160",)


@given(st.binary(max_size=300) | st.text(max_size=300).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_no_bytes_make_the_parser_raise_anything_but_its_own_error(data: bytes):
    with contextlib.suppress(ProgramFaultsError):
        program_parse(data, LANGUAGE)


PIECES = [
    "logp",
    "reward",
    "exp",
    "min",
    "(",
    ")",
    ",",
    "+",
    "**",
    "<",
    " ",
    "1",
    "1e9",
    ".",
    "[",
    "]",
    "'",
    "=",
    "#",
    "\n",
    "\\",
]
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=20) | st.lists(st.sampled_from(PIECES)).map("".join),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["let", "objective", "weight", "sampling", "aggregate", "x"]), JSON_VALUES))
def test_no_json_makes_the_parser_raise_anything_but_its_own_error(program: dict[str, object]):
    with contextlib.suppress(ProgramFaultsError):
        program_parse(json.dumps(program).encode(), LANGUAGE)
