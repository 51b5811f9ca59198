"""What evaluate.py may say, and what each way of ending means."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.contract import Outcome
from evaluator.manifest import manifest_parse
from evaluator.results import ResultRefused, message_clean, metric_value, result_parse
from evaluator.sandbox import Ended, Ran
from evaluator.scoring import judge
from tests.pure.evaluator.packages import MANIFEST

NAMES = ("accuracy", "length")
GOOD = b'{"schema": 1, "valid": true, "metrics": {"accuracy": 0.5, "length": 3}, "message": ""}'
INVALID = b'{"schema": 1, "valid": false, "message": "line 41: no number"}'


def test_a_good_result_and_an_invalid_one_are_read() -> None:
    assert dict(result_parse(GOOD, NAMES).metrics) == {"accuracy": 0.5, "length": 3.0}
    assert result_parse(INVALID, NAMES).message == "line 41: no number"


@pytest.mark.parametrize(
    "raw",
    [b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1e999", b"1" + b"0" * 400, b"-" + b"9" * 4000, b"9" * 5000,
     b'"abc"', b'"0.5"', b'""', b"null", b"[0.5]", b"[]", b"[[0.5]]", b'{"value": 0.5}', b"{}", b"true", b"false",
     b'0.5, "accuracy": 0.6', b'0.5, "accuracy": 0.5', b'0.5, "accuracy": NaN'],
)  # fmt: skip
def test_a_metric_that_is_no_finite_number_is_refused(raw: bytes) -> None:
    """T3: by its name where it has one; a number of more digits than Python reads is no JSON to us."""
    with pytest.raises(ResultRefused, match=r"accuracy|JSON number|not JSON"):
        result_parse(GOOD.replace(b"0.5", raw), NAMES)


@pytest.mark.parametrize(
    ("raw", "got"),
    [
        (b"NaN", "is not finite: expected a finite number, got NaN"),
        (b"-1e999", "is not finite: expected a finite number, got -Infinity"),
        (b"1" + b"0" * 400, "is not finite: expected a finite number, got Infinity"),
        (b'"0.5"', r'is "0.5", not a number: expected a finite number, got a string'),
        (b"true", "is true, not a number: expected a finite number, got a boolean"),
        (b"null", "is null, not a number: expected a finite number, got null"),
        (b"[0.5]", r"is \[0.5\], not a number: expected a finite number, got a list"),
    ],
)
def test_a_refused_metric_is_named_with_expected_against_got(raw: bytes, got: str) -> None:
    """T3, S5: curators read it at the head of the evaluation's log."""
    with pytest.raises(ResultRefused, match=f"metric 'accuracy' {got}"):
        result_parse(GOOD.replace(b"0.5", raw), NAMES)


@given(st.none() | st.booleans() | st.text() | st.lists(st.floats()) | st.dictionaries(st.text(), st.floats()))
def test_whatever_is_no_number_is_refused_by_name(value: object) -> None:
    """T3"""
    with pytest.raises(ResultRefused, match="metric 'accuracy'"):
        metric_value("accuracy", value)


@given(st.floats() | st.integers() | st.sampled_from([10**308, 10**309, -(10**400)]))
def test_a_number_is_kept_as_it_is_or_refused_as_not_finite(value: float) -> None:
    """T3"""
    if abs(value) <= sys.float_info.max:
        assert metric_value("accuracy", value) == float(value)
        return
    with pytest.raises(ResultRefused, match="metric 'accuracy' is not finite"):
        metric_value("accuracy", value)


@pytest.mark.parametrize(
    "metrics", [b'{"accuracy": 1}', b'{"accuracy": 1, "length": 1, "bleu": 2}', b"{}", b"[]", b"null"]
)
def test_unknown_and_missing_metrics_are_told_expected_against_got(metrics: bytes) -> None:
    """S5"""
    with pytest.raises(ResultRefused, match="metrics"):
        result_parse(b'{"schema": 1, "valid": true, "metrics": ' + metrics + b"}", NAMES)
    with pytest.raises(ResultRefused, match="expected: accuracy, length; got: accuracy"):
        result_parse(b'{"schema": 1, "valid": true, "metrics": {"accuracy": 1}}', NAMES)


@pytest.mark.parametrize(
    "raw",
    [b"", b" ", b"{", b"[]", b"\xff", b'{"schema": 2, "valid": false, "message": "x"}', b'{"schema": 1, "valid": 1}',
     b'{"schema": 1, "valid": false}', b'{"schema": 1, "valid": false, "message": 3}',
     b'{"schema": true, "valid": false}',
     b'{"schema": 1, "valid": false, "message": "x", "score": 100}', b'{"schema":1,"schema":1}', b"[" * 100_000],
)  # fmt: skip
def test_rubbish_is_refused(raw: bytes) -> None:
    with pytest.raises(ResultRefused):
        result_parse(raw, NAMES)


def test_messages_lose_control_characters_and_length() -> None:
    assert message_clean("a\x00b\x1b[31m\u202ec\nd") == "a\ufffdb\ufffd[31m\ufffdc\nd"
    assert len(message_clean("x" * 9000)) == 2000


def ran(code: int, result: bytes | None, ended: Ended = Ended.EXIT) -> Ran:
    return Ran(
        ended, code, 1.0, 1.0, "", "a warning on stderr", 0, "", result, "" if result else "result.json is missing"
    )


@pytest.mark.parametrize("code", [0, 1])
@pytest.mark.parametrize(("result", "good"), [(GOOD, True), (None, False), (b"", False), (b'{"schema": 1}', False)])
def test_only_exit_0_with_a_good_result_is_valid_whatever_stderr_says(
    code: int, result: bytes | None, good: bool
) -> None:
    """S9"""
    scored = judge(ran(code, result), manifest_parse(MANIFEST), {}, "")
    assert scored.outcome is (Outcome.VALID if good and code == 0 else Outcome.CRASHED)
    assert scored.outcome is Outcome.VALID or not scored.metrics


@pytest.mark.parametrize("ended", [Ended.SIGNAL, Ended.TIME, Ended.SIZE, Ended.SETUP, Ended.PARENT])
def test_an_end_by_force_is_never_a_score(ended: Ended) -> None:
    scored = judge(ran(0, GOOD, ended), manifest_parse(MANIFEST), {}, "")
    assert scored.outcome is Outcome.CRASHED
