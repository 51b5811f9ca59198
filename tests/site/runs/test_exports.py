"""A run's trace as JSON lines: whole, in order, readable by anything."""

import json

from runs.eventlog import event_append
from runs.exports.jsonl import run_lines


def test_every_event_is_a_line_and_big_ones_are_whole(queue) -> None:
    run = queue()
    texts = ["plain", "x" * 100_000, "a\0b", "\u2028 and \ud800"]
    for text in texts:
        event_append(run.pk, "noted", {"text": text}, epoch=None)
    head, *lines = [json.loads(line) for line in "".join(run_lines(run)).split("\n") if line]
    assert (head["run"], head["task"]) == (run.pk, "example-task")
    assert [line["seq"] for line in lines] == [1, 2, 3, 4]
    assert [line["body"]["text"] for line in lines] == ["plain", "x" * 100_000, "a\u2400b", "\u2028 and \ufffd"]


def test_a_run_without_a_step_has_its_head_alone(queue) -> None:
    assert len(list(run_lines(queue()))) == 1
