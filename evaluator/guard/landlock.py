"""Room: evaluator.guard. Landlock through raw system calls (444, 445, 446: the same on every architecture).

Standard library only: this package also runs as a stand-alone program inside the sandbox.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG = 1
_PATH_BENEATH = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_MAKE_CHAR, _MAKE_SOCK, _MAKE_FIFO, _MAKE_BLOCK = 1 << 6, 1 << 9, 1 << 10, 1 << 11
READ = READ_FILE | READ_DIR
RUN = READ | EXECUTE
_NET_BIND, _NET_CONNECT = 1, 2
_SCOPE_ABSTRACT_SOCKET, _SCOPE_SIGNAL = 1, 2

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def _syscall(number: int, *args: object) -> int:
    result = int(_libc.syscall(ctypes.c_long(number), *args))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"system call {number}: {os.strerror(code)}")
    return result


def abi() -> int:
    """The kernel's Landlock version, 0 where there is none."""
    try:
        return _syscall(CREATE_RULESET, ctypes.c_void_p(None), ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))
    except OSError:
        return 0


def _all_file_rights(version: int) -> int:
    rights = (1 << 13) - 1
    rights |= _REFER if version >= 2 else 0
    rights |= _TRUNCATE if version >= 3 else 0
    return rights | (_IOCTL_DEV if version >= 5 else 0)


def full_access(version: int) -> int:
    """Everything on plain files and folders; no devices, sockets or pipes are made."""
    return _all_file_rights(version) & ~(_MAKE_CHAR | _MAKE_SOCK | _MAKE_FIFO | _MAKE_BLOCK | _IOCTL_DEV)


class Ruleset:
    """All is refused but what `allow` names. Attribute size is 8, 16 or 24 bytes by ABI."""

    def __init__(self) -> None:
        self.abi = abi()
        self.rights = _all_file_rights(self.abi)
        network = _NET_BIND | _NET_CONNECT if self.abi >= 4 else 0
        scopes = _SCOPE_ABSTRACT_SOCKET | _SCOPE_SIGNAL if self.abi >= 6 else 0
        size = 24 if self.abi >= 6 else 16 if self.abi >= 4 else 8
        attribute = ctypes.create_string_buffer(struct.pack("QQQ", self.rights, network, scopes), 24)
        self.descriptor = _syscall(CREATE_RULESET, attribute, ctypes.c_size_t(size), ctypes.c_uint32(0))

    def allow(self, path: str, rights: int) -> None:
        """Allow `rights` beneath `path`. Raises OSError where the path can't be opened."""
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            rights &= self.rights
            if not stat.S_ISDIR(os.fstat(handle).st_mode):
                rights &= EXECUTE | WRITE_FILE | READ_FILE | _TRUNCATE
            attribute = ctypes.create_string_buffer(struct.pack("=Qi", rights, handle), 12)
            _syscall(
                ADD_RULE, ctypes.c_int(self.descriptor), ctypes.c_int(_PATH_BENEATH), attribute, ctypes.c_uint32(0)
            )
        finally:
            os.close(handle)

    def restrict_self(self) -> None:
        """From here on, this process and all it starts. Needs no_new_privs."""
        _syscall(RESTRICT_SELF, ctypes.c_int(self.descriptor), ctypes.c_uint32(0))
        os.close(self.descriptor)
