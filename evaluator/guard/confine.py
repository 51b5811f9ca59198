"""Room: evaluator.guard. What a process does to itself before it becomes the scored program. Standard library only.

The order matters (each line was measured): session, limits, ruleset, own user, no_new_privs, Landlock, seccomp,
descriptors, exec.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import resource
import signal
import socket
from pathlib import Path

from evaluator.guard import landlock, seccomp
from evaluator.guard.plan import Limits, Plan

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS, PR_SET_CHILD_SUBREAPER = 1, 4, 38, 36
DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
SHARED_MEMORY = "/dev/shm"  # noqa: S108  # where the C library makes semaphores, on every Linux
_WRITABLE_DEVICES = ("/dev/null", "/dev/zero")
_CLONE_NEWNS, _MS_BIND, _MS_REC, _MS_PRIVATE = 0x20000, 4096, 16384, 1 << 18
CONFINED = "/guard"
BOOT = "import sys; sys.path.insert(0, sys.argv.pop(1)); from evaluator.guard.keeper import main; main()"

_libc = ctypes.CDLL(None, use_errno=True)


class SetupFailed(Exception):
    """The sandbox can't be set up; nothing of the scored program has run."""


def prctl(option: int, value: int) -> None:
    """One prctl with one argument. Raises OSError."""
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl {option} failed")


def tell(channel: socket.socket, word: bytes, handle: int | None = None) -> None:
    """One message to the keeper: S (with the scratch folder), X (about to exec), E (failed, with the reason)."""
    if handle is None:
        channel.send(word)
    else:
        socket.send_fds(channel, [word], [handle])


def set_limits(limits: Limits, *, other_processes: int) -> None:
    """rlimits of this process and all it starts. `other_processes`: how many its user has already."""
    wanted = {
        resource.RLIMIT_AS: limits.memory,
        resource.RLIMIT_CPU: limits.cpu_s,
        resource.RLIMIT_FSIZE: max(limits.scratch, limits.disk),
        resource.RLIMIT_NOFILE: limits.files,
        resource.RLIMIT_NPROC: limits.processes + other_processes,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MSGQUEUE: 0,
    }
    for kind, value in wanted.items():
        _, hard = resource.getrlimit(kind)
        most = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (most, most))


def become(uid: int) -> None:
    """Change to the sandbox's own user, for good."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def _close_rest(keep: set[int]) -> None:
    for handle in range(3, 4096):
        if handle not in keep:
            try:
                os.close(handle)
            except OSError:
                continue


def place(keep: list[int], channel: socket.socket) -> socket.socket:
    """Put the kept descriptors at 3, 4, ..., the channel above them, and close all others."""
    above = 3 + len(keep)
    high = [fcntl.fcntl(handle, fcntl.F_DUPFD_CLOEXEC, above) for handle in (*keep, channel.fileno())]
    for number, handle in enumerate(high[:-1], 3):
        os.dup2(handle, number, inheritable=True)
    channel.detach()
    _close_rest({*range(3, above), high[-1]})
    return socket.socket(fileno=high[-1])


def _exec(plan: Plan) -> None:
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores both; the next program shall not
        signal.signal(number, signal.SIG_DFL)
    os.chdir(plan.cwd)
    os.execve(plan.argv[0], plan.argv, plan.env)  # noqa: S606  # a list, never a shell line


def enter_namespaced(plan: Plan, channel: socket.socket) -> None:
    """Level 1, inside bubblewrap: hand the scratch folder out, take the limits and the filter, become the program."""
    handle = os.open("/scratch", os.O_PATH | os.O_DIRECTORY)
    tell(channel, b"S", handle)
    os.close(handle)
    os.umask(0o077)
    set_limits(plan.limits, other_processes=2)
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    seccomp.install(signals=True)
    tell(channel, b"X")
    _exec(plan)


def enter_landlocked(plan: Plan, channel: socket.socket) -> None:
    """Level 2: no namespaces. Landlock and seccomp do the walls."""
    scratch = f"{plan.base}/scratch"
    handle = os.open(scratch, os.O_PATH | os.O_DIRECTORY)
    tell(channel, b"S", handle)
    os.close(handle)
    os.umask(0o077)
    own_user = plan.uid is not None
    set_limits(plan.limits, other_processes=0 if own_user else processes_of(os.getuid()))
    ruleset = landlock.Ruleset()
    _allow(ruleset, plan, scratch)
    if plan.uid is not None:
        become(plan.uid)
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # after the change of user, which clears it
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    ruleset.restrict_self()
    seccomp.install(signals=own_user or ruleset.abi >= 6)
    tell(channel, b"X")
    _exec(plan)


def _allow(ruleset: landlock.Ruleset, plan: Plan, scratch: str) -> None:
    for tree in plan.trees:
        ruleset.allow(tree, landlock.RUN)
    for device in DEVICES:
        writable = landlock.WRITE_FILE if device in _WRITABLE_DEVICES else 0
        ruleset.allow(device, landlock.READ_FILE | writable)
    if plan.uid is not None and Path(SHARED_MEMORY).is_dir():  # others' semaphores are shut by their modes
        ruleset.allow(SHARED_MEMORY, landlock.full_access(ruleset.abi))
    for name in plan.read:
        ruleset.allow(f"{plan.base}/{name}", landlock.RUN)
    for path in (scratch, *(f"{plan.base}/{name}" for name in plan.write)):
        ruleset.allow(path, landlock.full_access(ruleset.abi))


def processes_of(uid: int) -> int:
    """How many threads this user has now, as RLIMIT_NPROC counts them."""
    count = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if entry.stat().st_uid == uid:
                    count += len(list((entry / "task").iterdir()))
            except OSError:
                continue
    return count


def start_bubblewrap(plan: Plan, channel: socket.socket) -> None:
    """Level 1, outside: bind what the own user can't reach, change user, become bubblewrap."""
    os.umask(0o022)  # the stage must let the own user through
    moved = dict(_stage(plan)) if plan.staged else {}
    os.umask(0o077)
    if plan.uid is not None:
        become(plan.uid)
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    channel.set_inheritable(True)
    for handle in plan.keep:
        os.set_inheritable(handle, True)
    _close_rest({channel.fileno(), *plan.keep})
    program = _moved(plan.bwrap, moved)
    os.execve(program, [program, *_bubblewrap_arguments(plan, channel.fileno(), moved)], {})  # noqa: S606  # as above


def _stage(plan: Plan) -> list[tuple[str, str]]:
    """In a mount namespace of our own: bind sources below folders that only root may enter to a place others reach."""
    if _libc.unshare(_CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "unshare of the mount namespace")
    _mount(b"none", b"/", _MS_REC | _MS_PRIVATE)
    for source, place in plan.staged:
        Path(place).mkdir(mode=0o711, parents=True, exist_ok=True)
        _mount(os.fsencode(source), os.fsencode(place), _MS_BIND | _MS_REC)
    return [(source, place) for source, place in plan.staged]


def _mount(source: bytes, target: bytes, flags: int) -> None:
    if _libc.mount(source, target, None, ctypes.c_ulong(flags), None) != 0:
        raise OSError(ctypes.get_errno(), f"mount of {os.fsdecode(target)}")


def _moved(path: str, moved: dict[str, str]) -> str:
    for source, place in moved.items():
        if path == source or path.startswith(source + "/"):
            return place + path[len(source) :]
    return path


def _bubblewrap_arguments(plan: Plan, channel: int, moved: dict[str, str]) -> list[str]:
    out = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-net", "--unshare-uts"]
    out += ["--unshare-cgroup-try", "--die-with-parent", "--cap-drop", "ALL", "--hostname", "sandbox"]
    for tree in plan.trees:
        out += ["--ro-bind", _moved(tree, moved), tree]
    for path, target in plan.links:
        out += ["--symlink", target, path]
    for device in DEVICES:
        out += ["--dev-bind", device, device]
    out += ["--perms", "1777", "--size", str(plan.limits.scratch), "--tmpfs", SHARED_MEMORY]
    for name in plan.read:
        out += ["--ro-bind", f"{plan.base}/{name}", f"/{name}"]
    for name in plan.write:
        out += ["--bind", f"{plan.base}/{name}", f"/{name}"]
    out += ["--ro-bind", f"{plan.base}/.guard", CONFINED]
    out += ["--perms", "0700", "--size", str(plan.limits.scratch), "--tmpfs", "/scratch"]
    out += ["--remount-ro", "/", "--chdir", "/scratch", "--"]
    inner = [plan.python, "-I", "-S", "-B", "-c", BOOT, CONFINED, "inner", str(channel), plan.to_json()]
    return [*out, *inner]
