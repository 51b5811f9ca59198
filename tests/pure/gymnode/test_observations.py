"""Observations, errors and the special actions."""

from datetime import datetime, timedelta, timezone

import pytest
from pydantic import ValidationError

from gymnode import errors
from gymnode.errors import Blame, GymError, OutcomeUnknown, RequestBroken, RequestRefused, refusal_from
from gymnode.observations import EvaluationObservation, FileCursor, Observation, Outcome, SleepObservation, Woke
from gymnode.remote.refusals import STATUS

AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=timezone(timedelta(hours=2)))


def test_times_are_utc_with_milliseconds():
    body = Observation(outcome=Outcome.OK, message="x", started_at=AT, finished_at=AT).body()
    assert body["started_at"] == "2026-01-02T01:04:05.678Z"
    with pytest.raises(ValidationError):
        Observation(outcome=Outcome.OK, message="x", started_at=datetime(2026, 1, 2), finished_at=AT)  # noqa: DTZ001


def test_body_names_its_type_and_holds_nothing_that_the_database_refuses():
    """T1"""
    seen = EvaluationObservation(
        outcome=Outcome.OK, message="a\0", started_at=AT, finished_at=AT, metrics={"a\0": [float("inf"), "\ud800"]}
    )
    assert seen.body()["observation_type"] == "evaluation"
    assert seen.body()["metrics"] == {"a\u2400": ["Infinity", "\ufffd"]}
    assert seen.body()["message"] == "a\u2400"


def test_cursor_survives_storing():
    cursor = FileCursor(node="n1", path="f", line=3, last=9)
    assert FileCursor.model_validate(cursor.model_dump(mode="json")) == cursor


def test_sleep_says_why_it_woke():
    seen = SleepObservation(outcome=Outcome.OK, message="x", started_at=AT, finished_at=AT, woke=Woke.DEADLINE_NEAR)
    assert seen.body()["woke"] == "deadline near"


def test_every_exception_says_who_is_to_blame_and_stands_in_the_tree():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, GymError)]
    for kind in kinds:
        assert kind.blame in Blame
        assert kind.__name__ in (errors.__doc__ or "")


def test_every_refusal_of_the_node_has_its_exception():
    for code, status in STATUS.items():
        error = refusal_from("n1", status, code, "why")
        assert getattr(error, "code", code) == code
        assert str(error) == "why"


def test_refusals_of_a_newer_node_become_the_general_class():
    assert type(refusal_from("n1", 418, "teapot", "x")) is RequestRefused
    assert type(refusal_from("n1", 503, "later", "x")) is RequestBroken
    assert isinstance(refusal_from("n1", 410, "outcome_unknown", "x"), OutcomeUnknown)


def test_thought_is_noted_and_not_repeatable(gym):
    assert gym.call("think", '{"thought":"plan"}').outcome is Outcome.OK
    assert not gym.node.sent


def test_node_status_shows_holders_of_this_run_only(gym):
    mine = {"run": "412", "session": "train", "pid": 7}
    other = {"run": "9", "session": "secret", "pid": 8}
    gpu = {"index": 0, "utilisation": 97, "memory_used_mb": 1000, "memory_total_mb": 80_000, "holders": [mine, other]}
    gym.node.script["node.status"] = {
        "cpu": {"percent": 12.5},
        "memory": {"used_gb": 3},
        "load": [0.5, 1, 2],
        "gpus": [gpu],
    }
    seen = gym.call("node_status")
    assert "GPU 0: 97 % busy, memory 1,000 of 80,000 MB, held by session train, another process" in seen.output
    assert "cpu: percent 12.5" in seen.output
    assert "secret" not in str(seen.body())


@pytest.mark.parametrize("name", ["eval", "finish", "view_hint"])
def test_engine_actions_are_not_performed_here(gym, name):
    with pytest.raises(NotImplementedError, match="engine"):
        gym.call(name)
