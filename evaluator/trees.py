"""Room: evaluator. Folders as lists of files: digests and tars that are the same for the same content.

Standard library only.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_CHUNK = 1024 * 1024
_JUNK = {"__pycache__", ".DS_Store", ".ipynb_checkpoints"}


@dataclass(frozen=True)
class Entry:
    """One file (or, with `source` None, one folder) by its path in the tree."""

    path: str
    source: Path | bytes | None

    @property
    def runs(self) -> bool:
        """Whether the owner may execute it."""
        return isinstance(self.source, Path) and bool(self.source.stat().st_mode & 0o100)


def tree_entries(folder: Path, prefix: str = "") -> list[Entry]:
    """Everything below `folder` but interpreter caches, sorted by path; links to files count as the files."""
    found = []
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in _JUNK]
        here = Path(place)
        for name in (*folders, *files):
            path = here / name
            inside = f"{prefix}{path.relative_to(folder).as_posix()}"
            if path.is_dir():
                found.append(Entry(inside, None))
            elif name not in _JUNK and not name.endswith(".pyc"):
                found.append(Entry(inside, path))
    return sorted(found, key=lambda entry: entry.path)


def file_sha256(source: Path | bytes) -> str:
    """SHA-256 of a file or of bytes, in hex."""
    if isinstance(source, bytes):
        return hashlib.sha256(source).hexdigest()
    with source.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def tree_digest(entries: Iterable[Entry]) -> str:
    """SHA-256 over paths, executable bits and contents, whatever order and times."""
    lines = [
        [entry.path, "folder" if entry.source is None else file_sha256(entry.source), entry.runs] for entry in entries
    ]
    return hashlib.sha256(json.dumps(sorted(lines), separators=(",", ":")).encode()).hexdigest()


def tar_write(entries: Iterable[Entry], stream: IO[bytes]) -> None:
    """A tar with sorted names, no times, no owners, modes 0644 or 0755: equal content gives equal bytes."""
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for entry in sorted(entries, key=lambda one: one.path):
            info = tarfile.TarInfo(entry.path)
            if entry.source is None:
                info.type, info.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(info)
                continue
            info.mode = 0o755 if entry.runs else 0o644
            if isinstance(entry.source, bytes):
                info.size = len(entry.source)
                tar.addfile(info, io.BytesIO(entry.source))
                continue
            info.size = entry.source.stat().st_size
            with entry.source.open("rb") as content:
                tar.addfile(info, content)


def chunks(stream: IO[bytes], size: int = _CHUNK) -> Iterator[bytes]:
    """A stream in pieces of `size` bytes."""
    while data := stream.read(size):
        yield data
