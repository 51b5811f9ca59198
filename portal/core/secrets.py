"""Room: portal.core. Secrets that print dots, and the vault's lock (age): whoever has the recipient can seal, only
whoever has the identity file can open. The web process has no identity.
"""

from pathlib import Path
from typing import NoReturn

import pyrage
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from portal.core.errors import SiteError

DOTS = "••••••••"


class VaultClosed(SiteError):
    """This process has no identity (the web process never has), or the identity is of another vault."""

    code = "vault_closed"
    template = _("The vault can't be opened here: {reason}.")
    status = 503


class Secret:
    """A value that no log, trace, template or error page shows by accident; `reveal()` is easy to search for."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The value itself. Hand it to whoever needs it and keep no copy."""
        return self._value

    def __str__(self) -> str:
        return DOTS

    def __repr__(self) -> str:
        return f"Secret({DOTS})"

    def __format__(self, _spec: str) -> str:
        return DOTS

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(("Secret", self._value))

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret is never pickled: it would leave this process in the clear")


def vault_seal(plain: Secret | bytes, recipient: str | None = None) -> bytes:
    """`plain` as an age file that only the holder of the vault's identity can open.

    `recipient` is an age public key; by default the installation's. Raises VaultClosed when that is no key.
    """
    clear = plain.reveal().encode() if isinstance(plain, Secret) else plain
    try:
        target = pyrage.x25519.Recipient.from_str(recipient or settings.VAULT_RECIPIENT)
    except pyrage.RecipientError:
        raise VaultClosed(reason="VAULT_RECIPIENT is not an age public key (age1...)") from None
    return bytes(pyrage.encrypt(clear, [target]))


def vault_open_bytes(cipher: bytes, identity_path: Path | None = None) -> bytes:
    """The clear bytes of an age file sealed to this installation's vault. Raises VaultClosed."""
    path = identity_path or settings.VAULT_IDENTITY_PATH
    if path is None:
        raise VaultClosed(reason="this process was started without VAULT_IDENTITY_PATH; a worker has it")
    try:
        identities = [pyrage.x25519.Identity.from_str(line) for line in _identity_lines(path)]
        return bytes(pyrage.decrypt(bytes(cipher), identities))
    except OSError:
        raise VaultClosed(reason="the file named by VAULT_IDENTITY_PATH can't be read") from None
    except (pyrage.IdentityError, pyrage.DecryptError):
        raise VaultClosed(reason="it was sealed to another identity, or is damaged") from None


def vault_open(cipher: bytes, identity_path: Path | None = None) -> Secret:
    """Like `vault_open_bytes`, for text, as a Secret."""
    return Secret(vault_open_bytes(cipher, identity_path).decode())


def _identity_lines(path: Path) -> list[str]:
    return [line.strip() for line in path.read_text().splitlines() if line.startswith("AGE-SECRET-KEY-")]
