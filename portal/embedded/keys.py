"""Keys of one installation, made once: the site's signatures, the vault's seal, the scoring program's own, the node's.

The scoring program makes its keys itself and keeps them where only its user can read; the site gets the public halves.
"""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyrage
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from portal.embedded.reach import EVALUATOR_UID, folder
from portal.settings.instance import Instance

_PEM = serialization.Encoding.PEM


def _write(path: Path, data: bytes, mode: int = 0o600) -> None:
    half = path.with_name(path.name + ".half")
    with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
        file.write(data)
    half.chmod(mode)
    half.rename(path)


def _sign_pair(keys: Path, name: str) -> None:
    if (keys / f"{name}.pem").exists():
        return
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    public = key.public_key().public_bytes(_PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    _write(keys / f"{name}.pub", public, 0o644)
    _write(keys / f"{name}.pem", private)


def _ssh_pair(keys: Path, name: str) -> None:
    if (keys / name).exists():
        return
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(_PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption())
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    _write(keys / f"{name}.pub", public + b"\n", 0o644)
    _write(keys / name, private)


def _seal_pair(keys: Path, name: str) -> None:
    if (keys / name).exists():
        return
    identity = pyrage.x25519.Identity.generate()
    _write(keys / f"{name}.pub", f"{identity.to_public()}\n".encode(), 0o644)
    _write(keys / name, f"{identity}\n".encode())


def site_keys(instance: Instance) -> None:
    """The site's own keys: Ed25519 for requests, age for the vault, SSH for the node on this machine."""
    folder(instance.keys, 0o711)
    _sign_pair(instance.keys, "site_ed25519")
    _seal_pair(instance.keys, "vault_age")
    _ssh_pair(instance.keys, "node_client")
    _ssh_pair(instance.keys, "node_host")
    _write(instance.keys / "node_authorized_keys", (instance.keys / "node_client.pub").read_bytes(), 0o644)


def evaluator_keys(instance: Instance, command: list[str], env: Mapping[str, str], cwd: Path) -> None:
    """Have the scoring program make its keys (as its own user when root) and publish the public halves."""
    home = folder(instance.evaluator_keys, 0o700)
    user: dict[str, Any] = {}
    if os.geteuid() == 0:
        os.chown(home, EVALUATOR_UID, EVALUATOR_UID)
        user = {"user": EVALUATOR_UID, "group": EVALUATOR_UID}
    if not (home / "kernel").exists():
        subprocess.run(
            [*command, "keygen", "--out", str(home)], cwd=cwd, env=dict(env), check=True, capture_output=True, **user
        )
    for name, published in (("signing.pub.pem", "evaluator_ed25519.pub"), ("recipient.txt", "evaluator_age.pub")):
        _write(instance.keys / published, (home / name).read_bytes(), 0o644)
