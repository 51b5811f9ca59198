"""Room: gymnode.remote. Where gymd keeps its things on a node: a private, local folder named by machine and boot.

`GYMD_HOME` (default /var/tmp/gymd-UID) holds code and state, `GYMD_ROOT` (default: /var/lib/gymd as root, else below
the home) holds the runs' folders. Nothing collides on a home shared by many machines, and a reboot starts afresh.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import List, NamedTuple

from gymnode.remote.digests import hex_digest
from gymnode.remote.frames import PROTOCOL

SOCKET_LIMIT = 107


class HomeError(Exception):
    """The folder can't be used: foreign, open to others, or its path too long for a socket."""


class Home(NamedTuple):
    """All paths of one gymd: `base` has its code, `state` its journals and logs, `root` the runs' folders."""

    base: Path
    state: Path
    root: Path

    @property
    def socket(self) -> Path:
        """The Unix socket requests arrive at."""
        return self.state / "s"

    @property
    def lock(self) -> Path:
        """Held (flock) by the one gymd that serves this home."""
        return self.state / "lock"


def machine_id() -> str:
    """This machine's id; containers without one fall back to the host name."""
    for name in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        try:
            text = Path(name).read_text().strip()
        except OSError:
            continue
        if text:
            return text
    return os.uname().nodename


def boot_id() -> str:
    """The kernel's id of this boot."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "unknown"


def home_open(base: str | None = None, root: str | None = None) -> Home:
    """Make (if missing) and check the folders. Raises HomeError."""
    chosen = base or os.environ.get("GYMD_HOME") or f"/var/tmp/gymd-{os.getuid()}"
    folder = Path(chosen).absolute()
    key = hex_digest(f"{machine_id()}:{boot_id()}".encode())[:10]
    state = folder / key / f"v{PROTOCOL}"
    for part in (folder, folder / key, state):
        _private_folder(part)
    home = Home(base=folder, state=state, root=_root_folder(folder, root))
    if len(os.fsencode(home.socket)) > SOCKET_LIMIT:
        raise HomeError(f"{home.socket} is longer than {SOCKET_LIMIT} bytes: choose a shorter GYMD_HOME")
    return home


def home_of_words(words: List[str]) -> Home:
    """The home that a command line names: [--home DIR] [--root DIR]. Ends the process with a message for a bad one."""
    options = dict(zip(words[::2], words[1::2]))  # noqa: B905 - `strict` is 3.10
    if len(words) % 2 or set(options) - {"--home", "--root"}:
        sys.exit("gymd: [--home DIR] [--root DIR]")
    try:
        return home_open(options.get("--home"), options.get("--root"))
    except (HomeError, OSError) as error:
        sys.exit(f"gymd: {error}")


def _root_folder(base: Path, root: str | None) -> Path:
    chosen = root or os.environ.get("GYMD_ROOT")
    if chosen is None:
        chosen = "/var/lib/gymd/runs" if os.getuid() == 0 else str(base / "runs")
    folder = Path(chosen).absolute()
    if not folder.is_dir():
        folder.mkdir(parents=True, mode=0o711, exist_ok=True)
    return folder


def _private_folder(folder: Path) -> None:
    folder.mkdir(parents=True, mode=0o700, exist_ok=True)
    facts = folder.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid():
        raise HomeError(f"{folder} belongs to somebody else: set GYMD_HOME to a folder of your own")
    if facts.st_mode & 0o077:
        folder.chmod(0o700)
