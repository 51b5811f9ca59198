"""Room: evaluator.guard. The seccomp filter, assembled by hand (classic BPF) for x86_64 and aarch64.

Refused calls fail with EPERM, so that programs go on and can say so; a foreign architecture kills. `clone3` says
ENOSYS (its flags lie behind a pointer), which makes the C library fall back to `clone`, whose flags are checked.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct

from evaluator.guard.syscalls import AUDIT_ARCH, NUMBERS, REFUSED, SIGNAL_CALLS

_LOAD, _JUMP_EQUAL, _JUMP_GREATER_EQUAL, _JUMP_ANY_BIT, _RETURN, _AND = 0x20, 0x15, 0x35, 0x45, 0x06, 0x54
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_X32 = 0x40000000
_NAMESPACES = 0x7E020080  # CLONE_NEWTIME NEWNS NEWCGROUP NEWUTS NEWIPC NEWUSER NEWPID NEWNET
_AF_UNIX, _SOCK_STREAM = 1, 1
_TERMINAL_REQUESTS = (0x5412, 0x541C)  # TIOCSTI types into a terminal, TIOCLINUX pastes
_ARGUMENT = 16  # offset of the first argument in struct seccomp_data, low half (little endian)
Instruction = tuple[int, int, int, int]


def _argument(index: int) -> int:
    return _ARGUMENT + 8 * index


def _for_call(number: int, body: list[Instruction]) -> list[Instruction]:
    """Run `body`, which ends in a return on each way, when the call is `number`."""
    return [(_JUMP_EQUAL, 0, len(body), number), *body]


def _refuse(code: int = errno.EPERM) -> Instruction:
    return (_RETURN, 0, 0, _ERRNO | code)


_PASS: Instruction = (_RETURN, 0, 0, _ALLOW)


def program(machine: str, *, signals: bool) -> list[Instruction]:
    """The filter. `signals` false: signals to others are refused too (where Landlock can't confine them)."""
    numbers = NUMBERS[machine]
    out: list[Instruction] = [(_LOAD, 0, 0, 4), (_JUMP_EQUAL, 1, 0, AUDIT_ARCH[machine]), (_RETURN, 0, 0, _KILL)]
    out.append((_LOAD, 0, 0, 0))
    if machine == "x86_64":
        out += [(_JUMP_GREATER_EQUAL, 0, 1, _X32), _refuse()]
    refused = [*REFUSED, *(() if signals else SIGNAL_CALLS)]
    for name in refused:
        if name in numbers:
            out += _for_call(numbers[name], [_refuse()])
    out += _for_call(numbers["clone3"], [_refuse(errno.ENOSYS)])
    out += _for_call(
        numbers["clone"], [(_LOAD, 0, 0, _argument(0)), (_JUMP_ANY_BIT, 0, 1, _NAMESPACES), _refuse(), _PASS]
    )
    out += _for_call(numbers["prlimit64"], [(_LOAD, 0, 0, _argument(0)), (_JUMP_EQUAL, 1, 0, 0), _refuse(), _PASS])
    first, second = _TERMINAL_REQUESTS
    ioctl = [(_LOAD, 0, 0, _argument(1)), (_JUMP_EQUAL, 1, 0, first), (_JUMP_EQUAL, 0, 1, second), _refuse(), _PASS]
    out += _for_call(numbers["ioctl"], ioctl)
    # Only stream pairs: a datagram pair could still send to any socket by its path.
    pair = [(_LOAD, 0, 0, _argument(0)), (_JUMP_EQUAL, 0, 3, _AF_UNIX), (_LOAD, 0, 0, _argument(1))]
    pair += [(_AND, 0, 0, 0xF), (_JUMP_EQUAL, 1, 0, _SOCK_STREAM), _refuse(), _PASS]
    out += _for_call(numbers["socketpair"], pair)
    return [*out, _PASS]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def supported() -> bool:
    """Whether the filter is known for this machine."""
    return platform.machine() in NUMBERS


def install(*, signals: bool) -> None:
    """Install the filter for this process and all it starts. Needs no_new_privs. Raises OSError."""
    load(program(platform.machine(), signals=signals))


def load(instructions: list[Instruction]) -> None:
    """Hand a filter to the kernel."""
    packed = b"".join(struct.pack("HBBI", *instruction) for instruction in instructions)
    buffer = ctypes.create_string_buffer(packed, len(packed))
    head = _Program(len(instructions), ctypes.cast(buffer, ctypes.c_void_p))
    libc = ctypes.CDLL(None, use_errno=True)
    set_seccomp, mode_filter = 22, 2
    if libc.prctl(set_seccomp, mode_filter, ctypes.byref(head), 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, "the seccomp filter was refused by the kernel")
