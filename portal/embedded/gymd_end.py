"""gymd outlives whoever started it, by design; the embedded site ends the one of its own local node when it ends."""

import os
import signal
import time
from pathlib import Path

_ENDS_WITHIN_S = 8.0


def gymd_end(node_root: Path) -> None:
    """End every gymd whose folder lies below `node_root`, and with it what its runs started."""
    for note in node_root.glob("gymd/*/*/pid"):
        pid = _living(note)
        if pid is None:
            continue
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + _ENDS_WITHIN_S
        while _living(note) == pid and time.monotonic() < deadline:
            time.sleep(0.05)
        if _living(note) == pid:
            os.kill(pid, signal.SIGKILL)


def _living(note: Path) -> int | None:
    """The process of a pid file, if it is really a gymd: numbers are used again."""
    try:
        pid = int(note.read_text())
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (OSError, ValueError):
        return None
    return pid if b"gymd" in command and str(note.parents[2]).encode() in command else None
