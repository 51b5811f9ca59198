"""Playbooks and the scripted model: conditions, labels, repeats, templates, places."""

import pytest

from runs.agent.events import Call
from runs.agent.llm.playbook import Condition, LastSeen, Position, next_position, parse_position, read_playbook
from runs.agent.llm.scripted import Turn, play, task_named, where
from runs.agent.yaml_core import SourceErrors
from tests.pure.agent.memory import opened, played_out
from tests.pure.agent.models import book, scripted

BRANCHES = """
  - call: {run_command: {command: a}}
  - when: {outcome: ok, contains: yes-it-worked}
    else: repair
    say: good
    call: {eval: {}}
    then: end
  - label: repair
    when: {outcome: [failed, broken]}
    say: repair
    call: {run_command: {command: b}}
    repeat: {until: {matches: 'value (?P<v>[0-9.]+)'}, max: 3, else: give-up}
  - when: {matches: 'value (?P<v>\\d+)'}
    say: "use ${{ v }} and ${{ outcome }}, not ${{v"
    call: {run_command: {command: "keep ${{ v }} of {{ v }}"}}
    then: end
  - label: give-up
    call: {list_sessions: {}}
  - label: end
    call: {finish: {}}
"""


def after(call_id: str, text: str) -> list[Turn]:
    return [Turn("user", "Task: demo"), Turn("assistant", "t", (call_id,)), Turn("tool", text)]


@pytest.mark.parametrize(
    ("call_id", "text", "place"),
    [
        ("pb-0", "[ok] yes-it-worked", "pb-1"),
        ("pb-0", "[ok] something else", "pb-4"),
        ("pb-0", "[failed] yes-it-worked", "pb-2"),
        ("pb-1", "[ok] score", "pb-5"),
        ("pb-2", "[ok] nothing", "pb-2-1"),
        ("pb-2-1", "[ok] nothing", "pb-2-2"),
        ("pb-2-2", "[ok] nothing", "pb-4"),
        ("pb-2-1", "[ok] value 7.5", "pb-3"),
        ("pb-3", "[ok] x", "pb-5"),
        ("pb-5", "[refused] x", "pb-6"),
        ("pb-6", "[ok] x", "pb-6"),
        ("pb-99", "[ok] x", "pb-6"),
    ],
)
def test_the_play_goes_on_by_the_last_observation(call_id: str, text: str, place: str):
    played = play(book(BRANCHES), after(call_id, text), with_tools=True)
    assert [call.id for call in played.calls] == [place]


def test_templates_are_filled_from_the_last_observation_and_from_nothing_else():
    played = play(book(BRANCHES), after("pb-2", "[ok] value 7\n\n[status] Left: value 9"), with_tools=True)
    assert played.text == "use 7 and ok, not ${{v"
    assert played.calls[0].arguments == '{"command": "keep 7 of {{ v }}"}'


def test_the_place_is_the_last_one_that_is_named():
    turns = [*after("pb-3c1", "[ok] x"), Turn("assistant", "words [pb-7]"), Turn("user", "[refused] no call")]
    assert where(turns) == (Position(7), LastSeen("refused", "no call"))
    assert where([Turn("assistant", "x", ("toolu_1",)), Turn("tool", "[ok] x")]) == (None, LastSeen())
    assert parse_position("pb-12-3c2") == Position(12, 3)
    assert Position(12, 3).call_id(2) == "pb-12-3c2"


def test_usage_doesn_t_depend_on_times_and_status():
    one = play(book(BRANCHES), after("pb-0", "[ok] took 3.25 s\n\n[status] Left: 5 min"), with_tools=True)
    two = play(book(BRANCHES), after("pb-0", "[ok] took 114 s\n\n[status] Left: 1 h 5 min, much more"), with_tools=True)
    assert one.usage == two.usage


def test_the_task_is_on_its_line():
    assert task_named([Turn("system", "Task: no, not here"), Turn("user", "x\nTask: demo\ny")]) == "demo"
    assert task_named([Turn("user", "no task")]) is None


@pytest.mark.parametrize(
    ("condition", "text", "holds"),
    [
        ({"contains": ["a", "b"]}, "a b", True),
        ({"contains": ["a", "b"]}, "a", False),
        ({"lacks": "a"}, "a", False),
        ({"matches": "^b$"}, "a\nb\nc", True),
        ({"any": [{"contains": "x"}, {"contains": "a"}]}, "a", True),
        ({"any": [{"contains": "x"}]}, "a", False),
        ({"field": {"exit_code": 0}}, "Exit code: 0.", True),
        ({"field": {"exit_code": 0}}, "exit code: 1", False),
        ({"field": {"score": ">= 10"}}, '{"score": 12.5, "x": 1}', True),
        ({"field": {"score": "< 10"}}, "score = 12.5", False),
        ({"field": {"score": "<= 12.5"}}, "score = 12.5", True),
        ({"field": {"score": "> 12"}}, "score = 12.5", True),
        ({"field": {"score": "== 12.5"}}, "score=12.5", True),
        ({"field": {"score": "!= 12"}}, "score=nan?", False),
        ({"field": {"score": "!= 12"}}, "score=13", True),
        ({"field": {"valid": True}}, '"valid": true', True),
        ({"field": {"state": "exited"}}, "state: exited", True),
        ({"field": {"state": "exited"}}, "no such thing", False),
    ],
)
def test_conditions(condition: dict[str, object], text: str, holds: bool):
    assert Condition.model_validate(condition).holds(LastSeen("ok", text)) is holds


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("task: demo\nsteps: []", 2, "1 to 5000 steps, here are 0"),
        ("task: demo\nsteps:\n - {say: a, label: x}\n - {say: b, label: x}", 4, "stands twice"),
        ("task: demo\nsteps:\n - {say: a, label: x}\n - {say: b, then: x}", 4, "labels lead forward only"),
        ("task: demo\nsteps:\n - {say: b, then: nowhere}", 3, "no label of a later step"),
        ("task: demo\nsteps:\n - {say: 'use ${{ v }}'}", 3, "has no value here"),
        ("task: demo\nsteps:\n - {say: a, when: {matches: '('}}", 3, "not a regular expression"),
        ("task: demo\nsteps:\n - {sya: a}", 3, "sya"),
        ("task: demo\nsteps:\n - {}", 3, "says something"),
        ("task: demo\nsteps:\n - {call: {a: {}, b: {}}}", 3, "2 names"),
        ("task: demo\nsteps:\n - {call: {a: {}}, calls: [{b: {}}]}", 3, "exclude each other"),
        ("task: demo\nsteps:\n - {say: a, else: x}", 3, "`else` needs a `when`"),
        ("task: demo\nsteps:\n - {say: a, repeat: {until: {}, max: 0}}", 3, "greater than or equal to 1"),
        ("task: demo\nsteps: *x", 2, "aliases"),
    ],
)
def test_faults_of_a_playbook_name_their_line(text: str, line: int, words: str):
    with pytest.raises(SourceErrors) as raised:
        read_playbook(text)
    assert words in str(raised.value)
    assert raised.value.errors[0].line == line


def test_every_play_ends_whatever_is_observed():
    steps = book(BRANCHES)
    for text in ("", "value 1", "yes-it-worked"):
        for outcome in ("ok", "failed", "refused"):
            place, turns = None, 0
            while place is None or place.step < len(steps.steps):
                place, turns = next_position(steps, place, LastSeen(outcome, text)), turns + 1
                assert turns < 20


def test_a_fault_is_played_as_often_as_it_says_and_a_run_survives():
    model = scripted(
        "\n  - {say: a, call: {list_sessions: {}}, fault: {empty: true, times: 3}}\n  - call: {finish: {}}\n"
    )
    session = opened()
    played_out(model, session)
    assert [event.kind for event in session.log].count("replied") == 5


def test_past_the_end_the_model_calls_finish():
    session = opened()
    played_out(scripted("\n  - {say: a, call: {list_sessions: {}}}\n"), session)
    assert session.log[-1].body["name"] == "finish"
    assert Call.read(session.log[-3].body["calls"][0]).id == "pb-1"
