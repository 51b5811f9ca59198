"""Room: portal.nodes. SSH keys as text: made, read, named. No connection is opened here."""

import base64
import hashlib
from dataclasses import dataclass

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.utils.translation import gettext_lazy as _

from portal.core.errors import FieldFault
from portal.core.secrets import Secret


@dataclass(frozen=True)
class KeyPair:
    """A private key in OpenSSH's format, and the line for the node's `authorized_keys`."""

    private: Secret
    public: str


def key_generate(*, comment: str) -> KeyPair:
    """A new Ed25519 key."""
    return _pair(Ed25519PrivateKey.generate(), comment)


def key_read(*, text: Secret, comment: str) -> KeyPair:
    """A private key that somebody brought (OpenSSH or PEM, without passphrase). Raises FieldFault (private_key)."""
    raw = text.reveal().strip().encode() + b"\n"
    for loader in (serialization.load_ssh_private_key, serialization.load_pem_private_key):
        try:
            return _pair(loader(raw, password=None), comment)
        except TypeError:
            message = _("this key is locked with a passphrase; give one without, or let the portal make one")
            raise FieldFault(field="private_key", message=str(message)) from None
        except (ValueError, UnsupportedAlgorithm):
            continue
    message = _("this is no private key; paste the whole file, from BEGIN to END")
    raise FieldFault(field="private_key", message=str(message))


def host_key_read(line: str) -> str:
    """`type base64` of a public host key (a line of known_hosts without the name). Raises FieldFault (host_key)."""
    parts = line.split()
    start = next((i for i, part in enumerate(parts) if part.startswith(("ssh-", "ecdsa-"))), None)
    try:
        if start is None:
            raise ValueError
        plain = " ".join(parts[start : start + 2])
        serialization.load_ssh_public_key(plain.encode())
    except (ValueError, UnsupportedAlgorithm):
        message = _("this is no public host key; it looks like: ssh-ed25519 AAAA...")
        raise FieldFault(field="host_key", message=str(message)) from None
    return plain


def fingerprint(public: str) -> str:
    """`SHA256:...` of a public key line, as OpenSSH prints it; empty for an empty line."""
    parts = public.split()
    if len(parts) < 2:
        return ""
    digest = hashlib.sha256(base64.b64decode(parts[1])).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def _pair(key: object, comment: str) -> KeyPair:
    if not hasattr(key, "private_bytes") or not hasattr(key, "public_key"):
        raise ValueError
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return KeyPair(private=Secret(private.decode()), public=f"{public.decode()} {comment}")
