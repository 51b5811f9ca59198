"""Room: gymnode.remote. Landlock through the raw system calls: which files, devices and ports a process may use.

Numbers from linux/landlock.h (calls 444, 445, 446 on every architecture).
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from typing import Any, Dict, List

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_VERSION_FLAG = 1
_RULE_PATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_NET_ALL = 3
_SCOPE_ABSTRACT_UNIX, _SCOPE_SIGNAL = 1, 2

_LIBC = ctypes.CDLL(None, use_errno=True)


def landlock_abi() -> int:
    """The kernel's Landlock version, 0 where it has none."""
    return max(0, int(_LIBC.syscall(_CREATE, None, 0, _VERSION_FLAG)))


def handled_rights(abi: int) -> int:
    """All file rights that this version knows."""
    rights = (1 << 13) - 1
    for version, right in ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEV)):
        if abi >= version:
            rights |= right
    return rights


def landlock_restrict(plan: Dict[str, Any]) -> int:
    """Confine this process for good. `plan` {read: [paths], write: [paths], devices: [paths], network: bool}.

    Returns the version in force. Raises OSError when the kernel refuses.
    """
    abi = landlock_abi()
    if abi < 1:
        raise OSError(95, "this kernel has no Landlock")
    rights = handled_rights(abi)
    ruleset = _create(abi, rights, network=bool(plan["network"]))
    for paths, allowed in (
        (plan["read"], _READ),
        (plan["write"], rights & ~_IOCTL_DEV),
        (plan["devices"], _READ_FILE | _WRITE_FILE | _READ_DIR | _IOCTL_DEV),
    ):
        _allow(ruleset, paths, allowed & rights)
    if _LIBC.syscall(_RESTRICT, ruleset, 0) != 0:
        raise OSError(ctypes.get_errno(), "Landlock can't be put in force")
    os.close(ruleset)
    return abi


def _create(abi: int, rights: int, *, network: bool) -> int:
    fields = [rights]
    if abi >= 4:
        fields.append(0 if network else _NET_ALL)
    if abi >= 6:
        fields.append(_SCOPE_ABSTRACT_UNIX | _SCOPE_SIGNAL)
    attribute = struct.pack(f"<{len(fields)}Q", *fields)
    ruleset = int(_LIBC.syscall(_CREATE, attribute, len(attribute), 0))
    if ruleset < 0:
        raise OSError(ctypes.get_errno(), "no Landlock ruleset can be made")
    return ruleset


def _allow(ruleset: int, paths: List[str], rights: int) -> None:
    for path in paths:
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue  # what this machine doesn't have needs no rule
        allowed = rights if stat.S_ISDIR(os.fstat(fd).st_mode) else rights & _FILE_RIGHTS
        attribute = struct.pack("<Qi", allowed, fd)
        result = _LIBC.syscall(_ADD_RULE, ruleset, _RULE_PATH, attribute, 0)
        code = ctypes.get_errno()
        os.close(fd)
        if result != 0:
            raise OSError(code, f"no Landlock rule for {path}")
