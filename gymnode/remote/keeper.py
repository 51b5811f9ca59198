"""Room: gymnode.remote. The keeper: one small process per run, inside its isolation, shielded from what it starts.

It starts shells and does the file operations with the run's own rights; gymd, outside, holds terminals, logs and exit
codes. Two descriptors lead to gymd: `control` (SOCK_SEQPACKET, JSON messages, descriptors attached) and `files`
(stream of frames). When `control` closes, everything the run ever started ends with the keeper.
"""

from __future__ import annotations

import array
import errno
import json
import os
import queue
import select
import signal
import socket
import sys
import threading
import traceback
from typing import Any, Callable, Dict, List

from gymnode.remote.files import FileOps
from gymnode.remote.frames import Frame, FrameError, FrameReader, frame_pack
from gymnode.remote.refusals import Refusal
from gymnode.remote.restrict import process_restrict, process_shield
from gymnode.remote.shells import shell_start
from gymnode.remote.sweeping import descendants_end
from gymnode.remote.trees import output_copy, tree_unpack

MAX_MESSAGE = 256 * 1024
MAX_PARALLEL = 8
MAX_ASIDE = 2

Message = Dict[str, Any]


def verb_main(words: List[str]) -> None:
    """Run on the two descriptors that `words` name, until gymd closes `control`. Never returns."""
    control, files = (socket.socket(fileno=int(word)) for word in words)
    for link in (control, files):
        link.setblocking(True)
        link.set_inheritable(False)
    keeper = Keeper(control, files)
    try:
        keeper.run()
    except Exception:  # noqa: BLE001 - the top of the process: say it in gymd's keeper log, then take all along
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        keeper.end()


def message_receive(control: socket.socket) -> tuple[Message | None, List[int]]:
    """One message and the descriptors that came with it; None at the end."""
    data, ancillary, _flags, _address = control.recvmsg(MAX_MESSAGE, socket.CMSG_SPACE(8 * 4))
    fds: List[int] = []
    for level, kind, raw in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            received = array.array("i")
            received.frombytes(raw[: len(raw) - len(raw) % received.itemsize])
            fds.extend(received)
    for fd in fds:
        os.set_inheritable(fd, False)
    return (json.loads(data) if data else None), fds


def message_send(control: socket.socket, message: Message, fds: List[int] | None = None) -> None:
    """Send one message, with copies of `fds`."""
    ancillary = []
    if fds:
        ancillary.append((socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds)))
    control.sendmsg([json.dumps(message).encode()], ancillary)


class Keeper:
    """State of one keeper; the main thread reads `control` and reaps, others read `files` and do the work."""

    def __init__(self, control: socket.socket, files: socket.socket) -> None:
        self._control, self._files = control, files
        self._files_lock = threading.Lock()
        self._frames: queue.Queue[Frame] = queue.Queue(MAX_PARALLEL)
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._ops: FileOps | None = None
        self._root = "/"
        self._wake, wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(wake_write, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        self._handlers: Dict[str, Callable[[Message, List[int]], None]] = {
            "begin": self._begin,
            "spawn": self._spawn,
            "unpack": self._unpack,
            "output": self._output,
        }

    def run(self) -> None:
        """Serve `control` and reap children until gymd hangs up."""
        poller = select.poll()
        poller.register(self._control, select.POLLIN)
        poller.register(self._wake, select.POLLIN)
        while True:
            for fd, _events in poller.poll():
                if fd == self._wake:
                    os.read(self._wake, 4096)
                    self._reap()
                elif not self._serve():
                    return

    def end(self) -> None:
        """Take everything along. As PID 1 of a namespace the kernel does it, elsewhere the sweep."""
        if os.getpid() != 1:
            descendants_end(os.getpid(), patience_s=0)
        os._exit(0)

    def _serve(self) -> bool:
        try:
            message, fds = message_receive(self._control)
        except ConnectionError:
            return False
        if message is None:
            return False
        self._handlers[message["op"]](message, fds)
        return True

    def _begin(self, message: Message, _fds: List[int]) -> None:
        self._root = message["root"]
        self._ops = FileOps(self._root)
        try:
            facts = process_restrict(message["restrict"])
            process_shield()
            os.chdir(self._root)
            self._workers_start()
        except (OSError, RuntimeError, Refusal) as error:
            message_send(self._control, {"id": message["id"], "error": f"{error}"})
            return
        message_send(self._control, {"id": message["id"], "result": facts})

    def _workers_start(self) -> None:
        """All threads at once, after the walls (a thread that is older than those isn't held by them) and before the
        first shell: a run that uses up its processes later must not stop its own file operations."""
        for target, count in ((self._files_run, 1), (self._files_work, MAX_PARALLEL), (self._aside_work, MAX_ASIDE)):
            for _number in range(count):
                threading.Thread(target=target, daemon=True).start()

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            message_send(self._control, {"exited": pid, "status": status})

    def _spawn(self, message: Message, fds: List[int]) -> None:
        try:
            shell_start(self._control, message, fds)
        except OSError as error:
            message_send(self._control, {"id": message["id"], "error": f"the shell can't be started: {error}"})
        finally:
            for fd in fds:
                os.close(fd)

    def _unpack(self, message: Message, fds: List[int]) -> None:
        self._aside(message, fds, lambda: tree_unpack(self._root, fds[0], message["sha256"]))

    def _output(self, message: Message, fds: List[int]) -> None:
        self._aside(message, fds, lambda: output_copy(self._root, message["path"], message["max_bytes"], fds[0]))

    def _aside(self, message: Message, fds: List[int], work: Callable[[], Dict[str, Any]]) -> None:
        """Do long work in a thread of its own and answer on `control`."""

        def job() -> None:
            try:
                answer: Message = {"id": message["id"], "result": work()}
            except Refusal as refusal:
                answer = {"id": message["id"], "error": refusal.message, "code": refusal.code}
            except Exception as error:  # noqa: BLE001 - the top of the thread: the caller must get an answer
                full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
                code = "storage_full" if full else "broken"
                answer = {"id": message["id"], "error": f"{type(error).__name__}: {error}", "code": code}
            for fd in fds:
                os.close(fd)
            message_send(self._control, answer)

        self._work.put(job)

    def _aside_work(self) -> None:
        while True:
            self._work.get()()

    def _files_run(self) -> None:
        reader = FrameReader()
        while True:
            data = self._files.recv(1 << 18)
            if not data:
                return
            for frame in reader.feed(data):
                self._frames.put(frame)

    def _files_work(self) -> None:
        while True:
            packed = self._file_job(self._frames.get())
            with self._files_lock:
                self._files.sendall(packed)

    def _file_job(self, frame: Frame) -> bytes:
        """The answer to one file operation, packed."""
        assert self._ops is not None
        number = frame.header["id"]
        try:
            return frame_pack({"id": number, "result": self._ops.call(frame.header["op"], frame.header["args"])})
        except Refusal as refusal:
            said: Message = {"error": refusal.message, "code": refusal.code}
        except FrameError as error:
            said = {"error": f"the answer is too large to be sent ({error}): ask for less", "code": "path_too_large"}
        except Exception as error:  # noqa: BLE001 - the top of the file thread: the caller must get an answer
            said = {"error": f"{type(error).__name__}: {error}", "code": "broken"}
        return frame_pack({"id": number, **said})
