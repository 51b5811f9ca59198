"""Room: gymnode.remote. The system-call filter of a run, as a classic BPF program built here.

`inside` is used where namespaces isolate already and closes what they leave open (io_uring, bpf, nested namespaces,
keyrings, tracing ...). `strict` adds what only namespaces would hold back: sockets, SysV and POSIX message queues and
scheduling of other processes. Socket pairs (streams) stay usable, so pipes and multiprocessing work.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from typing import Dict, List, Tuple

_PR_SET_SECCOMP = 22
_MODE_FILTER = 2
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_LOAD, _JUMP_EQ, _JUMP_GE, _JUMP_SET, _RETURN, _AND = 0x20, 0x15, 0x35, 0x45, 0x06, 0x54
_ARGUMENT = 16
_NEW_NAMESPACES = 0x7E020000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_S_IFMT, _S_IFCHR, _S_IFBLK = 0o170000, 0o020000, 0o060000
_SOCK_DGRAM = 2
_X32_BIT = 0x40000000

# One name: (number on x86-64, number on arm64); -1 where the architecture has no such call.
_REFUSED: Dict[str, Tuple[int, int]] = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467), "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "pidfd_send_signal": (424, 424),
    "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "kexec_load": (246, 104), "kexec_file_load": (320, 294), "reboot": (169, 142),
    "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    "syslog": (103, 116), "vhangup": (153, 58), "lookup_dcookie": (212, 18), "process_madvise": (440, 440),
}  # fmt: skip
_REFUSED_STRICT: Dict[str, Tuple[int, int]] = {
    "socket": (41, 198), "connect": (42, 203), "bind": (49, 200),
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195),
    "semget": (64, 190), "semop": (65, 193), "semctl": (66, 191), "semtimedop": (220, 192),
    "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187),
    "mq_open": (240, 180), "mq_unlink": (241, 181),
}  # fmt: skip
_CHECKED: Dict[str, Tuple[int, int]] = {
    "clone": (56, 220), "clone3": (435, 435), "ioctl": (16, 29), "mknod": (133, -1), "mknodat": (259, 33),
    "socketpair": (53, 199), "sched_setaffinity": (203, 122), "prlimit64": (302, 261),
}  # fmt: skip
_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

Instruction = Tuple[int, int, int, int]


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def seccomp_install(*, strict: bool) -> str:
    """Put the filter in force for this process and all it starts. Raises OSError. Needs no-new-privileges."""
    code = b"".join(struct.pack("<HBBI", *one) for one in filter_build(os.uname().machine, strict=strict))
    buffer = ctypes.create_string_buffer(code)
    program = _Program(len(code) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the system-call filter can't be put in force")
    return "strict" if strict else "inside"


def filter_build(machine: str, *, strict: bool) -> List[Instruction]:
    """The program for one architecture. Raises OSError for one without a table."""
    if machine not in _ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"no system-call table for {machine}")
    column, audit = _ARCHITECTURES[machine]
    refused = {**_REFUSED, **(_REFUSED_STRICT if strict else {})}
    program: List[Instruction] = [(_LOAD, 0, 0, 4), (_JUMP_EQ, 1, 0, audit), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, 0)]
    if machine == "x86_64":
        program += [(_JUMP_GE, 0, 1, _X32_BIT), _error(errno.EPERM)]
    for numbers in refused.values():
        program += [(_JUMP_EQ, 0, 1, numbers[column]), _error(errno.EPERM)]
    for name, numbers in _CHECKED.items():
        if numbers[column] >= 0:
            program += _checked(numbers[column], _check_of(name, strict=strict))
    return [*program, (_RETURN, 0, 0, _ALLOW)]


def _error(code: int) -> Instruction:
    return (_RETURN, 0, 0, _ERRNO | code)


def _checked(number: int, body: List[Instruction]) -> List[Instruction]:
    """`body` runs for that call only; it ends in a return of its own where it refuses."""
    if not body:
        return []
    # The accumulator is changed by the body, so it ends by allowing what it didn't refuse.
    return [(_JUMP_EQ, 0, len(body) + 1, number), *body, (_RETURN, 0, 0, _ALLOW)]


def _check_of(name: str, *, strict: bool) -> List[Instruction]:
    refuse = _error(errno.EPERM)
    if name == "clone":
        return [_load(0), (_JUMP_SET, 0, 1, _NEW_NAMESPACES), refuse]
    if name == "clone3":
        return [_error(errno.ENOSYS)]  # its flags lie in memory; the C library falls back to clone
    if name == "ioctl":
        return [_load(1), (_JUMP_EQ, 1, 0, _TIOCSTI), (_JUMP_EQ, 0, 1, _TIOCLINUX), refuse]
    if name in ("mknod", "mknodat"):
        mode = [_load(1 if name == "mknod" else 2), (_AND, 0, 0, _S_IFMT)]
        return [*mode, (_JUMP_EQ, 1, 0, _S_IFCHR), (_JUMP_EQ, 0, 1, _S_IFBLK), refuse]
    if not strict:
        return []
    if name == "socketpair":  # a datagram pair could send to any socket by its path
        return [_load(1), (_AND, 0, 0, 0xF), (_JUMP_EQ, 0, 1, _SOCK_DGRAM), refuse]
    return [_load(0), (_JUMP_EQ, 1, 0, 0), refuse]  # only the caller itself


def _load(argument: int) -> Instruction:
    return (_LOAD, 0, 0, _ARGUMENT + 8 * argument)
