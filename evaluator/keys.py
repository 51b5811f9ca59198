"""Room: evaluator. The evaluator's keys: making them, reading them, sealing to other ones.

A key folder holds `identity.txt` (age, secret), `recipient.txt`, `signing.pem` (Ed25519, secret), `signing.pub.pem`,
`site.pub.pem` (the site's public key), `kernel` (the one BLAS kernel of this installation), and, made once and to be
kept offline, `recovery.txt` with `recovery_recipient.txt`.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import dataclass
from pathlib import Path

from evaluator.contract import key_id, keypair, public_of
from evaluator.seal import identities_read, identity_new, recipient_id, recipient_of, reseal
from evaluator.taskenv import core_type
from evaluator.verbs import recipients_read, say, say_json


class KeysMissing(RuntimeError):
    """A key file isn't there or can't be read; the message names it and how to make it."""


@dataclass(frozen=True)
class Keys:
    """What `serve` needs. Its repr shows no secret."""

    identities: tuple[str, ...]
    signing_pem: bytes
    site_pem: bytes
    kernel: str

    def __repr__(self) -> str:
        return f"Keys({', '.join(recipient_id(recipient_of(one)) for one in self.identities)})"


def keys_read(folder: Path, site_key: Path | None) -> Keys:
    """Read a key folder. Raises `KeysMissing`."""
    site = site_key or folder / "site.pub.pem"
    kernel = folder / "kernel"
    try:
        return Keys(
            identities=identities_read(folder / "identity.txt"),
            signing_pem=(folder / "signing.pem").read_bytes(),
            site_pem=site.read_bytes(),
            kernel=kernel.read_text().strip() if kernel.exists() else core_type(),
        )
    except OSError as error:
        advice = "make the folder with `python -m evaluator keygen --out DIR`, and give it the site's public key"
        raise KeysMissing(f"{error.filename}: {error.strerror}; {advice}") from error


def _secret(path: Path, text: str | bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as out:
        out.write(text if isinstance(text, bytes) else text.encode())


def keygen(folder: Path, *, with_site: bool = False) -> None:
    """Make what is missing; a key that is there stays. Raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not (folder / "identity.txt").exists():
        identity, recipient = identity_new()
        _secret(folder / "identity.txt", f"# key {recipient_id(recipient)}\n{identity}\n")
        (folder / "recipient.txt").write_text(recipient + "\n")
    if not (folder / "recovery_recipient.txt").exists():
        identity, recipient = identity_new()
        _secret(folder / "recovery.txt", f"# recovery key {recipient_id(recipient)}: keep offline\n{identity}\n")
        (folder / "recovery_recipient.txt").write_text(recipient + "\n")
    for name in ("signing", *(["site"] if with_site else [])):
        if not (folder / f"{name}.pem").exists():
            private, public = keypair()
            _secret(folder / f"{name}.pem", private)
            (folder / f"{name}.pub.pem").write_bytes(public)
    if not (folder / "kernel").exists():
        (folder / "kernel").write_text(core_type() + "\n")


def rotate(folder: Path) -> None:
    """A new sealing key on top; older ones still open what was sealed to them, until it is resealed."""
    path = folder / "identity.txt"
    old = path.read_text()
    identity, recipient = identity_new()
    fresh = path.with_name("identity.new")
    _secret(fresh, f"# key {recipient_id(recipient)}\n{identity}\n{old}")
    fresh.replace(path)
    (folder / "recipient.txt").write_text(recipient + "\n")


def keygen_verb(args: argparse.Namespace) -> int:
    """Make the key folder, or put a new sealing key into it."""
    keygen(args.out, with_site=args.with_site)
    if args.rotate:
        rotate(args.out)
    recipient = (args.out / "recipient.txt").read_text().strip()
    recovery = (args.out / "recovery_recipient.txt").read_text().strip()
    say(f"seal to {recipient} (key {recipient_id(recipient)})")
    if (args.out / "recovery.txt").exists():
        say(f"move {args.out / 'recovery.txt'} to a place offline: it opens what is also sealed to {recovery}")
    say_json(
        {
            "recipient": recipient,
            "key": recipient_id(recipient),
            "recovery_recipient": recovery,
            "signing_key": key_id(public_of((args.out / "signing.pem").read_bytes())),
        }
    )
    return 0


def reseal_verb(args: argparse.Namespace) -> int:
    """Seal to other keys; the task digest stays, the sealed file's SHA-256 changes."""
    sha256 = reseal(args.sealed, args.out, identities_read(args.keys / "identity.txt"), recipients_read(args.recipient))
    say(json.dumps({"sealed_sha256": sha256, "keys": [recipient_id(one) for one in recipients_read(args.recipient)]}))
    return 0
