"""Room: evaluator.guard. The keeper: starts one confined program, watches it, ends what it left, reads its result.

A program of its own (`python -I -S -B -c BOOT FOLDER keep`), so that it may be a subreaper and reap whatever comes. The
plan comes as one line on stdin; stdin's end means that whoever asked is gone. The report goes to stdout. Standard
library only.
"""

from __future__ import annotations

import base64
import os
import resource
import selectors
import signal
import socket
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from evaluator.guard import confine
from evaluator.guard.plan import Plan, Report

_TAIL = 64 * 1024
_LOOK_S = 0.25
_MAX_ENTRIES = 200_000


class Keeper:
    """State of one run: the child, what it said, how it ended."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.tails = {"out": b"", "err": b""}
        self.scratch: int | None = None
        self.started = False
        self.fault = ""
        self.ended = ""
        self.exit_code: int | None = None
        self.began = time.monotonic()
        self.pid = 0

    def run(self) -> Report:
        """Start, watch, end. The report is true only when nothing of the program is left running."""
        confine.prctl(confine.PR_SET_CHILD_SUBREAPER, 1)
        channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pipes = {"out": os.pipe(), "err": os.pipe()}
        self.pid = os.fork()
        if self.pid == 0:
            _be_child(self.plan, theirs, pipes["out"][1], pipes["err"][1])
        theirs.close()
        for handle in (*(write for _, write in pipes.values()), *self.plan.keep):
            os.close(handle)
        self.watch(channel, {name: read for name, (read, _) in pipes.items()})
        seconds = time.monotonic() - self.began
        left = end_all(self.plan.uid, self.pid, self)
        return self.report(seconds, left)

    def watch(self, channel: socket.socket, pipes: dict[str, int]) -> None:
        """Until the child ended, or a limit was reached, or nobody waits for the answer."""
        chooser = selectors.DefaultSelector()
        chooser.register(channel, selectors.EVENT_READ, "channel")
        chooser.register(sys.stdin.fileno(), selectors.EVENT_READ, "stdin")
        for name, handle in pipes.items():
            os.set_blocking(handle, False)
            chooser.register(handle, selectors.EVENT_READ, name)
        next_look = self.began
        wait_s = 0.002
        while not self.ended:
            for key, _ in chooser.select(wait_s):
                self.on_ready(chooser, key)
            wait_s = min(wait_s * 1.5, 0.02)
            self.check_child()
            if not self.ended and time.monotonic() > next_look:
                next_look = time.monotonic() + _LOOK_S
                self.check_limits()
        for key in list(chooser.get_map().values()):
            self.on_ready(chooser, key)

    def on_ready(self, chooser: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
        """Take what has come on one descriptor."""
        if key.data == "stdin":
            if self.ended:
                return
            if not os.read(key.fd, 4096):
                self.ended = "parent"
        elif key.data == "channel":
            if not self.on_message(key.fileobj):  # type: ignore[arg-type]  # only the channel is registered so
                chooser.unregister(key.fileobj)
        elif self.drain(key.data, key.fd):
            chooser.unregister(key.fileobj)

    def drain(self, name: str, handle: int) -> bool:
        """Keep the last 64 KiB of a stream; true at its end."""
        for _ in range(64):
            try:
                data = os.read(handle, 65536)
            except BlockingIOError:
                return False
            if not data:
                return True
            self.tails[name] = (self.tails[name] + data)[-_TAIL:]
        return False

    def on_message(self, channel: socket.socket) -> bool:
        """Words of the child; false when it will say no more."""
        while True:
            try:
                word, handles, _, _ = socket.recv_fds(channel, 4096, 1, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return True
            if handles:
                self.scratch = handles[0]
            if not word:
                return False
            if word == b"X":
                self.started = True
            elif word.startswith(b"E"):
                self.fault, self.started = word[1:].decode("utf-8", "replace"), False

    def check_child(self) -> None:
        """Whether the child has ended; others are reaped on the way."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.ended = self.ended or "exit"
                return
            if pid == 0:
                return
            if pid == self.pid:
                self.exit_code = os.waitstatus_to_exitcode(status)
                self.ended = "signal" if self.exit_code < 0 else "exit"

    def check_limits(self) -> None:
        """Wall time always; sizes of folders on the disk, where no tmpfs limits them."""
        limits = self.plan.limits
        if time.monotonic() - self.began > limits.wall_s:
            self.ended = "time"
            return
        folders = [(f"{self.plan.base}/{name}", limits.disk) for name in self.plan.write]
        if self.plan.level == 2:
            folders.append((f"{self.plan.base}/scratch", limits.scratch))
        if any(folder_size(folder, limit) > limit for folder, limit in folders):
            self.ended = "size"

    def report(self, seconds: float, left: int) -> Report:
        """What is known at the end."""
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        ended = self.ended
        if not self.started and ended in {"exit", "signal"}:
            ended = "setup"
        data, why = (None, "not asked for")
        if self.plan.result and self.scratch is not None and ended == "exit":
            data, why = read_result(self.scratch, self.plan.result, self.plan.result_max)
        return Report(
            ended=ended,
            exit_code=self.exit_code,
            seconds=round(seconds, 3),
            cpu_s=round(used.ru_utime + used.ru_stime, 3),
            stdout=self.tails["out"].decode("utf-8", "replace"),
            stderr=self.tails["err"].decode("utf-8", "replace"),
            left_running=left,
            fault=self.fault
            or (self.tails["err"][-2000:].decode("utf-8", "replace").strip() if ended == "setup" else ""),
            result=None if data is None else base64.b64encode(data).decode(),
            result_fault=why,
        )


def _be_child(plan: Plan, channel: socket.socket, out: int, err: int) -> None:
    try:
        os.setsid()
        null = os.open("/dev/null", os.O_RDONLY)
        for handle, target in ((null, 0), (out, 1), (err, 2)):
            os.dup2(handle, target)
        if plan.level == 1:
            confine.start_bubblewrap(plan, channel)
        else:
            channel = confine.place(plan.keep, channel)
            confine.enter_landlocked(plan, channel)
    except BaseException as error:  # noqa: BLE001  # top of the child process: whatever it is, nothing may go on
        _fail(channel, error)


def _fail(channel: socket.socket, error: BaseException) -> None:
    confine.tell(channel, b"E" + f"{type(error).__name__}: {error}".encode()[:2000])
    os._exit(125)


def folder_size(folder: str, enough: int) -> int:
    """Bytes on the disk below a folder; stops once it is more than enough. Too many entries count as too much."""
    total = entries = 0
    for place, folders, files in os.walk(folder):
        entries += len(folders) + len(files)
        for name in files:
            try:
                total += os.lstat(f"{place}/{name}").st_blocks * 512
            except OSError:
                continue
        if total > enough or entries > _MAX_ENTRIES:
            return enough + 1
    return total


def read_result(folder: int, name: str, most: int) -> tuple[bytes | None, str]:
    """One named regular file, never through a link, never more than `most` bytes. Else None and why."""
    try:
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return None, f"{name} is missing"
    except OSError as error:
        return None, f"{name} is no regular file ({error.strerror})"
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            return None, f"{name} is no regular file of its own"
        if found.st_size > most:
            return None, f"{name} has {found.st_size} bytes, more than {most}"
        return os.read(handle, most + 1)[:most], ""
    finally:
        os.close(handle)


def end_all(uid: int | None, main: int, keeper: Keeper) -> int:
    """Kill and reap until nothing of the run is left; how many were left besides the main process."""
    left = -1
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        children = [pid for pid in _children() if pid != main]
        strangers = _of_user(uid) if uid is not None else set()
        if left < 0:
            left = len({*children, *strangers} - {main}) if keeper.plan.level == 2 else 0
        if uid is not None:
            _kill_user(uid)
        for pid in [*children, *([main] if keeper.exit_code is None else [])]:
            _kill(pid)
        if _reap(main, keeper) and not strangers:
            _sweep_shared_memory(uid)
            return max(left, 0)
        time.sleep(0.002)
    keeper.started = False
    keeper.fault = "processes of the sandbox could not be ended within 20 s"
    keeper.ended = "setup"
    return max(left, 0)


def _sweep_shared_memory(uid: int | None) -> None:
    """Semaphores and shared memory that the sandbox's own user left on level 2."""
    folder = Path(confine.SHARED_MEMORY)
    if uid is None or not folder.is_dir():
        return
    for entry in folder.iterdir():
        try:
            if entry.lstat().st_uid == uid and not entry.is_dir():
                entry.unlink()
        except OSError:
            continue


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _reap(main: int, keeper: Keeper) -> bool:
    """Reap what ended; true when no child is left."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True
        if pid == 0:
            return False
        if pid == main and keeper.exit_code is None:
            keeper.exit_code = os.waitstatus_to_exitcode(status)


def _processes(file: str) -> Iterator[tuple[int, str]]:
    """Every process of this machine with one of its `/proc` files; those that end meanwhile are left out."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                yield int(entry.name), (entry / file).read_text()
            except OSError:
                continue


def _children() -> list[int]:
    own = os.getpid()
    found = []
    for pid, stat_text in _processes("stat"):
        if int(stat_text.rpartition(")")[2].split()[1]) == own:
            found.append(pid)
    return found


def _of_user(uid: int) -> set[int]:
    return {pid for pid, lines in _processes("status") if f"\nUid:\t{uid}\t" in lines and "\nState:\tZ" not in lines}


def _kill_user(uid: int) -> None:
    """`kill -9 -1` as that user: in one call, so that a fork bomb can't outrun it."""
    helper = os.fork()
    if helper == 0:
        try:
            confine.become(uid)
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    os.waitpid(helper, 0)


def main() -> None:
    """`keep` outside, `inner` inside bubblewrap."""
    if sys.argv[1] == "inner":
        plan = Plan.from_json(sys.argv[3])
        channel = confine.place(plan.keep, socket.socket(fileno=int(sys.argv[2])))
        try:
            confine.enter_namespaced(plan, channel)
        except BaseException as error:  # noqa: BLE001  # top of the process: whatever it is, nothing may go on
            _fail(channel, error)
    plan = Plan.from_json(sys.stdin.buffer.readline().decode())
    report = Keeper(plan).run()
    sys.stdout.write(report.to_json())
    sys.stdout.flush()
