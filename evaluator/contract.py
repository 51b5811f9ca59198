"""Room: evaluator (pure, visible outside). The two messages between site and evaluator, and their signatures.

An envelope is JSON: kind, payload (the message as canonical JSON, a string), the key's id, and an Ed25519 signature
over kind and payload. Whoever has the public key can verify it, today or in ten years. May import: pydantic,
cryptography, `evaluator.results`.
"""

from __future__ import annotations

import base64
import hashlib
import json
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator

from evaluator.results import MAX_MESSAGE, MAX_METRICS, ResultRefused, metric_value, strict_json

SCHEMA = 1
MAX_ENVELOPE = 512 * 1024
MAX_AGE = timedelta(hours=24)
MAX_AHEAD = timedelta(minutes=5)
Scalar = str | bool | int | float
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Nonce = Annotated[str, Field(pattern=r"^[0-9a-zA-Z_-]{16,64}$")]


class ContractError(ValueError):
    """Base: ContractError -> BadSignature, Malformed, TooLate, Replayed. A refused message is never acted on."""


class BadSignature(ContractError):
    """Altered, or signed with another key."""


class Malformed(ContractError):
    """Signed or not: not a message of this contract; the text names the field."""


class TooLate(ContractError):
    """Older (or further ahead) than the contract allows."""


class Replayed(ContractError):
    """A result that answers another request, an older try, or nothing at all."""


class Outcome(StrEnum):
    VALID = "valid"
    INVALID = "invalid"  # the run's fault: counts, scores 0
    CRASHED = "crashed"  # ours: retried, never counts, never a 0


def _utc(value: datetime) -> datetime:
    if value.tzinfo is None:
        raise ValueError("times carry a zone")
    return value.astimezone(UTC)


Utc = Annotated[datetime, AfterValidator(_utc), Field(strict=False)]


class Message(BaseModel):
    """Base of both: frozen, strict, nothing unknown."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, populate_by_name=True, serialize_by_alias=True
    )
    schema_: Annotated[int, Field(alias="schema", ge=SCHEMA, le=SCHEMA)] = SCHEMA

    def canonical(self) -> str:
        """The message as JSON with sorted keys and no blanks: what is signed."""
        data = self.model_dump(mode="json", by_alias=True)
        return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


class ScoreRequest(Message):
    """Site -> evaluator. `size` is the bundle's, in bytes. Addresses: a path both can read, `file:` or `https:`."""

    evaluation: Annotated[int, Field(ge=0)]
    try_no: Annotated[int, Field(ge=1, le=100)]
    nonce: Nonce
    task_digest: Sha256
    sealed_address: Annotated[str, Field(min_length=1, max_length=4000)]
    sealed_sha256: Sha256
    bundle_address: Annotated[str, Field(min_length=1, max_length=4000)]
    bundle_sha256: Sha256
    size: Annotated[int, Field(ge=0)]
    seed: Annotated[int, Field(ge=0, lt=2**63)]
    issued_at: Utc


class ScoreResult(Message):
    """Evaluator -> site. `log_tail` is for the task's curators; agents and the public see `message`."""

    evaluation: Annotated[int, Field(ge=0)]
    try_no: Annotated[int, Field(ge=1, le=100)]
    nonce: Nonce
    task_digest: Sha256
    bundle_sha256: Sha256
    outcome: Annotated[Outcome, Field(strict=False)]
    metrics: Annotated[dict[str, float], Field(max_length=MAX_METRICS)]
    message: Annotated[str, Field(max_length=MAX_MESSAGE)]
    seconds: Annotated[float, Field(ge=0)]
    sandbox_level: Annotated[int, Field(ge=0, le=2)]
    facts: dict[str, Scalar]
    log_tail: Annotated[str, Field(max_length=64 * 1024)] = ""
    finished_at: Utc

    @field_validator("metrics", mode="before")
    @classmethod
    def _numbers(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {str(name): metric_value(str(name), number) for name, number in value.items()}


KINDS: dict[str, type[Message]] = {"score_request": ScoreRequest, "score_result": ScoreResult}
_NAMES = {model: kind for kind, model in KINDS.items()}


class _Envelope(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    envelope: Literal[1]
    kind: str
    payload: str
    key: str
    signature: str


def _signed_bytes(kind: str, payload: str) -> bytes:
    return b"innovatorbench-score-1\n" + kind.encode() + b"\n" + payload.encode()


def key_id(public_pem: bytes) -> str:
    """The short name of a public key: 16 hex digits of its SHA-256."""
    raw = _public(public_pem).public_bytes(Encoding.Raw, PublicFormat.Raw)
    return hashlib.sha256(raw).hexdigest()[:16]


def keypair() -> tuple[bytes, bytes]:
    """A new Ed25519 pair as PEM: private, public."""
    private = Ed25519PrivateKey.generate()
    secret = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return secret, private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def public_of(private_pem: bytes) -> bytes:
    """The public PEM of a private one."""
    return _private(private_pem).public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def _private(pem: bytes) -> Ed25519PrivateKey:
    key = load_pem_private_key(pem, None)
    if not isinstance(key, Ed25519PrivateKey):
        raise TypeError("not an Ed25519 private key")
    return key


def _public(pem: bytes) -> Ed25519PublicKey:
    key = load_pem_public_key(pem)
    if not isinstance(key, Ed25519PublicKey):
        raise TypeError("not an Ed25519 public key")
    return key


def sign(message: Message, key_pem: bytes) -> bytes:
    """The signed envelope of a message."""
    kind, payload = _NAMES[type(message)], message.canonical()
    signature = _private(key_pem).sign(_signed_bytes(kind, payload))
    envelope = {
        "envelope": 1,
        "kind": kind,
        "payload": payload,
        "key": key_id(public_of(key_pem)),
        "signature": base64.b64encode(signature).decode(),
    }
    return json.dumps(envelope, sort_keys=True, separators=(",", ":")).encode()


def verify(
    envelope: bytes, public_key_pem: bytes, *, now: datetime | None = None, max_age: timedelta | None = MAX_AGE
) -> ScoreRequest | ScoreResult:
    """The message of an envelope. Raises `BadSignature`, `Malformed`, `TooLate`.

    `max_age` None accepts any age: for reading the record, never for acting on it.
    """
    head = _open(envelope)
    try:
        signature = base64.b64decode(head.signature, validate=True)
        _public(public_key_pem).verify(signature, _signed_bytes(head.kind, head.payload))
    except (InvalidSignature, UnsupportedAlgorithm, ValueError) as error:
        raise BadSignature("the message was altered, or signed with another key") from error
    message = _message(head.kind, head.payload)
    if max_age is not None:
        at = message.issued_at if isinstance(message, ScoreRequest) else message.finished_at
        _in_time(at, now or datetime.now(UTC), max_age)
    return message


def _in_time(at: datetime, now: datetime, max_age: timedelta) -> None:
    if now - at > max_age:
        raise TooLate(f"the message is {now - at} old; at most {max_age} is accepted")
    if at - now > MAX_AHEAD:
        raise TooLate(f"the message is {at - now} ahead of the clock; set the clocks of both machines")


def _open(envelope: bytes) -> _Envelope:
    if len(envelope) > MAX_ENVELOPE:
        raise Malformed(f"the envelope has {len(envelope)} bytes, more than {MAX_ENVELOPE}")
    try:
        return _Envelope.model_validate(strict_json(envelope))
    except (ValidationError, ResultRefused, UnicodeDecodeError) as error:
        raise Malformed(f"no envelope of this contract: {error}") from error


def _message(kind: str, payload: str) -> ScoreRequest | ScoreResult:
    model = KINDS.get(kind)
    if model is None:
        raise Malformed(f"unknown kind {kind!r}; known: {', '.join(KINDS)}")
    try:
        message = model.model_validate(strict_json(payload))
    except (ValidationError, ResultRefused) as error:
        raise Malformed(f"no {kind} of this contract: {error}") from error
    assert isinstance(message, ScoreRequest | ScoreResult)
    return message


def result_check(result: ScoreResult, request: ScoreRequest) -> None:
    """That `result` answers `request` and no other. Raises `Replayed` naming the first field that differs."""
    for name in ("evaluation", "try_no", "nonce", "task_digest", "bundle_sha256"):
        if getattr(result, name) != getattr(request, name):
            raise Replayed(f"the result's {name} is {getattr(result, name)!r}, asked was {getattr(request, name)!r}")
