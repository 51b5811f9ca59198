"""Room: runs. The bundle: what is scored, as one tar that is the same bytes for the same files, named by its SHA-256.

Pure but for the streams it is given. The evaluator reads exactly this form: regular files only, sorted names, mtime 0,
mode 0644, no owner.
"""

import hashlib
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from typing import IO


@dataclass(frozen=True)
class Bundle:
    """A written bundle: its name and its size in bytes."""

    sha256: str
    size: int


class _Hashing:
    """A write-only stream that counts and hashes what passes."""

    def __init__(self, target: IO[bytes]) -> None:
        self._target = target
        self._digest = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> int:
        self._digest.update(data)
        self.size += len(data)
        return self._target.write(data)

    def hexdigest(self) -> str:
        return self._digest.hexdigest()


def bundle_write(files: Iterable[tuple[str, bytes | IO[bytes], int]], target: IO[bytes]) -> Bundle:
    """Write `(path in the workspace, content, size in bytes)` to `target`. Raises ValueError for a path that climbs
    out, stands twice or is absolute: the caller declared them, so that is a mistake of ours.
    """
    held = sorted(files, key=lambda each: each[0])
    names = [name for name, _, _ in held]
    if len(set(names)) != len(names):
        raise ValueError(f"a path stands twice in a bundle: {names}")
    stream = _Hashing(target)
    # The stream form ("w|") writes strictly forward, so the hash needs no second pass.
    # (typeshed asks for more than `write`, which is all that the stream form calls)
    with tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as tar:  # type: ignore[call-overload]
        for name, content, size in held:
            tar.addfile(_entry(name, size), BytesIO(content) if isinstance(content, bytes) else content)
    return Bundle(stream.hexdigest(), stream.size)


def _entry(name: str, size: int) -> tarfile.TarInfo:
    parts = name.split("/")
    if name.startswith("/") or any(part in {"", ".", ".."} for part in parts) or "\0" in name:
        raise ValueError(f"{name!r} is no path inside a workspace")
    entry = tarfile.TarInfo(name)
    entry.size = size
    entry.mode = 0o644
    entry.mtime = 0
    return entry


def bundle_key(sha256: str) -> str:
    """Where a bundle lies in the blob store."""
    return f"bundles/{sha256}"
