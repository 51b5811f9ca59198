"""Room: gymnode.remote. Is the foreground job of a terminal waiting for input? Told from /proc, never from silence.

A process of the terminal's foreground group sleeps in a read of that terminal, or in poll or select while the terminal
is in raw mode (an editor, a pager, a prompt with line editing).
"""

from __future__ import annotations

import array
import fcntl
import os
import stat
import struct
import termios
from pathlib import Path
from typing import List

from gymnode.remote.sweeping import descendants_of, stat_fields

_X86 = {"read": (0, 19), "wait": (7, 23, 270, 271, 232, 281, 441)}
_ARM = {"read": (63, 65), "wait": (72, 73, 22, 441)}
_CALLS = _ARM if os.uname().machine == "aarch64" else _X86
_TIOCGPTPEER = 0x5441
_DEV_TTY = os.makedev(5, 0)


def foreground_group(master: int) -> int:
    """The foreground process group of the terminal, as gymd numbers processes; 0 when there is none."""
    group = array.array("i", [0])
    try:
        fcntl.ioctl(master, termios.TIOCGPGRP, group)
    except OSError:
        return 0
    return group[0]


def waiting_for_input(master: int, shell: int) -> bool:
    """True when a process in the foreground waits for the terminal."""
    group = foreground_group(master)
    if group <= 0:
        return False
    raw = is_raw(master)
    for pid in [shell, *descendants_of(shell)]:
        fields = stat_fields(pid)
        if fields and int(fields[2]) == group and fields[0] == "S" and _waits(pid, int(fields[4]), raw=raw):
            return True
    return False


def is_raw(master: int) -> bool:
    """True when what is typed reaches the program at once, not line by line."""
    try:
        return not termios.tcgetattr(master)[3] & termios.ICANON
    except termios.error:
        return False


def _waits(pid: int, terminal: int, *, raw: bool) -> bool:
    for call in _system_calls(pid):
        if call[0] in _CALLS["read"] and _is_terminal(pid, call[1], terminal):
            return True
        if raw and call[0] in _CALLS["wait"]:
            return True
    return False


def _system_calls(pid: int) -> List[List[int]]:
    """[number, first argument] of each thread that is in a system call now."""
    calls = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - names only, called often
    except OSError:
        return []
    for thread in threads[:64]:
        try:
            fields = Path(f"/proc/{pid}/task/{thread}/syscall").read_text().split()
        except OSError:
            continue
        if len(fields) > 2 and fields[0].isdigit():
            calls.append([int(fields[0]), int(fields[1], 16)])
    return calls


def _is_terminal(pid: int, fd: int, terminal: int) -> bool:
    try:
        facts = Path(f"/proc/{pid}/fd/{fd}").stat()
    except OSError:
        return False
    return stat.S_ISCHR(facts.st_mode) and facts.st_rdev in (_device_of(terminal), _DEV_TTY)


def _device_of(terminal: int) -> int:
    """`tty_nr` of /proc/PID/stat as a device number."""
    minor = (terminal & 0xFF) | ((terminal >> 12) & 0xFFF00)
    return os.makedev((terminal >> 8) & 0xFFF, minor)


def input_flush(master: int) -> None:
    """Throw away what was typed and not read. Flushing the master doesn't do it: its peer's queue must be."""
    slave = fcntl.ioctl(master, _TIOCGPTPEER, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        termios.tcflush(slave, termios.TCIFLUSH)
    finally:
        os.close(slave)


def size_set(master: int, cols: int, rows: int) -> None:
    """Set the size of the terminal."""
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
