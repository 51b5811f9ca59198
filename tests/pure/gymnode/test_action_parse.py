"""From a model's call to an action, or to an observation that says exactly what was wrong."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from gymnode.actions.registry import (
    ACTIONS,
    KNOWN,
    PRESETS,
    UNAVAILABLE,
    action_parse,
    family_of,
    lane_of,
    tool_specs,
)
from gymnode.errors import Blame, CallRefused
from gymnode.observations import Outcome, Refusal

ALL = PRESETS["innovatorbench"]


def refused(name: str, raw: str, allowed=ALL) -> Refusal:
    with pytest.raises(CallRefused) as caught:
        action_parse(name, raw, allowed=allowed)
    assert caught.value.blame is Blame.MODEL
    assert caught.value.observation.outcome is Outcome.REFUSED
    return caught.value.observation


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ('{"a":', "cut off"),
        ("null", "null was sent"),
        ("[]", "a list was sent"),
        ('{"command":"a"}{"command":"b"}', "follows after it (character 16)"),
        ('{"command":"a"}"', "follows after it (character 16)"),
        ('"ls"', 'the string "ls" was sent'),
        ("7", "the number 7 was sent"),
        ("{command: 1}", "not valid JSON"),
        ('{"command":"a","command":"b"}', '"command" is given twice'),
        ('{"command":"a","timeout_s":NaN}', "NaN is no JSON value"),
        ("[" * 100_000, "nested too deeply"),
        ('{"timeout_s":' + "9" * 5000 + "}", "thousands of digits"),
        ('{"command":"' + "a" * 6_000_000 + '"}', "at most 5,242,880"),
    ],
)
def test_broken_arguments_are_refused_with_the_fault_and_the_schema(raw, said):
    """R12"""
    seen = refused("run_command", raw)
    assert said in seen.message
    assert seen.parameters == ACTIONS["run_command"].parameters()
    assert '"required": ["command"]' in seen.text()


@pytest.mark.parametrize(
    ("name", "raw", "said"),
    [
        ("run_command", "{}", '"command" is missing'),
        ("run_command", '{"command":5}', '"command" must be a valid string, but the number 5 was sent'),
        ("run_command", '{"command":"a","timeout_s":"10"}', "send 10 without quotes"),
        ("run_command", '{"command":"a","wait_for_completion":"True"}', "send true without quotes"),
        ("run_command", '{"command":"a","timeout_s":null}', "leave it out to get the default"),
        ("run_command", '{"command":"a","timeout_s":1e999}', "finite number"),
        ("run_command", '{"command":"a","timeot_s":1}', 'did you mean "timeout_s"?'),
        ("run_command", '{"command":"a\\u0000b"}', "NUL"),
        ("create_file", '{"filename":"a","content":"a\\u0000b"}', "NUL"),
        ("think", '{"thought":"\\u0000"}', "NUL"),
        ("run_command", '{"command":"\\ud800"}', "half of a surrogate pair"),
        ("run_command", '{"command":"a","session_id":"a b"}', '"session_id" must match pattern'),
        ("run_command", '{"command":""}', '"command" must have at least 1 character'),
        ("open_file", '{"path":"f","line_number":0}', "greater than or equal to 1"),
        ("open_file", '{"path":"f","line_number":2.5}', "valid integer, but the number 2.5"),
        ("open_file", '{"path":"f","line_number":true}', "valid integer, but true"),
        ("sleep", '{"seconds":14401}', "less than or equal to 14400"),
        ("sleep", '{"seconds":0}', "greater than or equal to 1"),
        ("eval", '{"now":1}', '"now" is no parameter (it takes none)'),
        ("list_files", '{"node":"a","computer_ip":"b"}', "mean the same and differ"),
    ],
)
def test_arguments_that_do_not_fit_are_named(name, raw, said):
    assert said in refused(name, raw).message


def test_several_faults_are_all_named():
    seen = refused("run_command", '{"command":5,"timeout_s":"soon","foo":1}')
    assert len(seen.problems) == 3


@pytest.mark.parametrize(
    ("name", "allowed", "said"),
    [
        ("run_comand", ALL, "Did you mean run_command?"),
        ("", ALL, "There is no tool named ''"),
        ("null", ALL, "There is no tool named 'null'"),
        ("x" * 1000, ALL, "..."),
        ("run_command", ("think", "finish"), "not among the tools of this run. Its tools: think, finish."),
        ("view_hint", ALL, "not among the tools"),
        ("parse_pdf", (*ALL, "parse_pdf"), "not available in this release"),
        ("web_browse", ALL, "not available in this release"),
    ],
)
def test_names_that_can_not_be_called(name, allowed, said):
    assert said in refused(name, "{}", allowed).message


def test_whole_numbers_may_have_a_decimal_point_and_missing_arguments_may_be_no_text_at_all():
    assert action_parse("open_file", '{"path":"f","line_number":10.0}', allowed=ALL).line_number == 10
    assert action_parse("list_sessions", "", allowed=ALL).arguments() == {}
    assert action_parse("run_command", '{"command":"a","session_id":null}', allowed=ALL).session_id is None


def test_computer_ip_means_node():
    assert action_parse("list_files", '{"computer_ip":"n2"}', allowed=ALL).node == "n2"
    assert action_parse("list_files", '{"computer_ip":"n2","node":"n2"}', allowed=ALL).node == "n2"


def test_all_names_of_the_paper_and_three_more_are_known():
    assert len(KNOWN) == 45
    assert {family_of(name) for name in UNAVAILABLE} == {"parse", "search", "browse"}
    assert sum(family_of(name) == "command" for name in KNOWN) == 12
    assert sum(family_of(name) == "file" for name in KNOWN) == 11


def test_published_presets_are_those_of_the_authors_without_what_is_not_available():
    """27 and 35 names; two parse and eight search and browse names are among them."""
    assert len(PRESETS["published"]) == 27 - 2
    assert len(PRESETS["published-browse"]) == 35 - 2 - 8


def test_offer_has_a_fixed_order_and_neither_null_nor_what_is_not_available():
    forward, backward = tool_specs(ALL), tool_specs(reversed([*ALL, "null", "parse_pdf"]))
    assert forward == backward
    assert [spec.name for spec in forward] == list(ALL)
    with pytest.raises(KeyError, match="nonsense"):
        tool_specs(["nonsense"])


@pytest.mark.parametrize("name", ACTIONS)
def test_every_action_is_described_for_a_model(name):
    spec = tool_specs([name])
    assert lane_of(name)
    if not spec:
        return
    Draft202012Validator.check_schema(spec[0].parameters)
    assert len(spec[0].description) > 30
    assert spec[0].parameters["additionalProperties"] is False
    for part in spec[0].parameters["properties"].values():
        assert part["type"] in {"string", "integer", "number", "boolean"}
        assert part["description"].endswith((".", "?"))


VALUES = (
    st.none() | st.booleans() | st.integers(-5, 20_000) | st.floats(-5, 5).map(lambda x: round(x, 1)) | st.text("a1/ ")
)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(ACTIONS)), st.data())
def test_what_fits_the_offered_schema_is_accepted_and_nothing_raises_but_call_refused(name, data):
    action = ACTIONS[name]
    schema = action.parameters()
    names = [*schema["properties"], "extra"]
    arguments = data.draw(st.dictionaries(st.sampled_from(names), VALUES, max_size=4))
    fits = Draft202012Validator(schema).is_valid(arguments)
    try:
        action_parse(name, json.dumps(arguments), allowed=KNOWN)
    except CallRefused:
        assert not fits or not action.offered


@pytest.mark.parametrize("name", [name for name in ACTIONS if ACTIONS[name].offered])
def test_arguments_read_back_give_the_same_action(name):
    """N7"""
    full = {part: _sample(schema) for part, schema in ACTIONS[name].parameters()["properties"].items()}
    action = action_parse(name, json.dumps(full), allowed=KNOWN)
    assert action_parse(name, json.dumps(action.arguments()), allowed=KNOWN) == action


def _sample(schema: dict) -> object:
    kinds = {"string": "ä\n" if "pattern" not in schema else "s1", "integer": 30, "number": 2.5, "boolean": False}
    return kinds[schema["type"]]


@given(st.text(max_size=60))
def test_any_text_is_an_action_or_a_refusal(raw):
    try:
        action_parse("list_sessions", raw, allowed=ALL)
    except CallRefused as error:
        json.dumps(error.observation.body(), ensure_ascii=False).encode()
