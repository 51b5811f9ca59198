"""Room: gymnode.remote. Walking /proc: who descends from whom, who waits for input, ending a whole tree.

Works on process ids as the calling process sees them. A process that vanishes while it is looked at is no error.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Dict, Iterable, List, NamedTuple, Set

_PROC = Path("/proc")


class ProcessFacts(NamedTuple):
    """One process: ids as gymd sees them, `inner` as the run sees it, state letter, command line."""

    pid: int
    ppid: int
    inner: int
    state: str
    command: str


def children_of(pid: int) -> List[int]:
    """Direct children, over all threads of the process."""
    found: List[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - names only, called often
    except OSError:
        return found
    for thread in threads:
        try:
            found += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_bytes().split())
        except OSError:
            continue
    return found


def descendants_of(pid: int) -> List[int]:
    """All descendants, parents before children; `pid` itself is not among them."""
    found: List[int] = []
    waiting = [pid]
    while waiting:
        children = children_of(waiting.pop())
        found += children
        waiting += children
    return found


def process_state(pid: int) -> str:
    """The state letter of /proc/PID/stat, `X` when the process is gone."""
    fields = stat_fields(pid)
    return fields[0] if fields else "X"


def stat_fields(pid: int) -> List[str]:
    """Fields of /proc/PID/stat from the state on; empty when the process is gone."""
    try:
        raw = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return []
    return raw[raw.rindex(b")") + 2 :].decode("ascii", "replace").split()


def process_facts(pid: int) -> ProcessFacts | None:
    """Facts about one process, None when it is gone."""
    fields = stat_fields(pid)
    if not fields:
        return None
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
        name = Path(f"/proc/{pid}/comm").read_bytes().strip()
    except OSError:
        return None
    command = raw.replace(b"\0", b" ").strip() or b"[" + name + b"]"
    return ProcessFacts(pid, int(fields[1]), inner_pid(pid), fields[0], command[:400].decode("utf-8", "replace"))


def inner_pid(pid: int) -> int:
    """The process id inside the innermost namespace, which is what the run's own `ps` shows."""
    try:
        status = Path(f"/proc/{pid}/status").read_bytes()
    except OSError:
        return pid
    for line in status.splitlines():
        if line.startswith(b"NSpid:"):
            return int(line.split()[-1])
    return pid


def pids_of_uid(uid: int) -> List[int]:
    """Processes whose real user is `uid`, zombies excepted."""
    found = []
    for entry in os.listdir(_PROC):  # noqa: PTH208 - names only, called often
        if not entry.isdigit():
            continue
        try:
            owner = Path(f"/proc/{entry}").stat().st_uid
        except OSError:
            continue
        if owner == uid and process_state(int(entry)) not in "ZX":
            found.append(int(entry))
    return found


def pids_marked(marker: str) -> List[int]:
    """Processes that have `marker` (NAME=VALUE) in the environment they were started with."""
    wanted = marker.encode()
    found = []
    for entry in os.listdir(_PROC):  # noqa: PTH208 - names only, called often
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            environment = Path(f"/proc/{entry}/environ").read_bytes()
        except OSError:
            continue
        if wanted in environment.split(b"\0") and process_state(int(entry)) not in "ZX":
            found.append(int(entry))
    return found


def signal_send(pid: int, number: int) -> bool:
    """True when the signal was delivered or the process is gone already."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True


def alive(pids: Iterable[int]) -> List[int]:
    """Those that still run (a zombie doesn't)."""
    return [pid for pid in pids if process_state(pid) not in "ZX"]


def tree_kill(pid: int) -> Set[int]:
    """KILL all descendants, stopped first so that none escapes by forking. Returns what was signalled."""
    killed: Set[int] = set()
    for _round in range(50):
        living = alive(descendants_of(pid))
        if not living:
            break
        for child in living:
            signal_send(child, signal.SIGSTOP)
        for child in living:
            signal_send(child, signal.SIGKILL)
        killed.update(living)
        time.sleep(0.005)
    return killed


def descendants_end(pid: int, *, patience_s: float) -> None:
    """TERM all descendants of `pid`, wait up to `patience_s`, KILL what is left. Blocks."""
    if patience_s > 0:
        for child in descendants_of(pid):
            signal_send(child, signal.SIGTERM)
        until = time.monotonic() + patience_s
        while alive(descendants_of(pid)) and time.monotonic() < until:
            time.sleep(0.02)
    tree_kill(pid)


def cpu_seconds(pids: Iterable[int]) -> Dict[int, float]:
    """User and system time of each process so far."""
    ticks = os.sysconf("SC_CLK_TCK")
    times = {}
    for pid in pids:
        fields = stat_fields(pid)
        if fields:
            times[pid] = (int(fields[11]) + int(fields[12])) / ticks
    return times
