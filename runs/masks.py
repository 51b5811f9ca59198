"""Room: runs. Values that must never be stored or shown, found in whatever form they come back. Pure.

A value is known as it is, as JSON, URLs and HTML write it, and in base64 at every alignment. What a model sends as the
JSON text of arguments is read first: JSON may write every character as an escape.
"""

import html
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import quote, quote_plus

from gymnode.remote.masking import MIN_ENCODED, encoded_core

DOT = "•"
MIN_PART = 8


@dataclass(frozen=True)
class Masks:
    """Replaced by dots of the same length wherever they appear."""

    values: tuple[str, ...] = field(default=(), repr=False)

    @cached_property
    def forms(self) -> tuple[str, ...]:
        """Every form of every value, the longest first."""
        return tuple(sorted({form for value in self.values for form in _forms(value)}, key=len, reverse=True))

    def apply(self, text: str) -> str:
        for form in self.forms:
            text = text.replace(form, DOT * len(form))
        for value in self.values:
            text = _parts_masked(text, value)
        return text

    def ready(self, text: str) -> tuple[str, str]:
        """Of a text that still grows: the part that can be shown, masked, and the end that may begin a value."""
        text = self.apply(text)
        kept = max((n for form in self.forms for n in range(1, len(form)) if text.endswith(form[:n])), default=0)
        return text[: len(text) - kept], text[len(text) - kept :]

    def over(self, value: Any) -> Any:
        """The JSON value with every text masked, keys too, and texts under `arguments` by what they mean as JSON."""
        if not self.values:
            return value
        if isinstance(value, str):
            return self.apply(value)
        if isinstance(value, Mapping):
            return {self.apply(str(key)): self._field(str(key), item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.over(item) for item in value]
        return value

    def _field(self, name: str, value: Any) -> Any:
        masked = self.over(value)
        return self._json(masked) if name == "arguments" and isinstance(masked, str) else masked

    def _json(self, text: str) -> str:
        try:
            value = json.loads(text)
            masked = self.over(value)
        except (ValueError, RecursionError):
            return text
        return text if masked == value else json.dumps(masked, ensure_ascii=False)


def _parts_masked(text: str, value: str) -> str:
    """Without beginnings and ends of the value of half its length or more: what is left of it where a text was cut."""
    half = max(MIN_PART, len(value) // 2)
    if len(value) <= half or (value[:half] not in text and value[-half:] not in text):
        return text
    shown = list(text)
    for start in _places(text, value[:half]):
        same = _common(text[start : start + len(value)], value)
        shown[start : start + same] = DOT * same
    for start in _places(text, value[-half:]):
        end = start + half
        same = _common(text[max(0, end - len(value)) : end][::-1], value[::-1])
        shown[end - same : end] = DOT * same
    return "".join(shown)


def _common(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    differ = (at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1])
    return next(differ, min(len(one), len(other)))


def _places(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + len(part))


def _forms(value: str) -> Iterator[str]:
    yield value
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    yield json.dumps(json.dumps(value))[3:-3]
    yield repr(value)[1:-1]
    yield quote(value, safe="")
    yield quote(value)
    yield quote_plus(value)
    yield html.escape(value)
    raw = value.encode("utf-8", "surrogatepass")
    if len(raw) >= MIN_ENCODED:
        yield raw.hex()
        for shift in range(3):
            yield from (core.decode() for core in encoded_core(raw, shift))
