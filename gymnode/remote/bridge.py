"""Room: gymnode.remote. `gymd connect`: joins standard input and output with gymd's socket, starting gymd if needed."""

from __future__ import annotations

import fcntl
import os
import select
import socket
import sys
import time
from pathlib import Path
from shutil import which
from typing import Any, Dict, List

from gymnode.remote.digests import hex_digest
from gymnode.remote.frames import READY, FrameReader, frame_pack
from gymnode.remote.homes import Home, home_of_words

START_LIMIT_S = 20.0
SIZE = 1 << 18


def verb_main(words: List[str]) -> None:
    """Be the bridge to the home that `words` name."""
    bridge_run(home_of_words(words))


def bridge_run(home: Home) -> None:
    """Relay until either side hangs up. Ends the process with a message where gymd can't be started."""
    link = _connect(home)
    if link is not None and _retire_other(link):
        link = None
    if link is None:
        _server_start(home)
        until = time.monotonic() + START_LIMIT_S
        while link is None and time.monotonic() < until:
            time.sleep(0.02)
            link = _connect(home)
    if link is None:
        said = (
            (home.state / "gymd.log").read_text(errors="replace")[-500:] if (home.state / "gymd.log").exists() else ""
        )
        sys.exit(f"gymd: doesn't start within {START_LIMIT_S:.0f} s: {said}")
    _relay(link)


def _connect(home: Home) -> socket.socket | None:
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        link.connect(str(home.socket))
    except OSError:
        link.close()
        return None
    return link


def _retire_other(link: socket.socket) -> bool:
    """Ask a gymd of another release to go, if nobody uses it; True when it does."""
    own = hex_digest(Path(sys.argv[0]).read_bytes())
    hello = _ask(link, "GET", "/v1/hello")
    return hello.get("body", {}).get("sha256") != own and _ask(link, "POST", "/v1/retire").get("status") == 200


def _ask(link: socket.socket, method: str, path: str) -> Dict[str, Any]:
    link.sendall(frame_pack({"id": 0, "method": method, "path": path, "body": {}}))
    reader = FrameReader()
    while True:
        data = link.recv(SIZE)
        if not data:
            return {}
        for frame in reader.feed(data):
            return frame.header


def _server_start(home: Home) -> None:
    """Start gymd so that it outlives this connection: own session, no descriptor of ours, no parent."""
    gate = os.open(home.state / "starting", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(gate, fcntl.LOCK_EX)
    link = _connect(home)
    if link is not None:
        link.close()
        os.close(gate)
        return
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            _server_exec(home)
        os._exit(0)
    os.wait()
    until = time.monotonic() + START_LIMIT_S
    while _connect(home) is None and time.monotonic() < until:
        time.sleep(0.01)
    os.close(gate)


def _server_exec(home: Home) -> None:
    null = os.open("/dev/null", os.O_RDWR)
    log = os.open(home.state / "gymd.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for source, target in ((null, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.closerange(3, 256)
    command = [*_scope(), sys.executable, "-I", "-S", "-W", "ignore", sys.argv[0], "serve"]
    command += ["--home", str(home.base), "--root", str(home.root)]
    os.execv(command[0], command)  # noqa: S606 - a list, no shell


def _scope() -> List[str]:
    """Where logind would end everything with the connection, a scope of its own keeps gymd."""
    runner = which("systemd-run")
    has_manager = "XDG_RUNTIME_DIR" in os.environ and Path(os.environ["XDG_RUNTIME_DIR"], "systemd").is_dir()
    if runner is None or os.getuid() == 0 or not has_manager:
        return []
    return [runner, "--user", "--scope", "--quiet", "--collect"]


def _relay(link: socket.socket) -> None:
    os.write(1, READY)
    poller = select.poll()
    poller.register(0, select.POLLIN)
    poller.register(link, select.POLLIN)
    while True:
        for fd, _events in poller.poll():
            if fd == 0:
                data = os.read(0, SIZE)
                if not data:
                    return
                link.sendall(data)
            else:
                data = link.recv(SIZE)
                if not data:
                    return
                _write_all(data)


def _write_all(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]
