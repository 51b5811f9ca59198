"""Room: gymnode.remote. What a keeper does to itself before it starts anything: user, Landlock, seccomp, shield.

The order is fixed: limits, user change, no-new-privileges, Landlock, seccomp.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
from pathlib import Path
from typing import Any, Dict

from gymnode.remote.landlock import landlock_restrict
from gymnode.remote.seccomp import seccomp_install

PR_SET_DUMPABLE = 4
PR_SET_NO_NEW_PRIVS = 38
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
MOST_PROCESSES = 16_384

_LIBC = ctypes.CDLL(None, use_errno=True)


def process_restrict(plan: Dict[str, Any]) -> Dict[str, Any]:
    """Apply `plan` {uid, gid, landlock: null | {...}, seccomp: null | "inside" | "strict", file_gb: null | number} for
    good. Raises OSError.
    """
    _LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    facts: Dict[str, Any] = {"pid": os.getpid()}
    _limit_processes()
    _die_first()
    if plan.get("file_gb"):
        _limit(resource.RLIMIT_FSIZE, int(plan["file_gb"] * 10**9))
    if plan.get("uid") is not None:
        os.setgroups([])
        os.setresgid(plan["gid"], plan["gid"], plan["gid"])
        os.setresuid(plan["uid"], plan["uid"], plan["uid"])
    if plan.get("landlock") or plan.get("seccomp"):
        _check(_LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    if plan.get("landlock"):
        facts["landlock_abi"] = landlock_restrict(plan["landlock"])
    if plan.get("seccomp"):
        facts["seccomp"] = seccomp_install(strict=plan["seccomp"] == "strict")
    return facts


def _limit_processes() -> None:
    """A run that forks without end runs into its own wall, not the machine's: gymd can still look and kill."""
    try:
        room = int(Path("/proc/sys/kernel/pid_max").read_text()) // 2
    except (OSError, ValueError):
        room = MOST_PROCESSES
    _limit(resource.RLIMIT_NPROC, min(MOST_PROCESSES, room))


def _die_first() -> None:
    """Where memory runs out the kernel takes the run's processes, not gymd or whatever else the machine is for."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _limit(kind: int, most: int) -> None:
    """Never above what is in force already."""
    _soft, hard = resource.getrlimit(kind)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (most, most))


def process_shield() -> None:
    """No other process of the same user may read or trace this one."""
    _check(_LIBC.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), "undumpable")


def _check(result: int, what: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{what} can't be set")
