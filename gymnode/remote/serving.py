"""Room: gymnode.remote. `gymd serve`: be the one gymd of a home until SIGTERM."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import gc
import os
import signal
import sys
from pathlib import Path
from typing import List

from gymnode.remote.homes import Home, home_of_words
from gymnode.remote.server import Server


def verb_main(words: List[str]) -> None:
    """Serve the home that `words` name."""
    serve(home_of_words(words))


def serve(home: Home) -> None:
    """Serve; returns at once when another gymd does already."""
    lock = os.open(home.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    os.umask(0o077)
    os.chdir("/")
    server = Server(home)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    Path(home.state / "pid").write_text(str(os.getpid()))
    _slim()
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, -5)  # what runs do must not keep requests waiting; shells go back to 0
    server.loop.run()
    os.close(lock)


def _slim() -> None:
    """Give back what compiling the sources took."""
    gc.collect()
    gc.freeze()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
