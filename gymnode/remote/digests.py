"""Room: gymnode.remote. sha256 without OpenSSL, which would cost gymd a fifth of its memory. For short texts."""

from __future__ import annotations

import importlib
from typing import Any


def _find() -> Any:
    for name in ("_sha256", "_sha2", "hashlib"):
        try:
            return importlib.import_module(name).sha256
        except (ImportError, AttributeError):
            continue
    raise ImportError("this Python has no sha256")


_SHA256 = _find()


def hex_digest(data: bytes) -> str:
    """Lower-case hexadecimal sha256."""
    return str(_SHA256(data).hexdigest())
