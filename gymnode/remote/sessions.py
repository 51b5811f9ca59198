"""Room: gymnode.remote. One session: a shell on a terminal, its log, its current job. Lives in gymd, outside the run.

All in the loop's thread. `Session` reads the terminal and the status pipe and knows exactly when a job ends; it never
guesses from silence.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import termios
import time
from collections import deque
from pathlib import Path
from typing import Any, Callable, Deque, Dict, Iterator, List, Tuple

from gymnode.remote.appending import line_append
from gymnode.remote.commands import DrainFilter, Job, command_short, job_line, report_parse
from gymnode.remote.keepers import Spawned
from gymnode.remote.keyboard import Keyboard
from gymnode.remote.logs import DEFAULT_CAP, SessionLog
from gymnode.remote.loop import Loop
from gymnode.remote.masking import Masker
from gymnode.remote.refusals import Refusal
from gymnode.remote.sweeping import inner_pid, signal_send
from gymnode.remote.terminals import foreground_group, input_flush

READ_SIZE = 65536
READS_PER_TURN = 4
DRAIN_LIMIT_S = 2.0
HOLD_S = 0.2
MAX_INDEX = 20_000
INDEX_STEP_S = 0.25
MEMORY = "session.jsonl"

Note = Callable[..., None]
Waiter = Callable[[Job], None]


class Session:
    """State of one session. `state` is idle, busy, closed or lost."""

    def __init__(self, loop: Loop, name: str, folder: Path, masker: Masker, note: Note) -> None:
        self._loop, self._note, self._masker, self._folder = loop, note, masker, folder
        self.name = name
        self.log = SessionLog(folder / "log", int(os.environ.get("GYMD_LOG_CAP", DEFAULT_CAP)))
        self.job: Job | None = None
        self.pid, self.inner, self.master = 0, 0, -1
        self.read_mark = 0
        self.last_output_at: float | None = None
        self.dead = ""
        self.cwd = ""
        self.end_told = ""  # the folder that an answer gave with the word that the shell ended
        self._last_status = 0
        self._commands_fd, self._status_fd, self._memory_fd = -1, -1, -1
        self._status_buffer = b""
        self._outbox = bytearray()
        self._drain = DrainFilter()
        self._reported: int | None = None
        self._waiters: List[Waiter] = []
        self._index: Deque[Tuple[float, int]] = deque(maxlen=MAX_INDEX)
        self._termios: List[Any] | None = None
        self.keyboard = Keyboard(loop)

    @property
    def state(self) -> str:
        """idle, busy, closed or lost."""
        if self.dead:
            return self.dead
        return "busy" if self.job is not None and self.job.state == "running" else "idle"

    # --- the shell's life

    def attach(self, spawned: Spawned, commands_fd: int, status_fd: int) -> None:
        """The shell runs: take its descriptors and give it its first lines."""
        assert spawned.master is not None
        self.pid, self.inner, self.master, self.dead = spawned.pid, spawned.inner, spawned.master, ""
        self._commands_fd, self._status_fd = commands_fd, status_fd
        for fd in (self.master, commands_fd, status_fd):
            os.set_blocking(fd, False)
        self._drain, self._status_buffer, self._last_status = DrainFilter(), b"", 0
        self._outbox = bytearray(b"set +H +o history; unset HISTFILE; PS1=; PS2=\n")
        self._termios = _terminal_prepare(self.master)
        self.keyboard.attach(self.master)
        self._loop.watch(self.master, self._on_terminal, control=False, on_fault=self.abandon)
        self._loop.watch(status_fd, self._on_status, on_fault=self.abandon)
        self._write_commands()

    def shell_ended(self, wait_status: int) -> None:
        """The shell itself is gone (exit, exec, killed): its status is the job's."""
        self._drain_terminal()
        self._show(self._drain.release())
        code = os.WEXITSTATUS(wait_status) if os.WIFEXITED(wait_status) else 128 + os.WTERMSIG(wait_status)
        self.dead = "closed"
        self._detach()
        if self.job is not None and self.job.state == "running":
            self._job_end("exited" if os.WIFEXITED(wait_status) else "killed", code)
        self._flush_held()
        self._note("session_closed", self.name)

    def lost(self) -> None:
        """The isolation, or gymd's memory of it, is gone."""
        self.dead = "lost"
        self._detach()
        if self.job is not None and self.job.state == "running":
            self._job_end("lost", None)
        self._note("session_closed", self.name)

    def abandon(self) -> None:
        """gymd can't follow this session any more: it ends, with its shell."""
        if not self.dead:
            signal_send(self.pid, signal.SIGKILL)
            self.lost()

    def _detach(self) -> None:
        self.keyboard.stop("the shell ended")
        for fd in (self.master, self._status_fd, self._commands_fd):
            if fd >= 0:
                self._loop.unwatch(fd)
                os.close(fd)
        self.master = self._status_fd = self._commands_fd = -1
        self._forget_memory_fd()
        self.log.close()

    def _forget_memory_fd(self) -> None:
        if self._memory_fd >= 0:
            os.close(self._memory_fd)
            self._memory_fd = -1

    # --- jobs

    def job_start(self, job_id: str, command: str) -> Job:
        """Hand a command to the shell. Raises Refusal when one runs already or the command can't be given."""
        if self.job is not None and self.job.state == "running":
            running = self.job.command if len(self.job.command) < 80 else self.job.command[:77] + "..."
            raise Refusal(
                "session_busy",
                f"session {self.name} is busy since {time.time() - self.job.started_at:.0f} s with: {running}"
                " - use another session, wait for it, or kill its processes",
            )
        job = Job(job_id, command, start_offset=self.log.total)
        line = job_line(job, self._last_status)
        self._terminal_reset()
        self.job, self._reported = job, None
        self._drain.expect(job.drain_mark)
        self._outbox += line
        self._remember()
        self._write_commands()
        return job

    def on_job_end(self, waiter: Waiter) -> None:
        """Call `waiter(job)` once when the current job ends."""
        self._waiters.append(waiter)

    def forget_waiter(self, waiter: Waiter) -> None:
        """Undo `on_job_end`."""
        if waiter in self._waiters:
            self._waiters.remove(waiter)

    def _terminal_reset(self) -> None:
        """Stale input and a mode a killed program left behind aren't the next job's."""
        try:
            self.keyboard.stop("another command began")
            input_flush(self.master)
            self.keyboard.forget_line()
            if self._termios is not None and termios.tcgetattr(self.master)[:4] != self._termios[:4]:
                termios.tcsetattr(self.master, termios.TCSANOW, self._termios)
        except (termios.error, OSError):
            return

    def _job_end(self, state: str, code: int | None) -> None:
        assert self.job is not None
        self.keyboard.stop("the command ended")
        self._flush_held()
        self.job.end(state, code, self.log.total)
        self._last_status = code or 0
        self._remember()
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter(self.job)
        self._note("job_ended", self.name, job=self.job.id, state=state, exit_code=code)

    def _remember(self) -> None:
        """On disk, for a gymd that has to tell what was lost."""
        facts = self.job.facts() if self.job else None
        if facts is not None and self.job is not None:
            # Masked before it is cut: half of a secret would pass.
            whole = self._masker.whole(self.job.command.encode("utf-8", "surrogateescape"))
            facts["command"] = command_short(whole.decode("utf-8", "replace"))
        entry = {"session": self.name, "dead": self.dead, "job": facts}
        # Appended to a file that stays open: truncating one costs milliseconds, twice per command.
        with contextlib.suppress(OSError):  # a full disk loses what is told after a restart, never the session
            if self._memory_fd < 0:
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
                self._memory_fd = os.open(self._folder / MEMORY, flags, 0o600)
            line_append(self._memory_fd, json.dumps(entry).encode() + b"\n")
        if self.dead:
            self._forget_memory_fd()

    def remember(self) -> None:
        """Write the session's state to disk."""
        self._remember()

    def revive(self) -> bool:
        """Take over what an earlier gymd wrote: an open session is lost now. False for one that had been closed."""
        try:
            *_others, entry = _lines_read(self._folder / MEMORY)
        except (OSError, ValueError):
            return False
        if entry["dead"] == "closed":
            return False
        self.dead = "lost"
        if entry["job"] is not None:
            self.job = Job(entry["job"]["id"], entry["job"]["command"], start_offset=self.log.total)
            self.job.restore(entry["job"])
        return True

    # --- descriptors

    def _write_commands(self) -> None:
        try:
            while self._outbox:
                written = os.write(self._commands_fd, self._outbox[:65536])
                del self._outbox[:written]
        except BlockingIOError:
            self._loop.later(0.005, self._write_commands)
        except OSError:
            self._outbox.clear()  # the shell is gone; its end is on its way

    def _on_status(self, _events: int) -> None:
        try:
            data = os.read(self._status_fd, 4096)
        except BlockingIOError:
            return
        if not data:
            self._loop.unwatch(self._status_fd)
            return
        lines = (self._status_buffer + data).split(b"\n")
        self._status_buffer = lines.pop()[-256:]
        for line in lines:
            if self.job is not None and self.job.state == "running":
                code = report_parse(line, self.job.nonce)
                if code is not None:
                    self._reported = code
        if self._reported is not None:
            self._drain_terminal()
            if self._drain.seen:
                self._finish_reported(self.job)
            elif self._reported is not None:
                job = self.job
                self._loop.later(DRAIN_LIMIT_S, lambda: self._finish_reported(job))

    def _on_terminal(self, events: int) -> None:
        if not events & select.EPOLLIN:
            self._loop.unwatch(self.master)  # hung up: nobody has the terminal open; the shell's end follows
            return
        self._drain_terminal(READS_PER_TURN)

    def _drain_terminal(self, reads: int = 1000) -> None:
        for _turn in range(reads):
            if self.master < 0:
                return
            try:
                data = os.read(self.master, READ_SIZE)
            except (BlockingIOError, OSError):
                return
            if not data:
                return
            self._show(self._drain.feed(data))
            if self._drain.seen and self._reported is not None:
                self._finish_reported(self.job)
                return

    def _finish_reported(self, job: Job | None) -> None:
        if job is not self.job or self._reported is None or self.job is None:
            return
        code, self._reported = self._reported, None
        self.where()  # a shell that ends is replaced by one that starts here
        self._show(self._drain.release())
        killed = self.job.ended_for_good or (self.job.kill_asked and code >= 128)
        self._job_end("killed" if killed else "exited", code)

    # --- output

    def _show(self, data: bytes) -> None:
        if not data:
            return
        shown = self._masker.feed(data)
        if self._masker.holding:
            self._loop.later(HOLD_S, self._flush_held)
        self._append(shown)

    def _flush_held(self) -> None:
        if self._masker.holding:
            self._append(self._masker.flush())

    def _append(self, data: bytes) -> None:
        if not data:
            return
        now = time.time()
        self.last_output_at = now
        if not self._index or now - self._index[-1][0] >= INDEX_STEP_S:
            self._index.append((now, self.log.total))
        try:
            self.log.append(data)
        except OSError:
            return  # a full disk loses output, never the session
        self._note("output", self.name, total=self.log.total)

    def tell(self, text: str) -> None:
        """A line of gymd's own among the output."""
        self._flush_held()
        self._append(f"\r\n[{text}]\r\n".encode())

    def offset_at(self, moment: float) -> int:
        """The log's length at a time (epoch seconds), to a quarter of a second, never too late."""
        offset = self.log.total
        for at, start in reversed(self._index):
            if at + INDEX_STEP_S < moment:
                break
            offset = start
        return offset

    # --- signals

    def interrupt(self) -> None:
        """What Ctrl-C does: SIGINT to the foreground group; also ends a loop in the shell itself."""
        group = foreground_group(self.master)
        if group > 1:
            try:
                os.killpg(group, signal.SIGINT)
            except (ProcessLookupError, PermissionError):
                return

    def where(self) -> str:
        """The shell's working directory, as the run sees it."""
        try:
            if self.pid and not self.dead:
                self.cwd = os.readlink(f"/proc/{self.pid}/cwd")  # noqa: PTH115 - Path.readlink is 3.9
        except OSError:
            return self.cwd
        return self.cwd

    def inner_pids(self, pids: List[int]) -> Dict[int, int]:
        """gymd's process ids to the run's own."""
        return {pid: inner_pid(pid) for pid in pids}


def _terminal_prepare(master: int) -> List[Any]:
    """Set and return the mode each job begins with: as it comes, but Ctrl-S, which nobody would undo, stops nothing."""
    mode = termios.tcgetattr(master)
    mode[0] &= ~termios.IXON
    termios.tcsetattr(master, termios.TCSANOW, mode)
    return mode


def _lines_read(path: Path) -> Iterator[Dict[str, Any]]:
    """Every line of the file that is whole."""
    for line in path.read_bytes().splitlines():
        with contextlib.suppress(ValueError):
            yield json.loads(line)


def pipe_wide() -> Tuple[int, int]:
    """A pipe that holds a long command line."""
    read_end, write_end = os.pipe2(os.O_CLOEXEC)
    try:
        fcntl.fcntl(write_end, 1031, 1024 * 1024)  # F_SETPIPE_SZ; the default size does as well
    except OSError:
        return read_end, write_end
    return read_end, write_end
