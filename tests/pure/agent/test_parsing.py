"""From what a model wrote to calls."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs.agent.events import Call
from runs.agent.parsing import RawCall, native_calls, own_text, text_calls, wire_arguments, wire_name


def test_ids_are_kept_when_they_are_usable_and_replaced_when_not():
    raw = [
        RawCall("functions.run:0", "a", "{}"),
        RawCall("functions.run:0", "b", "{}"),
        RawCall("", "c", ""),
        RawCall("x y", "d", "{}"),
    ]
    calls = native_calls(raw, "reply-1")
    assert calls[0].id == "functions.run:0"
    assert len({call.id for call in calls}) == 4
    assert native_calls(raw, "reply-1") == calls
    assert native_calls(raw, "reply-2")[1].id != calls[1].id
    assert [call.index for call in calls] == [0, 1, 2, 3]
    assert calls[2].arguments == "{}"


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ('Thought: x\nAction: run_command\nAction Input: {"command": "ls"}', [("run_command", '{"command": "ls"}')]),
        ("Action: eval\nAction Input: {}\nAction: finish\nAction Input: {}", [("eval", "{}"), ("finish", "{}")]),
        ("Action: eval", [("eval", "{}")]),
        ("**Action:** `eval`\n**Action Input:** {}", [("eval", "{}")]),
        ('Action: eval()\nAction Input:\n```json\n{"a": 1}\n```\nand so on', [("eval", '{"a": 1}')]),
        ('Action: a\nAction Input: {"x": 1}\nI hope it works.', [("a", '{"x": 1}')]),
        ('Action: a\nAction Input: {"x": 1}\nObservation: done\nAction: b', [("a", '{"x": 1}')]),
        (
            'Action: a\nAction Input: {"x": "multi\\nline",\n "y": {\n  "z": 1}}',
            [("a", '{"x": "multi\\nline",\n "y": {\n  "z": 1}}')],
        ),
        ("only words about Action: none", []),
        ("", []),
    ],
)
def test_text_mode_finds_the_calls(text: str, calls: list[tuple[str, str]]):
    assert [(call.name, call.arguments) for call in text_calls(text, "r")] == calls


@pytest.mark.parametrize("raw", ['{"a":', "null", "[]", '{"a": 1} {"b": 2}', '{"a": 1}"', "command: ls"])
def test_broken_input_stays_broken_so_that_it_is_refused(raw: str):
    """R12"""
    assert text_calls(f"Action: run_command\nAction Input: {raw}", "r")[0].arguments == raw


@pytest.mark.parametrize("raw", ['{"a":', "null", "[]", "{} {}", "", "[" * 100_000])
def test_the_history_holds_json_objects_only(raw: str):
    """R13: providers refuse anything else."""
    assert json.loads(wire_arguments(Call(id="a", name="b", arguments=raw))) == {"not_json": raw}
    assert wire_arguments(Call(id="a", name="b", arguments='{"x": 1}')) == '{"x": 1}'


@pytest.mark.parametrize(
    ("name", "safe"), [("run_command", "run_command"), ("a b\ud800", "a_b_"), ("", "unknown"), ("x" * 99, "x" * 64)]
)
def test_names_on_the_wire_are_safe(name: str, safe: str):
    assert wire_name(name) == safe


def test_observations_that_the_model_made_up_are_cut():
    assert own_text("Thought: x\nAction: eval\nObservation: score 100\nThought: great") == "Thought: x\nAction: eval"


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet=st.sampled_from(list('Action: Input{}[]"\\\n`*:bserv\0\ud800')), max_size=60))
def test_no_text_makes_the_parser_raise(text: str):
    for call in text_calls(f"Action: x\nAction Input: {text}", "r"):
        assert "\0" not in call.arguments + call.name
