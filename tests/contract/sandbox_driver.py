"""Run by the suite as another user, or where namespaces are forbidden: finds a sandbox, tries a battery, prints JSON.

`python sandbox_driver.py ENV [LEVEL]`; `forbid` as third word loads a filter first that refuses all namespaces.
"""

import ctypes
import errno
import json
import os
import platform
import sys
from pathlib import Path

from evaluator.guard import seccomp
from evaluator.guard.confine import PR_SET_NO_NEW_PRIVS, prctl
from evaluator.guard.syscalls import AUDIT_ARCH, NUMBERS
from evaluator.sandbox import Choice, SandboxMissing, probe
from evaluator.taskenv import task_env_open
from tests.contract.sandbox_cases import attempt, prepared, running_with, said

_NEW = 0x7E020000


def forbid_namespaces() -> None:
    """What a container's default profile does: no unshare, no mount, no clone with a new namespace."""
    numbers = NUMBERS[platform.machine()]
    allow, refuse = (0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x00050000 | errno.EPERM)
    program = [(0x20, 0, 0, 4), (0x15, 1, 0, AUDIT_ARCH[platform.machine()]), allow, (0x20, 0, 0, 0)]
    for name in ("unshare", "mount", "setns", "pivot_root"):
        program += [(0x15, 0, 1, numbers[name]), refuse]
    program += [(0x15, 0, 1, numbers["clone3"]), (0x06, 0, 0, 0x00050000 | errno.ENOSYS)]
    program += [(0x15, 0, 4, numbers["clone"]), (0x20, 0, 0, 16), (0x45, 0, 1, _NEW), refuse, allow, allow]
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    seccomp.load(program)
    assert ctypes.CDLL(None).unshare(0x10000000) == -1


CODE = """
import signal
if os.fork() == 0:
    os.setsid()
    time.sleep(300)
say(shadow=attempt(lambda: read("/etc/shadow")), other=attempt(lambda: read(OTHER)),
    home=attempt(lambda: os.listdir(os.path.dirname(OTHER))),
    parent=attempt(lambda: os.kill(PARENT, signal.SIGKILL)),
    environ=attempt(lambda: read(f"/proc/{PARENT}/environ")), socket=attempt(lambda: socket.socket()),
    change=attempt(lambda: write("../evaluation/reference.txt")),
    rename=attempt(lambda: os.rename("../outputs/predictions.csv", "x")),
    memory=attempt(lambda: len(bytearray(2 << 30))), replace=attempt(lambda: write(sys.executable)))
"""


def main() -> None:
    root, level = Path(sys.argv[1]), int(sys.argv[2]) or None
    if sys.argv[3:] == ["forbid"]:
        forbid_namespaces()
    try:
        sandbox = probe(task_env_open(root), Choice(level=level))
    except SandboxMissing as error:
        print(json.dumps({"missing": str(error)}))
        return
    other = prepared(sandbox)
    mark = f"battery-{os.getpid()}"
    code = f"# {mark}\nOTHER = {str(other / 'evaluation' / 'reference.txt')!r}\nPARENT = {os.getpid()}\n{CODE}"
    ran = attempt(sandbox, code)
    sandbox.discard(other)
    print(
        json.dumps({"facts": dict(sandbox.facts), "answers": said(ran), "left": running_with(mark), "uid": os.getuid()})
    )


if __name__ == "__main__":
    main()
