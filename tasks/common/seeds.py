"""Room: tasks. From one secret, a separate key for each thing a recipe draws; touches nothing.

Recipes are public, so a secret that ranks people must not be guessable: whoever rebuilt the world from
a small number could compare it with the workspace and would hold the answers. Hence at least 128 bits,
and one sub-key a purpose, so that what is public tells nothing about what is hidden.
"""

import hmac
import re
from dataclasses import dataclass

import numpy as np

PUBLIC = "public"
_PUBLIC_SECRET = b"innovatorbench nano suite, the public seed"
_HEX = re.compile(r"[0-9a-f]{32,128}")


class SeedRefusedError(ValueError):
    """The seed is neither `public` nor 32 to 128 lower-case hexadecimal digits."""


@dataclass(frozen=True)
class SeedTree:
    """The keys of one build. `counter` is raised where a recipe's own checks refuse a draw."""

    secret: bytes
    counter: int = 0

    def key(self, purpose: str) -> bytes:
        """32 bytes for one purpose: HMAC-SHA-256 of counter and purpose under the secret."""
        return hmac.digest(self.secret, f"{self.counter}/{purpose}".encode(), "sha256")

    def number(self, purpose: str) -> int:
        """A seed of 63 bits, which every generator and every JSON reader takes."""
        return int.from_bytes(self.key(purpose)[:8], "big") >> 1

    def generator(self, purpose: str) -> np.random.Generator:
        """A generator (PCG64) seeded by the whole key of this purpose."""
        return np.random.default_rng(int.from_bytes(self.key(purpose), "big"))


def seed_parse(text: str) -> bytes:
    """The secret behind `--seed`. Raises SeedRefusedError."""
    if text == PUBLIC:
        return _PUBLIC_SECRET
    if not _HEX.fullmatch(text):
        message = "--seed takes `public` or 32 to 128 hexadecimal digits (128 bits at least: less could be guessed)"
        raise SeedRefusedError(message)
    return bytes.fromhex(text if len(text) % 2 == 0 else "0" + text)
