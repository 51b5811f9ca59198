"""Messages between site and evaluator: altered, late, replayed and malformed ones are refused."""

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from pydantic import ValidationError

from evaluator.contract import (
    BadSignature,
    ContractError,
    Malformed,
    Outcome,
    Replayed,
    ScoreRequest,
    ScoreResult,
    TooLate,
    keypair,
    result_check,
    sign,
    verify,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECRET, PUBLIC = keypair()


def request(**changed: Any) -> ScoreRequest:
    fields = {"evaluation": 7, "try_no": 1, "nonce": "n" * 22, "task_digest": "a" * 64, "sealed_address": "/blobs/s"}
    fields |= {
        "sealed_sha256": "b" * 64,
        "bundle_address": "/blobs/b",
        "bundle_sha256": "c" * 64,
        "size": 10,
        "seed": 3,
    }
    return ScoreRequest(**{**fields, "issued_at": NOW, **changed})


def result(**changed: Any) -> ScoreResult:
    fields = {"evaluation": 7, "try_no": 1, "nonce": "n" * 22, "task_digest": "a" * 64, "bundle_sha256": "c" * 64}
    fields |= {
        "outcome": Outcome.VALID,
        "metrics": {"accuracy": 0.5},
        "message": "",
        "seconds": 1.5,
        "sandbox_level": 1,
    }
    return ScoreResult(**{**fields, "facts": {"own_user": True, "seed": 1}, "finished_at": NOW, **changed})


def test_both_messages_survive_signing() -> None:
    for message in (request(), result()):
        assert verify(sign(message, SECRET), PUBLIC, now=NOW) == message


def test_a_change_anywhere_is_noticed() -> None:
    envelope = sign(result(), SECRET)
    for old, new in (
        (b"0.5", b"0.9"),
        (b"score_result", b"score_request"),
        (b"nnn", b"nnm"),
        (b'"signature":"', b'"signature":"A'),
    ):
        with pytest.raises(ContractError):
            verify(envelope.replace(old, new, 1), PUBLIC, now=NOW)


def test_another_key_is_refused() -> None:
    with pytest.raises(BadSignature):
        verify(sign(result(), keypair()[0]), PUBLIC, now=NOW)


def test_old_messages_and_messages_from_the_future_are_refused_but_the_record_can_be_read() -> None:
    envelope = sign(request(), SECRET)
    for now in (NOW + timedelta(hours=25), NOW - timedelta(minutes=6)):
        with pytest.raises(TooLate):
            verify(envelope, PUBLIC, now=now)
    assert verify(envelope, PUBLIC, now=NOW + timedelta(days=4000), max_age=None) == request()


@pytest.mark.parametrize("field", ["evaluation", "try_no", "nonce", "task_digest", "bundle_sha256"])
def test_a_result_of_another_request_is_a_replay(field: str) -> None:
    other = {"evaluation": 8, "try_no": 2, "nonce": "m" * 22, "task_digest": "d" * 64, "bundle_sha256": "e" * 64}
    result_check(result(), request())
    with pytest.raises(Replayed, match=field):
        result_check(result(**{field: other[field]}), request())


@pytest.mark.parametrize("raw", ["NaN", "Infinity", "-Infinity", "1e999", '"abc"', "null", "[1]", "true", "{}"])
def test_a_metric_that_is_no_finite_number_is_refused_by_name(raw: str) -> None:
    """T3"""
    envelope = json.loads(sign(result(), SECRET))
    payload = envelope["payload"].replace('"accuracy":0.5', f'"accuracy":{raw}')
    with pytest.raises(Malformed, match="accuracy" if raw not in {"NaN", "Infinity", "-Infinity"} else "JSON number"):
        verify(resigned("score_result", payload), PUBLIC, now=NOW)


def resigned(kind: str, payload: str) -> bytes:
    """An envelope whose signature is good though its content isn't."""
    key: Any = load_pem_private_key(SECRET, None)
    signature = key.sign(b"innovatorbench-score-1\n" + kind.encode() + b"\n" + payload.encode())
    encoded = base64.b64encode(signature).decode()
    return json.dumps({"envelope": 1, "kind": kind, "payload": payload, "key": "", "signature": encoded}).encode()


@pytest.mark.parametrize(
    "raw", [b"", b"{}", b"[]", b"\xff", b"null", b"{" * 5000, b'{"envelope":1,"envelope":1}', b"x" * 600_000]
)
def test_rubbish_is_malformed_and_nothing_else(raw: bytes) -> None:
    with pytest.raises(Malformed):
        verify(raw, PUBLIC, now=NOW)


def test_messages_are_strict_about_types_and_zones() -> None:
    without_zone = NOW.replace(tzinfo=None)
    for changed in (
        {"evaluation": "7"},
        {"evaluation": True},
        {"nonce": "short"},
        {"issued_at": without_zone},
        {"x": 1},
    ):
        with pytest.raises(ValidationError):
            request(**changed)
