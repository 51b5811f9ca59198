"""Room: evaluator (pure). What an evaluator program may say: `result.json`, read strictly. Standard library only."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MAX_MESSAGE = 2000
MAX_METRICS = 200
_KEYS = {"schema", "valid", "metrics", "message"}
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class ResultRefused(ValueError):
    """The result can't be used; the message names the metric or the key, and expected against got."""


@dataclass(frozen=True)
class Result:
    """A result that was understood: metrics when valid, else only a message."""

    valid: bool
    metrics: Mapping[str, float]
    message: str


def strict_json(text: str | bytes, constant: Callable[[str], Any] | None = None) -> Any:
    """JSON without NaN and infinities (or with what `constant` makes of them) and without keys that stand twice. Raises
    `ResultRefused`.
    """
    try:
        return json.loads(text, parse_constant=constant or _constant, object_pairs_hook=_pairs)
    except (ValueError, RecursionError) as error:
        raise ResultRefused(f"not JSON: {error}") from error


def _constant(word: str) -> Any:
    raise ResultRefused(f"{word} is no JSON number")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        names = [name for name, _ in pairs]
        raise ResultRefused(f"a key stands twice: {next(name for name in names if names.count(name) > 1)!r}")
    return out


def metric_value(name: str, value: Any) -> float:
    """One metric as a finite float. Booleans, strings, null, lists, NaN, infinities and 1e999 are refused by name."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        got = json.dumps(value, default=str)[:60]
        raise ResultRefused(f"metric {name!r} is {got}, not a number: expected a finite number, got {_kind(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf if value > 0 else -math.inf
    if not math.isfinite(number):
        raise ResultRefused(f"metric {name!r} is not finite: expected a finite number, got {json.dumps(number)}")
    return number + 0.0  # -0.0 becomes 0.0


def _kind(value: Any) -> str:
    kinds = {bool: "a boolean", str: "a string", list: "a list", dict: "an object", type(None): "null"}
    return kinds.get(type(value), type(value).__name__)


def metrics_parse(data: Any, expected: Sequence[str]) -> dict[str, float]:
    """All expected metrics and nothing else. Raises `ResultRefused`."""
    if not isinstance(data, dict):
        raise ResultRefused(f"metrics expected: {', '.join(sorted(expected))}; got: {_kind(data)}, not an object")
    if set(data) != set(expected):
        got = ", ".join(sorted(map(str, data)))[:500] or "nothing"
        raise ResultRefused(f"metrics expected: {', '.join(sorted(expected))}; got: {got}")
    return {name: metric_value(name, data[name]) for name in expected}


def message_clean(text: str) -> str:
    """A message that can be stored and shown: no control characters, at most 2,000 characters."""
    clean = _UNPRINTABLE.sub("\ufffd", text)
    return clean if len(clean) <= MAX_MESSAGE else clean[: MAX_MESSAGE - 1] + "…"


def result_parse(data: bytes, expected: Sequence[str]) -> Result:
    """Read `result.json`. Raises `ResultRefused`: then the evaluation failed, and nobody gets a 0 for it."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ResultRefused(f"result.json is not UTF-8 (byte {error.start})") from error
    if not text.strip():
        raise ResultRefused("result.json is empty")
    found = strict_json(text, float)  # a metric that is NaN is refused below, by its name
    if not isinstance(found, dict):
        raise ResultRefused(f"result.json must hold an object, not {type(found).__name__}")
    if unknown := sorted(set(found) - _KEYS):
        raise ResultRefused(
            f"unknown keys in result.json: {', '.join(unknown)[:300]}; known: {', '.join(sorted(_KEYS))}"
        )
    if found.get("schema") != 1 or isinstance(found.get("schema"), bool):
        raise ResultRefused('result.json must say `"schema": 1`')
    valid, message = found.get("valid"), found.get("message", "")
    if not isinstance(valid, bool) or not isinstance(message, str):
        raise ResultRefused("`valid` must be true or false, `message` a string")
    if valid:
        return Result(True, metrics_parse(found.get("metrics"), expected), message_clean(message))
    strict_json(text)
    if not message.strip():
        raise ResultRefused("an invalid result must say in `message` what is wrong and where")
    return Result(False, {}, message_clean(message))
