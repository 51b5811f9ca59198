"""Room: gymnode.remote. Starting one shell on a terminal, inside the keeper.

The shell reads its commands from a private pipe (descriptor 0) and never from the terminal, so whatever is typed
belongs to the job. Descriptor 200 carries exit codes, 201 is the terminal; both are closed for every job.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import pty
import resource
import signal
import socket
import struct
import termios
from pathlib import Path
from typing import Any, Dict, List

STATUS_FD = 200
TERMINAL_FD = 201
SHELL = ["/bin/bash", "--noprofile", "--norc", "--noediting", "-i"]
_PR_SET_CHILD_SUBREAPER = 36


def shell_start(control: socket.socket, message: Dict[str, Any], fds: List[int]) -> None:
    """Fork and exec the shell; the child announces itself on `control`, with the terminal's master if it was made here.

    `fds` are the command pipe's read end, the status pipe's write end and, where the run may not open terminals
    itself, the terminal's slave.
    """
    master = -1
    if len(fds) > 2:
        slave = os.dup(fds[2])
    else:
        master, slave = pty.openpty()
    try:
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", message["rows"], message["cols"], 0, 0))
        pid = os.fork()
        if pid == 0:
            _child(control, message, (fds[0], fds[1], slave, master))
    finally:
        os.close(slave)
        if master >= 0:
            os.close(master)


def _child(control: socket.socket, message: Dict[str, Any], fds: tuple[int, int, int, int]) -> None:
    commands, status, slave, master = fds
    try:
        signal.set_wakeup_fd(-1)
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        _descriptors(commands, status, slave)
        _prepare(message["cwd"])
        _announce(control, message["id"], master)
        os.execve(SHELL[0], SHELL, message["env"])  # noqa: S606 - this is the shell
    except OSError as error:
        text = json.dumps({"id": message["id"], "error": f"the shell can't be started: {error}"})
        control.send(text.encode())
    os._exit(127)


def _announce(control: socket.socket, request: int, master: int) -> None:
    """Sent by the child itself: the kernel attaches its process id as gymd sees it."""
    ancillary = []
    if master >= 0:
        ancillary.append((socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", master)))
    control.sendmsg([json.dumps({"id": request, "result": {"pid": os.getpid()}}).encode()], ancillary)


def _descriptors(commands: int, status: int, slave: int) -> None:
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    # Prompts and notices go nowhere: a command is given the terminal as its standard error.
    for source, target in ((status, STATUS_FD), (slave, TERMINAL_FD), (commands, 0), (slave, 1), (null, 2)):
        os.dup2(source, target)


def _prepare(cwd: str) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for name in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, signal.SIGINT):
        signal.signal(name, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.umask(0o022)
    os.setpriority(os.PRIO_PROCESS, 0, max(0, os.getpriority(os.PRIO_PROCESS, 0)))
    os.chdir(cwd if Path(cwd).is_dir() else ".")
