"""Room: gymnode.remote. gymd's Unix socket: accepts only its own user, reads frames, writes answers in any order."""

from __future__ import annotations

import os
import select
import socket
import struct
from pathlib import Path
from typing import Any, Callable, Dict

from gymnode.remote.frames import Frame, FrameError, FrameReader, frame_pack
from gymnode.remote.loop import Loop
from gymnode.remote.refusals import Refusal

READ_SIZE = 1 << 18
MAX_BACKLOG = 256 * 1024 * 1024

Serve = Callable[["Connection", Frame], None]


class Connection:
    """One bridge. Answers for a closed one are dropped: the journal keeps them."""

    def __init__(self, loop: Loop, link: socket.socket, serve: Serve, on_close: Callable[["Connection"], None]) -> None:
        self._loop, self._link, self._serve, self._on_close = loop, link, serve, on_close
        self._reader = FrameReader()
        self._backlog = bytearray()
        self._closed = False
        link.setblocking(False)
        loop.watch(link.fileno(), self._on_ready, on_fault=self.close)

    def answer(self, request: Any, status: int, body: Dict[str, Any], payload: bytes = b"") -> None:
        """Send one answer; one that no frame can hold becomes a refusal."""
        if self._closed:
            return
        try:
            self._backlog += frame_pack({"id": request, "status": status, "body": body}, payload)
        except FrameError as error:
            refusal = Refusal("path_too_large", f"the answer is too large to be sent ({error}): ask for less")
            said = {"code": refusal.code, "message": refusal.message}
            self._backlog += frame_pack({"id": request, "status": refusal.status, "body": said})
        self._flush()

    def close(self) -> None:
        """Hang up."""
        if not self._closed:
            self._closed = True
            self._loop.unwatch(self._link.fileno())
            self._link.close()
            self._on_close(self)

    def _on_ready(self, events: int) -> None:
        if events & select.EPOLLOUT:
            self._flush()
        if self._closed or not events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
            return
        try:
            data = self._link.recv(READ_SIZE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
            return
        try:
            frames = self._reader.feed(data)
        except FrameError:
            self.close()
            return
        for frame in frames:
            self._serve(self, frame)

    def _flush(self) -> None:
        try:
            while self._backlog:
                sent = self._link.send(self._backlog if len(self._backlog) <= READ_SIZE else self._backlog[:READ_SIZE])
                del self._backlog[:sent]
        except BlockingIOError:
            if len(self._backlog) > MAX_BACKLOG:
                self.close()
                return
            self._loop.interest(self._link.fileno(), select.EPOLLIN | select.EPOLLOUT)
            return
        except OSError:
            self.close()
            return
        self._loop.interest(self._link.fileno(), select.EPOLLIN)


class Listener:
    """The listening socket of mode 0600 in gymd's private folder."""

    def __init__(self, loop: Loop, path: Path, serve: Serve) -> None:
        self._loop, self._serve = loop, serve
        self.connections: set[Connection] = set()
        path.unlink() if path.exists() or path.is_socket() else None
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(str(path))
        path.chmod(0o600)
        self._socket.listen(64)
        self._socket.setblocking(False)
        loop.watch(self._socket.fileno(), self._accept)

    def _accept(self, _events: int) -> None:
        try:
            link, _address = self._socket.accept()
        except OSError:
            return
        raw = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("iII"))
        _pid, uid, _gid = struct.unpack("iII", raw)
        if uid not in (os.getuid(), 0):
            link.close()
            return
        self.connections.add(Connection(self._loop, link, self._serve, self.connections.discard))
