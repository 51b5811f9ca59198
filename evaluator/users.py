"""Room: evaluator. Numeric users for sandboxes (when started as root), and who can reach which path.

Standard library only.
"""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FIRST, COUNT = 58_000, 900  # below the ranges of systemd's dynamic users and of sub-uids; nodes' runs use others


class NoUser(RuntimeError):
    """Every numeric user of the pool is in use."""


def _busy() -> set[int]:
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found.add(entry.stat().st_uid)
            except OSError:
                continue
    return found


@contextmanager
def own_user() -> Iterator[int | None]:
    """A numeric user that nobody else holds, None when not root. The claim is an abstract socket: it dies with us."""
    if os.geteuid() != 0:
        yield None
        return
    busy = _busy()
    start = os.getpid() % COUNT
    for step in range(COUNT):
        uid = FIRST + (start + step) % COUNT
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            claim.bind(f"\0evaluator-sandbox-user-{uid}")
        except OSError:
            claim.close()
            continue
        with claim:
            if uid not in busy:
                yield uid
                return
    raise NoUser(
        f"no free user from {FIRST} to {FIRST + COUNT - 1}; end the sandboxes that hang, or start fewer evaluators"
    )


def unreachable(path: Path, uid: int) -> Path | None:
    """The first folder above `path` (or itself) that user `uid`, in no groups, can't enter; None when there is none."""
    for part in (*reversed(path.parents), path):
        try:
            found = part.stat()
        except OSError:
            return part
        wanted = stat.S_IXUSR if found.st_uid == uid else stat.S_IXOTH
        if stat.S_ISDIR(found.st_mode) and not found.st_mode & wanted:
            return part
    return None


def give_read(folder: Path, uid: int) -> None:
    """Root keeps the tree, `uid` may read it and nobody else may: it can't even change a mode."""
    for path in _tree(folder):
        os.chown(path, 0, uid, follow_symlinks=False)
        if not path.is_symlink():
            path.chmod(0o750 if path.is_dir() else 0o640)


def give_write(folder: Path, uid: int) -> None:
    """The tree becomes the user's own."""
    for path in _tree(folder):
        os.chown(path, uid, uid, follow_symlinks=False)
    folder.chmod(0o700)


def _tree(folder: Path) -> Iterator[Path]:
    yield folder
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            yield Path(place) / name
