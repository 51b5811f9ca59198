"""Room: gymnode.remote. Secrets masked by value: the value itself and its base64 forms, also across chunks.

A mask has the length of what it hides, so offsets hold. A chunk's end that may be the beginning of a secret is held
back a moment; if it must be let go, what follows is still recognised and masked.
"""

from __future__ import annotations

import base64
from typing import Iterable, List, Set

MASK = b"*"
MIN_PLAIN = 4
MIN_ENCODED = 8


def secret_forms(values: Iterable[str]) -> List[bytes]:
    """Byte strings to hide: each value of four bytes or more, as it is and in base64 at every alignment."""
    forms: Set[bytes] = set()
    for value in values:
        raw = value.encode("utf-8", "surrogateescape")
        if len(raw) < MIN_PLAIN:
            continue
        forms.add(raw)
        if b"\n" in raw:
            forms.add(raw.replace(b"\n", b"\r\n"))
        if len(raw) >= MIN_ENCODED:
            for shift in range(3):
                forms.update(encoded_core(raw, shift))
    return sorted(forms, key=len, reverse=True)


def encoded_core(raw: bytes, shift: int) -> Set[bytes]:
    """The base64 characters that depend on nothing but `raw`, when `shift` other bytes come before it."""
    start = -(-shift * 8 // 6)
    end = (shift + len(raw)) * 8 // 6
    padded = b"\0" * shift + raw
    return {encode(padded)[start:end] for encode in (base64.b64encode, base64.urlsafe_b64encode)}


class Masker:
    """Masks one stream. `feed` gives what may be shown; `flush` lets go of what was held back."""

    def __init__(self, forms: List[bytes]) -> None:
        self._forms = forms
        self._longest = max((len(form) for form in forms), default=0)
        self._context = b""
        self._held = b""

    def whole(self, data: bytes) -> bytes:
        """A complete text, masked."""
        return self._masked(data)

    def feed(self, data: bytes) -> bytes:
        """Bytes that may be shown now, in order, of the same total length as what was fed (later, if held)."""
        if not self._forms:
            return data
        data = self._held + data
        hold = min(len(data), self._suspicious_tail(self._context + data))
        shown, self._held = data[: len(data) - hold], data[len(data) - hold :]
        return self._emit(shown)

    @property
    def holding(self) -> bool:
        """True while a possible beginning of a secret is held back."""
        return bool(self._held)

    def flush(self) -> bytes:
        """Let the held bytes go; the start of a secret of four bytes or more goes masked."""
        held, self._held = self._held, b""
        begun = self._suspicious_tail(self._context + held)
        shown = self._emit(held)
        return MASK * len(held) if begun >= MIN_PLAIN else shown

    def ending(self, data: bytes) -> int:
        """How many bytes at the start of `data` are the end of a secret whose beginning nobody saw; 0 below four."""
        longest = MIN_PLAIN - 1
        for form in self._forms:
            for length in range(min(len(form) - 1, len(data)), longest, -1):
                if form.endswith(data[:length]):
                    longest = length
                    break
        return longest if longest >= MIN_PLAIN else 0

    def _masked(self, data: bytes) -> bytes:
        out = bytearray(data)
        for form in self._forms:
            at, done = data.find(form), 0
            while at >= 0:  # each place, also within the one before: a value may repeat a part of itself
                begin, done = max(at, done), at + len(form)
                out[begin:done] = MASK * (done - begin)
                at = data.find(form, at + 1)
        return bytes(out)

    def _emit(self, data: bytes) -> bytes:
        if not data:
            return b""
        # Raw bytes shown before are looked at again: the rest of a secret whose beginning was let go is masked.
        joined = self._context + data
        shown = self._masked(joined)[len(self._context) :]
        self._context = joined[-(self._longest - 1) :] if self._longest > 1 else b""
        return shown

    def _suspicious_tail(self, data: bytes) -> int:
        """Length of the longest end of `data` that is the beginning of a secret but not all of one."""
        longest = 0
        for form in self._forms:
            end = data[max(0, len(data) - len(form) + 1) :]
            at = end.find(form[:1])
            while at >= 0 and len(end) - at > longest:
                if form.startswith(end[at:]):
                    longest = len(end) - at
                at = end.find(form[:1], at + 1)
        return longest
