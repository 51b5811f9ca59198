"""Room: evaluator. Solvers: submitted code, each world in a sandbox of its own beside the scoring one.

evaluate.py inherits descriptor 3, the control, and one stream socket per world from 4 on. A byte N on the control
starts world N: a fresh sandbox with the submission and the public runner, and the other end of that world's socket, as
its descriptor 3, as the only way out. When a world has ended, a line of JSON on the control says how. A sandbox that
can't be set up fails the whole scoring; whatever else happens to a solver is its own.
"""

from __future__ import annotations

import json
import shutil
import socket
import threading
from pathlib import Path

from evaluator.fields import Solvers
from evaluator.sandbox import Ended, Job, Sandbox
from evaluator.taskenv import THREADS

MAX_WORLDS = 64
_GRACE_S = 30


class SolverHost:
    """The control and the sockets of one scoring. Use as a context; `handles` are for evaluate.py's sandbox."""

    def __init__(self, sandbox: Sandbox, rule: Solvers, *, entry: Path, runner: Path) -> None:
        self.sandbox = sandbox
        self.rule = rule
        self.entry = entry
        self.runner = runner
        self.control, self.their_control = socket.socketpair()
        self.worlds = [socket.socketpair() for _ in range(rule.count)]
        self.threads: list[threading.Thread] = []
        self.lock = threading.Lock()
        self.fault = ""

    @property
    def handles(self) -> tuple[int, ...]:
        """What evaluate.py inherits, in this order from descriptor 3 on."""
        return (self.their_control.fileno(), *(theirs.fileno() for theirs, _ in self.worlds))

    def __enter__(self) -> SolverHost:
        self._spawn(self._listen)
        return self

    def release(self) -> None:
        """The sandbox has its copies: ours would keep the sockets open when it ends."""
        self.their_control.close()
        for pair in self.worlds:
            pair[0].close()

    def __exit__(self, *_: object) -> None:
        self.release()
        self.control.shutdown(socket.SHUT_RDWR)
        for ours in (pair[1] for pair in self.worlds):
            ours.close()
        for thread in self.threads:
            thread.join(self.rule.seconds + _GRACE_S)
        self.control.close()

    def _spawn(self, call: object, *arguments: int) -> None:
        thread = threading.Thread(target=call, args=arguments, daemon=True)  # type: ignore[arg-type]
        self.threads.append(thread)
        thread.start()

    def _listen(self) -> None:
        started: set[int] = set()
        while True:
            try:
                asked = self.control.recv(1)
            except OSError:
                return
            if not asked:
                return
            world = asked[0]
            if world < self.rule.count and world not in started:
                started.add(world)
                self._spawn(self._solve, world)

    def _solve(self, world: int) -> None:
        ours = self.worlds[world][1]
        base = self.sandbox.folder()
        try:
            (base / "solver").mkdir()
            shutil.copyfile(self.entry, base / "solver" / self.entry.name)
            shutil.copyfile(self.runner, base / "solver" / "runner.py")
            ran = self.sandbox.run(self._job(base, ours.fileno()))
        except (OSError, RuntimeError) as error:
            self._say(world, Ended.SETUP, None, f"{type(error).__name__}: {error}")
            return
        finally:
            ours.close()
            self.sandbox.discard(base)
        self._say(world, ran.ended, ran.exit_code, ran.fault)

    def _job(self, base: Path, handle: int) -> Job:
        python = str(self.sandbox.env.python)
        return Job(
            base=base,
            argv=(python, "-I", "-B", "{solver}/runner.py", f"{{solver}}/{self.entry.name}"),
            env={"NANO_MODEL_FD": "3", **THREADS},
            read=("solver",),
            memory_mb=self.rule.memory_mb,
            seconds=self.rule.seconds,
            processes=9,
            scratch_mb=1,
            keep=(handle,),
        )

    def _say(self, world: int, ended: Ended, code: int | None, fault: str) -> None:
        with self.lock:
            if ended is Ended.SETUP:
                self.fault = self.fault or f"the solver sandbox of world {world} could not be set up: {fault}"
            line = json.dumps({"world": world, "ended": ended, "exit_code": code}) + "\n"
            try:
                self.control.sendall(line.encode())
            except OSError:
                return  # evaluate.py is gone
