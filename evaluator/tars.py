"""Room: evaluator. Reading tars that strangers wrote: plain files and folders, limits before anything is written."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_CHUNK = 1024 * 1024


class TarRefused(ValueError):
    """The tar holds something it must not; the message names the entry and the limit."""


@dataclass(frozen=True)
class TarLimits:
    entries: int = 20_000
    total: int = 4 * 1024**3
    depth: int = 16


def safe_name(name: str, depth: int = 16) -> str:
    """The name of an entry, refused when it could leave the folder or mean something else on another system."""
    parts = name.rstrip("/").split("/")
    if name.startswith("/") or "\\" in name or "\0" in name or any(part in {"", ".", ".."} for part in parts):
        raise TarRefused(f"{name[:200]!r} is no path inside the folder")
    if len(parts) > depth or any(len(os.fsencode(part)) > 255 for part in parts):
        raise TarRefused(f"{name[:200]!r} is deeper than {depth} levels or longer than a file system keeps")
    return "/".join(parts)


def tar_members(tar: tarfile.TarFile, limits: TarLimits) -> list[tarfile.TarInfo]:
    """All entries, checked. Raises `TarRefused`."""
    seen: set[str] = set()
    total = 0
    found: list[tarfile.TarInfo] = []
    for member in tar:
        name = safe_name(member.name, limits.depth)
        if name.casefold() in seen:
            raise TarRefused(f"{name!r} stands twice")
        seen.add(name.casefold())
        if not (member.isdir() or member.type in {tarfile.REGTYPE, tarfile.AREGTYPE}) or member.issparse():
            raise TarRefused(f"{name!r} is neither a plain file nor a folder (links, devices and pipes are refused)")
        total += member.size
        if len(seen) > limits.entries or total > limits.total:
            raise TarRefused(f"more than {limits.entries} entries or {limits.total} bytes")
        member.name = name
        found.append(member)
    return found


def tar_unpack(
    stream: IO[bytes],
    into: Path,
    limits: TarLimits,
    accept: Callable[[tarfile.TarInfo], bool] = lambda _: True,
) -> list[str]:
    """Unpack into the fresh folder `into`; nothing is written before every entry is checked. Returns the file names."""
    try:
        with tarfile.open(fileobj=stream, mode="r:") as tar:
            members = tar_members(tar, limits)
            written = []
            for member in members:
                if accept(member):
                    _write(tar, member, into)
                    written += [member.name] if member.isreg() else []
            return written
    except (tarfile.TarError, EOFError, OverflowError) as error:
        raise TarRefused(f"not a plain tar: {error}") from error


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, into: Path) -> None:
    target = into / member.name
    if member.isdir():
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    source = tar.extractfile(member)
    assert source is not None
    handle = os.open(
        target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o755 if member.mode & 0o100 else 0o644
    )
    with os.fdopen(handle, "wb") as out:
        left = member.size
        while left:
            data = source.read(min(left, _CHUNK))
            if not data:
                raise TarRefused(f"{member.name!r} is cut short")
            out.write(data)
            left -= len(data)
