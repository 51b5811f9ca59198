"""Keeps a list of processes running: starts them in order, restarts what dies, ends all together. Knows no Django.

Every process is a child of one supervisor and dies with it, also when the supervisor itself is killed (parent-death
signal), so nothing is left behind that holds a port or a database.
"""

import ctypes
import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

logger = logging.getLogger(__name__)
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)
_SLOWEST_RESTART_S = 5.0
_STEADY_S = 10.0


@dataclass(frozen=True)
class Program:
    """One process to keep running.

    `ready` blocks until the process serves (it may raise); `stop_signal` asks it to end; `uid` is the numeric user it
    runs as, None for the supervisor's own.
    """

    name: str
    command: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    ready: Callable[[subprocess.Popen[bytes]], None] | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    uid: int | None = None
    prepare: Callable[[], object] | None = None


@dataclass
class _Kept:
    program: Program
    process: subprocess.Popen[bytes]
    started: float
    fails: int = 0
    due: float | None = None


def _die_with_parent(stop: signal.Signals) -> Callable[[], None]:
    def before_exec() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, int(stop), 0, 0, 0)

    return before_exec


@dataclass
class Supervisor:
    """Runs programs, output in `logs`/NAME.log. For the main thread: the parent-death signal is a thread's."""

    logs: Path
    say: Callable[[str], None]
    _kept: dict[str, _Kept] = field(default_factory=dict)
    _stopping: bool = False

    def start(self, program: Program) -> None:
        """Start `program` and wait until it is ready. Raises what its `ready` raises."""
        self._kept[program.name] = _Kept(program, self._spawn(program), time.monotonic())
        if program.ready:
            program.ready(self._kept[program.name].process)

    def pids(self) -> dict[str, int]:
        """Process id of every program, by name."""
        return {name: kept.process.pid for name, kept in self._kept.items()}

    def watch(self, on_change: Callable[[dict[str, int]], None], until: Callable[[], bool] = lambda: False) -> None:
        """Restart what dies until a signal asks to stop, or `until` says so. Blocks."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)
        while not self._stopping and not until():
            changed = [kept.program.name for kept in self._kept.values() if self._look(kept)]
            if changed:
                on_change(self.pids())
            time.sleep(0.1)

    def stop(self) -> None:
        """End every program, the last started first; what doesn't end within its time is killed."""
        for kept in reversed(list(self._kept.values())):
            if kept.process.poll() is None:
                kept.process.send_signal(kept.program.stop_signal)
        deadline = time.monotonic() + 12
        for kept in reversed(list(self._kept.values())):
            try:
                kept.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                logger.warning("%s did not end when asked and was killed", kept.program.name)
                os.killpg(kept.process.pid, signal.SIGKILL)
                kept.process.wait()
        self._kept.clear()

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._stopping = True

    def _look(self, kept: _Kept) -> bool:
        now = time.monotonic()
        if kept.due is None:
            status = kept.process.poll()
            if status is None:
                return False
            kept.fails = 0 if now - kept.started > _STEADY_S else kept.fails + 1
            kept.due = now + min(_SLOWEST_RESTART_S, 0.1 * 2**kept.fails if kept.fails else 0.0)
            self.say(
                f"{kept.program.name} ended ({_why(status)}); it is started again, its log: {self._log(kept.program)}"
            )
        if now < kept.due:
            return False
        kept.process, kept.started, kept.due = self._spawn(kept.program), now, None
        return True

    def _log(self, program: Program) -> Path:
        return self.logs / f"{program.name}.log"

    def _spawn(self, program: Program) -> subprocess.Popen[bytes]:
        if program.prepare:
            program.prepare()
        user: dict[str, Any] = {}
        if program.uid is not None and os.geteuid() == 0:
            user = {"user": program.uid, "group": program.uid, "extra_groups": []}
        with self._log(program).open("ab") as out:
            return subprocess.Popen(
                program.command,
                cwd=program.cwd,
                env=dict(program.env),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                preexec_fn=_die_with_parent(program.stop_signal),  # noqa: PLW1509  one thread, one libc call
                **user,
            )


def _why(status: int) -> str:
    return f"signal {signal.Signals(-status).name}" if status < 0 else f"exit {status}"
