"""Events grouped into steps: whatever a body holds or lacks, a page can be made of it."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from runs.steps import NoteView, StepView, cut, step_views

START = datetime(2026, 1, 1, tzinfo=UTC)
LANES = {"run_command": "command", "eval": "eval", "think": "think"}


@dataclass(frozen=True)
class Row:
    seq: int
    step: int
    kind: str
    body: dict[str, Any] = field(default_factory=dict)

    @property
    def at(self) -> datetime:
        return START + timedelta(seconds=self.seq)


def views(*rows: Row):
    return step_views(rows, lanes=LANES, started_at=START)


def call(name: str = "run_command", **arguments: Any) -> list[Row]:
    asked = {"id": "c1", "name": name, "arguments": "{}"}
    sent = {"call_id": "c1", "action_id": "1.1.0", "name": name, "arguments": arguments}
    seen = {**sent, "outcome": "ok", "message": "done", "text": "done\nout", "observation": {"exit_code": 0}}
    replied = Row(1, 1, "replied", {"text": "so", "calls": [asked], "usage": {"input": 5, "output": 2}, "usd": "0.01"})
    return [replied, Row(2, 1, "action_sent", sent), Row(3, 1, "observed", seen)]


def test_a_reply_and_what_came_of_it_are_one_step():
    (step,) = views(*call(command="ls", session_id="main"))
    assert isinstance(step, StepView)
    assert (step.number, step.lane, step.calls[0].main, step.calls[0].output.head) == (1, "command", "ls", "out")
    assert [(a.key, a.text) for a in step.calls[0].arguments] == [("session_id", "main")]


def test_an_action_under_way_has_no_outcome_yet():
    (step,) = views(*call(command="ls")[:2])
    assert step.calls[0].outcome == ""
    assert not step.bad


def test_a_reply_without_a_call_is_a_null_step():
    (step,) = views(Row(1, 1, "replied", {"text": "hm", "calls": []}))
    assert step.lane == "null"


def test_a_malformed_call_is_a_null_mark_with_its_answer():
    asked = {"id": "c1", "name": "run_cmd", "arguments": "{bad"}
    seen = {"call_id": "c1", "action_id": None, "name": "run_cmd", "outcome": "refused", "message": "no such tool"}
    (step,) = views(Row(1, 1, "replied", {"calls": [asked]}), Row(2, 1, "observed", seen))
    assert (step.lane, step.bad, step.calls[0].message) == ("null", True, "no such tool")


def test_several_calls_of_a_reply_keep_their_order():
    asked = [{"id": f"c{i}", "name": "think", "arguments": "{}"} for i in range(3)]
    (step,) = views(Row(1, 1, "replied", {"calls": asked}))
    assert len(step.calls) == 3


def test_what_stands_before_the_first_reply_is_a_note():
    (note,) = views(Row(1, 0, "task_given", {"task": "x"}))
    assert isinstance(note, NoteView)
    assert note.clock == "0:01"


def test_notes_stand_among_the_steps_in_order_of_their_number():
    kinds = views(*call(command="ls"), Row(4, 1, "paused"), Row(5, 2, "replied", {"calls": []}))
    assert [type(view).__name__ for view in kinds] == ["StepView", "NoteView", "StepView"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"calls": None},
        {"calls": "x"},
        {"calls": [None, 3]},
        {"usage": "x", "text": 5},
        {"usd": None, "reasoning": []},
    ],
)
def test_bodies_that_lack_or_break_things_still_make_a_step(body):
    """T3"""
    (step,) = views(Row(1, 1, "replied", body))
    assert step.number == 1


def test_the_text_of_a_hint_is_left_out():
    rows = call("view_hint")
    (step,) = views(*rows)
    assert step.calls[0].hidden
    assert step.calls[0].output is None


def test_long_texts_keep_head_and_tail_and_say_what_is_missing():
    """T6"""
    piece = cut("a" * 5000 + "b" * 5000, 6000)
    assert (len(piece.head), len(piece.tail), piece.omitted) == (3000, 3000, 4000)


def test_long_arguments_become_blocks():
    (step,) = views(*call("create_file", path="a.py", content="x = 1\n" * 50))
    assert [b.key for b in step.calls[0].blocks] == ["content"]
    assert step.calls[0].main == "a.py"
