"""Room: gymnode.transport. gymd on this machine without SSH: `gymd connect` as a child process."""

import os
import socket
import subprocess
import sys
from pathlib import Path

from gymnode.errors import NodeUnreachable
from gymnode.transport.framed import FramedLink, Stream
from gymnode.transport.package import gymd_package

STALL_S = 20.0


class LocalLink(FramedLink):
    """A link to the gymd whose own folder is `home`; its runs lie below `root`."""

    def __init__(
        self, name: str, *, home: Path, root: Path, python: str = sys.executable, keepalive_s: float = 10.0
    ) -> None:
        self._home, self._root, self._python = home, root, python
        super().__init__(name, self._open, keepalive_s=keepalive_s)

    def _open(self, _seconds: float) -> Stream:
        try:
            code = _code_place(self._home)
            return _ProcessStream([self._python, "-I", "-S", str(code), "connect", *self._places()])
        except OSError as error:
            raise NodeUnreachable(self.name, f"{self.name}: gymd can't be started: {error}") from error

    def _places(self) -> list[str]:
        return ["--home", str(self._home), "--root", str(self._root)]


def _code_place(home: Path) -> Path:
    """The zipapp below `home`, written when it is missing."""
    package = gymd_package()
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    code = home / f"gymd-{package.sha256[:16]}.pyz"
    if not code.exists():
        temporary = home / f".gymd-{os.getpid()}"
        temporary.write_bytes(package.data)
        temporary.replace(code)
    return code


class _ProcessStream:
    def __init__(self, command: list[str]) -> None:
        self._link, theirs = socket.socketpair()
        self._link.settimeout(STALL_S)
        end = theirs.fileno()
        self._process = subprocess.Popen(command, stdin=end, stdout=end, stderr=subprocess.PIPE, cwd="/")
        theirs.close()

    def send(self, data: bytes) -> None:
        self._link.sendall(data)

    def receive(self, size: int) -> bytes:
        return self._link.recv(size)

    def close(self) -> None:
        try:
            self._link.shutdown(socket.SHUT_RDWR)
        except OSError:
            return
        finally:
            self._link.close()
            self._process.kill()
            self._process.wait()

    def last_words(self) -> str:
        assert self._process.stderr is not None
        if self._process.poll() is None:
            return ""
        words: bytes = self._process.stderr.read(2000)
        return words.decode("utf-8", "replace").strip()
