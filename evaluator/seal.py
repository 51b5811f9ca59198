"""Room: evaluator (visible outside). Sealing hidden parts with age, in parts of 8 MiB. May import: pyrage.

A sealed file is one line of JSON (schema, key ids, size and SHA-256 of each part), then the parts, each an age file of
its own: an upload that was cut goes on with the missing ones. Sealing needs only recipients (`age1...`); opening needs
an identity, which the evaluator alone has, and the recovery recipient's owner offline.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyrage

PART = 8 * 1024 * 1024
_MAX_HEAD = 4 * 1024 * 1024
_MAX_PARTS = 10_000


class SealBroken(ValueError):
    """The sealed file is damaged, or sealed to other keys; the message says which keys."""


@dataclass(frozen=True)
class Part:
    """One age file: bytes and SHA-256 of the ciphertext."""

    size: int
    sha256: str


@dataclass(frozen=True)
class Head:
    """The first line: which keys open it, and its parts."""

    keys: tuple[str, ...]
    parts: tuple[Part, ...]

    def to_line(self) -> bytes:
        parts = [[part.size, part.sha256] for part in self.parts]
        return (
            json.dumps({"sealed": 1, "keys": list(self.keys), "parts": parts}, separators=(",", ":")).encode() + b"\n"
        )


def recipient_id(recipient: str) -> str:
    """The short name of a recipient: 16 hex digits."""
    return hashlib.sha256(recipient.strip().encode()).hexdigest()[:16]


def identity_new() -> tuple[str, str]:
    """A new identity (secret) and its recipient (public)."""
    identity = pyrage.x25519.Identity.generate()
    return str(identity), str(identity.to_public())


def recipient_of(identity: str) -> str:
    """The recipient that belongs to an identity."""
    return str(pyrage.x25519.Identity.from_str(identity.strip()).to_public())


def identities_read(path: Path) -> tuple[str, ...]:
    """The identities of a key file, newest first; lines that begin with # are notes."""
    lines = [line.strip() for line in path.read_text().splitlines()]
    return tuple(line for line in lines if line and not line.startswith("#"))


def _recipients(recipients: Sequence[str]) -> list[Any]:
    if not recipients:
        raise SealBroken("no recipient given: name the evaluator's (its `recipient.txt`, or `evaluator keygen`)")
    try:
        return [pyrage.x25519.Recipient.from_str(recipient.strip()) for recipient in recipients]
    except Exception as error:  # pyrage raises types of its own without a common base
        raise SealBroken(f"not an age recipient (age1...): {error}") from error


def seal_part(data: bytes, recipients: Sequence[str]) -> bytes:
    """One part as an age file."""
    return bytes(pyrage.encrypt(data, _recipients(recipients)))


def seal_stream(source: IO[bytes], target: Path, recipients: Sequence[str]) -> str:
    """Seal everything in `source` into the file `target`; returns the SHA-256 of the sealed file."""
    parts: list[Part] = []
    body = target.with_name(target.name + ".parts")
    with body.open("wb") as out:
        while data := source.read(PART):
            sealed = seal_part(data, recipients)
            parts.append(Part(len(sealed), hashlib.sha256(sealed).hexdigest()))
            out.write(sealed)
    return _join(Head(tuple(map(recipient_id, recipients)), tuple(parts)), body, target)


def head_read(stream: IO[bytes]) -> Head:
    """The first line of a sealed file. Raises `SealBroken`."""
    line = stream.readline(_MAX_HEAD)
    try:
        data = json.loads(line)
        parts = tuple(Part(int(size), str(sha256)) for size, sha256 in data["parts"])
        keys = tuple(map(str, data["keys"]))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise SealBroken("not a sealed file: its first line can't be read") from error
    if data.get("sealed") != 1 or len(parts) > _MAX_PARTS or any(not 0 < part.size <= 2 * PART for part in parts):
        raise SealBroken("not a sealed file of this release")
    return Head(keys, parts)


def unseal_stream(source: IO[bytes], target: IO[bytes], identities: Sequence[str]) -> int:
    """Open a sealed file into `target`; returns the bytes written. Raises `SealBroken`, then `target` is worthless."""
    head = head_read(source)
    keys = [pyrage.x25519.Identity.from_str(identity) for identity in identities]
    total = 0
    for number, part in enumerate(head.parts):
        data = source.read(part.size)
        if hashlib.sha256(data).hexdigest() != part.sha256:
            raise SealBroken(f"part {number + 1} of {len(head.parts)} is damaged or cut short")
        try:
            total += target.write(pyrage.decrypt(data, keys))
        except Exception as error:  # pyrage raises types of its own without a common base
            known = ", ".join(recipient_id(recipient_of(identity)) for identity in identities)
            raise SealBroken(f"sealed to the keys {', '.join(head.keys)}; these keys are here: {known}") from error
    if source.read(1):
        raise SealBroken("bytes after the last part")
    return total


def reseal(source: Path, target: Path, identities: Sequence[str], recipients: Sequence[str]) -> str:
    """Open part by part, seal to other recipients; plain content and digest stay. Returns the new SHA-256."""
    _recipients(recipients)
    with source.open("rb") as stream:
        head = head_read(stream)
    parts: list[Part] = []
    keys = [pyrage.x25519.Identity.from_str(identity) for identity in identities]
    body = target.with_name(target.name + ".parts")
    with source.open("rb") as stream, body.open("wb") as out:
        head_read(stream)
        for part in head.parts:
            try:
                plain = bytes(pyrage.decrypt(stream.read(part.size), keys))
            except Exception as error:  # pyrage raises types of its own without a common base
                body.unlink()
                raise SealBroken(f"sealed to the keys {', '.join(head.keys)}: {error}") from error
            sealed = seal_part(plain, recipients)
            parts.append(Part(len(sealed), hashlib.sha256(sealed).hexdigest()))
            out.write(sealed)
    return _join(Head(tuple(map(recipient_id, recipients)), tuple(parts)), body, target)


def _join(head: Head, body: Path, target: Path) -> str:
    line = head.to_line()
    digest = hashlib.sha256(line)
    with target.open("wb") as out, body.open("rb") as parts:
        out.write(line)
        while data := parts.read(PART):
            digest.update(data)
            out.write(data)
    body.unlink()
    return digest.hexdigest()
