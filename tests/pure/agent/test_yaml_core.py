"""YAML 1.2 core with places."""

import contextlib
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs.agent.yaml_core import MAX_CHARS, Place, SourceErrors, dotted, read_document


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("off", "off"),
        ("yes", "yes"),
        ("1:30", "1:30"),
        ("012", 12),
        ("0o17", 15),
        ("0x1F", 31),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("-.inf", -math.inf),
        ("2026-01-02", "2026-01-02"),
        ("'12'", "12"),
        ("! 12", "12"),
        ("<<", "<<"),
        ("!!str x", "x"),
        ("1_000", "1_000"),
    ],
)
def test_scalars_follow_the_core_schema(text: str, value: object):
    assert read_document(text).value == value


def test_nan_is_read():
    assert math.isnan(read_document(".nan").value)


def test_every_value_keeps_its_place():
    document = read_document("a: 1\nb:\n  - x\n  - {c: 2}\n")
    assert document.places["b", 1, "c"] == Place(4, 6)
    assert document.place(("b", 1, "c", "unknown")) == (Place(4, 6), ("b", 1, "c"))
    assert dotted(("b", 1, "c")) == "b[1].c"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb: 2\na: 3", 3, "`a` stands twice (first on line 1)"),
        ("a: &x 1\nb: *x", 2, "aliases are refused"),
        ("a: !!python/object/apply:os.system [x]", 1, "is refused; write a plain value"),
        ("a: !!binary aGk=", 1, "is refused"),
        ("a: 1\n--- \nb: 2", 2, "a second document"),
        ("a: [1, 2", 1, "not valid YAML"),
        ("a: b\n c: d\n  e: f", 2, "not valid YAML"),
        ("a: \x07", 1, "U+0007"),
        ("a: \ud800", 1, "U+D800"),
        ("? [1]\n: 2", 1, "must be a text"),
        ("a: " + "9" * 100, 1, "100 digits"),
        ("[" * 5000, 1, "levels deep"),
        ("x" * (MAX_CHARS + 1), 1, "at most"),
        ("%YAML 9.9\n--- a", 1, "not valid YAML"),
    ],
)
def test_faults_name_their_line(text: str, line: int, words: str):
    with pytest.raises(SourceErrors) as raised:
        read_document(text)
    assert raised.value.errors[0].line <= max(line, 2)
    assert words in str(raised.value)


@pytest.mark.parametrize("escape", ["\\UFFFFFFFF", "\\U00110000", "\\U80000000"])
def test_a_character_that_there_is_not_is_a_fault_of_its_line(escape: str):
    with pytest.raises(SourceErrors) as raised:
        read_document(f'a: 1\na: 2\nb:\n  - "{escape}"\n')
    assert [fault.line for fault in raised.value.errors] == [2, 4]
    assert "too large" in raised.value.errors[1].message


def test_a_version_of_thousands_of_digits_is_a_fault_of_its_line():
    with pytest.raises(SourceErrors, match=r"line 2.*too large"):
        read_document("# a config\n%YAML 1." + "9" * 5000 + "\n---\na: 1")


def test_all_faults_come_in_one_list():
    with pytest.raises(SourceErrors) as raised:
        read_document("a: 1\na: 2\nb: *x\nc: !!y 1\nb: 3")
    assert [fault.line for fault in raised.value.errors] == [2, 3, 4, 5]


def test_json_is_read_with_tabs_escapes_and_surrogate_pairs():
    text = '{"a":\t[1.5,true,null,"\\ud83d\\ude00\\/\\ud800"],\n\t"b":{}}'
    document = read_document(text)
    assert document.value == {"a": [1.5, True, None, "😀/\ufffd"], "b": {}}
    assert document.places["b",] == Place(2, 2)


def test_a_mark_of_the_byte_order_before_it_changes_nothing():
    assert read_document('\ufeff{\n\t"a": [\n\t\t1\n\t]\n}').value == {"a": [1]}
    assert read_document("\ufeffa: 1").value == {"a": 1}
    with pytest.raises(SourceErrors) as raised:
        read_document("\ufeffa: \x07")
    assert (raised.value.errors[0].line, raised.value.errors[0].column) == (1, 4)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**15), 10**15)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(json_values, st.sampled_from([None, 2, "\t"]))
def test_any_json_means_the_same_as_yaml(value: object, indent: int | str | None):
    assert read_document(json.dumps(value, indent=indent)).value == value


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="ab: -[]{}&*!|>\"'\n\t#%?,1.~\0\ud800", max_size=40))
def test_no_text_raises_anything_but_source_errors(text: str):
    with contextlib.suppress(SourceErrors):
        read_document(text)
