"""Room: gymnode.remote. gymd's end of a keeper: starting it, asking it, hearing of deaths. All in the loop's thread."""

from __future__ import annotations

import array
import json
import os
import signal
import socket
import struct
import subprocess
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

from gymnode.remote.frames import FrameError, FrameReader, frame_pack
from gymnode.remote.loop import Loop
from gymnode.remote.refusals import STATUS, Refusal

MAX_MESSAGE = 256 * 1024
_CREDENTIALS = struct.Struct("iII")

Result = Dict[str, Any]
Done = Callable[[Result], None]
Failed = Callable[[Refusal], None]


class Launch(NamedTuple):
    """How to start a keeper: its command line (the two descriptors are appended) and what it does to itself."""

    command: Tuple[str, ...]
    root: str
    restrict: Dict[str, Any]
    uid: int | None  # the command itself is started as this user (bubblewrap), not only what it starts


class Spawned(NamedTuple):
    """A started shell: process ids as gymd and as the run see them, the terminal's master where the keeper made it."""

    pid: int
    inner: int
    master: int | None


class _Pending(NamedTuple):
    done: Callable[[Result, int, List[int]], None]
    failed: Failed


class KeeperLink:
    """One running keeper. `on_exit(inner_pid, wait_status)` and `on_lost()` are called in the loop."""

    def __init__(self, loop: Loop, on_exit: Callable[[int, int], None], on_lost: Callable[[], None]) -> None:
        self._loop = loop
        self._on_exit, self._on_lost = on_exit, on_lost
        self._pending: Dict[int, _Pending] = {}
        self._next = 0
        self._reader = FrameReader()
        self._backlog = bytearray()
        self.pid = 0
        self.process: subprocess.Popen[bytes] | None = None
        self.closed = False
        self._control, self._files = socket.socket(), socket.socket()

    def start(self, launch: Launch, log_path: str, done: Done, failed: Failed) -> None:
        """Start the process and have it restrict itself; then `done(facts)`, or `failed` with the reason."""
        self._control.close()
        self._files.close()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._files, their_files = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._control.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        for end in (self._control, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * MAX_MESSAGE)
        fds = (theirs.fileno(), their_files.fileno())
        self.process = _process_start(launch, fds, log_path)
        theirs.close()
        their_files.close()
        self._control.setblocking(False)
        self._files.setblocking(False)
        self._loop.watch(self._control.fileno(), self._read_control, on_fault=self._lose)
        self._loop.watch(self._files.fileno(), self._read_files, on_fault=self._lose)

        def begun(result: Result, pid: int, _fds: List[int]) -> None:
            self.pid = pid
            done(result)

        message = {"op": "begin", "root": launch.root, "restrict": launch.restrict}
        self._ask(message, [], _Pending(begun, failed))

    def spawn(self, message: Result, fds: List[int], done: Callable[[Spawned], None], failed: Failed) -> None:
        """Start a shell; `fds` as in `shells.shell_start`."""

        def spawned(result: Result, pid: int, received: List[int]) -> None:
            done(Spawned(pid, result["pid"], received[0] if received else None))

        self._ask({**message, "op": "spawn"}, fds, _Pending(spawned, failed))

    def ask_with(self, message: Result, fd: int, done: Done, failed: Failed) -> None:
        """`unpack` or `output`, on a descriptor."""
        self._ask(message, [fd], _Pending(lambda result, _pid, _fds: done(result), failed))

    def file_op(self, op: str, args: Result, done: Done, failed: Failed) -> None:
        """One `file.*` operation."""
        if self.closed:
            failed(Refusal("no_such_run", "the run's isolation has ended"))
            return
        number = self._register(_Pending(lambda result, _pid, _fds: done(result), failed))
        try:
            self._backlog += frame_pack({"id": number, "op": op, "args": args})
        except FrameError as error:
            del self._pending[number]
            failed(Refusal("path_too_large", f"{op} is too large to be carried out at once: {error}"))
            return
        self._write_files()

    def close(self) -> None:
        """Hang up: the keeper ends, and with it everything it started."""
        if self.closed:
            return
        self.closed = True
        for end in (self._control, self._files):
            self._loop.unwatch(end.fileno())
            end.close()
        pending, self._pending = self._pending, {}
        for entry in pending.values():
            entry.failed(Refusal("broken", "the run's isolation ended before the answer came"))

    def _lose(self) -> None:
        self.close()
        self._on_lost()

    def kill(self) -> None:
        """End the process itself, for one that doesn't end when hung up on."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)

    def ended(self) -> bool:
        """True when the process is gone (and reaped)."""
        return self.process is None or self.process.poll() is not None

    def _register(self, pending: _Pending) -> int:
        self._next += 1
        self._pending[self._next] = pending
        return self._next

    def _ask(self, message: Result, fds: List[int], pending: _Pending) -> None:
        if self.closed:
            pending.failed(Refusal("no_such_run", "the run's isolation has ended"))
            return
        number = self._register(pending)
        data = json.dumps({**message, "id": number}).encode()
        if len(data) > MAX_MESSAGE:
            del self._pending[number]
            pending.failed(Refusal("path_too_large", f"{message['op']} with {len(data)} bytes; {MAX_MESSAGE} at most"))
            return
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        try:
            self._control.sendmsg([data], ancillary)
        except OSError as error:
            del self._pending[number]
            pending.failed(Refusal("broken", f"the run's keeper can't be reached: {error}"))

    def _read_control(self, _events: int) -> None:
        space = socket.CMSG_SPACE(16) + socket.CMSG_SPACE(_CREDENTIALS.size)
        try:
            data, ancillary, _flags, _address = self._control.recvmsg(MAX_MESSAGE, space)
        except BlockingIOError:
            return
        except OSError:
            data, ancillary = b"", []
        if not data:
            self._lose()
            return
        pid, fds = _ancillary_parse(ancillary)
        message = json.loads(data)
        if "exited" in message:
            self._on_exit(message["exited"], message["status"])
            return
        self._settle(message, pid, fds)

    def _read_files(self, events: int) -> None:
        if self._backlog:
            self._write_files()
        try:
            data = self._files.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._loop.unwatch(self._files.fileno())
            return
        for frame in self._reader.feed(data):
            self._settle(frame.header, 0, [])

    def _settle(self, message: Result, pid: int, fds: List[int]) -> None:
        pending = self._pending.pop(message["id"], None)
        if pending is None:
            for fd in fds:
                os.close(fd)
        elif "error" in message:
            code = message.get("code", "broken")
            self._fail(pending, Refusal(code if code in STATUS else "broken", message["error"]))
        else:
            try:
                pending.done(message["result"], pid, fds)
            except Exception as error:  # noqa: BLE001 - a fault in one answer must not end the run's isolation
                self._loop.faults.write()
                self._fail(pending, Refusal("broken", f"gymd: {type(error).__name__}: {error}"))

    def _fail(self, pending: _Pending, refusal: Refusal) -> None:
        try:
            pending.failed(refusal)
        except Exception:  # noqa: BLE001 - as above
            self._loop.faults.write()

    def _write_files(self) -> None:
        try:
            while self._backlog:
                sent = self._files.send(self._backlog[: 1 << 18])
                del self._backlog[:sent]
        except BlockingIOError:
            self._loop.interest(self._files.fileno(), 0x001 | 0x004)  # EPOLLIN | EPOLLOUT
            return
        except OSError:
            return  # the end is seen on `control`
        self._loop.interest(self._files.fileno(), 0x001)


def _ancillary_parse(ancillary: List[Tuple[int, int, bytes]]) -> Tuple[int, List[int]]:
    pid = 0
    fds: List[int] = []
    for level, kind, raw in ancillary:
        if level != socket.SOL_SOCKET:
            continue
        if kind == socket.SCM_RIGHTS:
            received = array.array("i")
            received.frombytes(raw[: len(raw) - len(raw) % received.itemsize])
            fds.extend(received)
        elif kind == socket.SCM_CREDENTIALS:
            pid = _CREDENTIALS.unpack(raw[: _CREDENTIALS.size])[0]
    for fd in fds:
        os.set_inheritable(fd, False)
    return pid, fds


def _process_start(launch: Launch, fds: Tuple[int, int], log_path: str) -> "subprocess.Popen[bytes]":
    uid = launch.uid

    def become() -> None:
        if uid is not None:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)

    log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        return subprocess.Popen(
            [*launch.command, str(fds[0]), str(fds[1])],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=fds,
            cwd="/",
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"},
            start_new_session=True,
            preexec_fn=become if uid is not None else None,  # noqa: PLW1509 - no thread of gymd holds a lock here
        )
    finally:
        os.close(log)
