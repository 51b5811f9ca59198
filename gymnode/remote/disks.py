"""Room: gymnode.remote. What runs keep on this disk, and the end of what goes on growing above a run's limit.

One file can't pass the limit at all (RLIMIT_FSIZE, restrict.py). Many files together are counted every few seconds, in
a thread: a run that is above its limit may not write files, and what runs in it is ended as often as it grew, the
second time with its shells. What shrinks is let alone, so that an agent can tidy up.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from pathlib import Path
from stat import S_ISREG
from typing import Dict, List, Mapping, Set, Tuple

from gymnode.remote.launching import Place
from gymnode.remote.loop import Loop
from gymnode.remote.runs import Run

EVERY_S = float(os.environ.get("GYMD_DISK_EVERY_S", "5"))
SHARE = 5  # counting takes a fifth of one core's time at most
FILE_BYTES = 4096  # the least a file counts, an empty one too: a node has only so many
GB = 10**9
SHARED_MEMORY = Path("/dev/shm")


def disk_used(top: Path, owner: int | None = None) -> int:
    """Bytes that everything below a folder (of `owner`, where given) takes on the disk, a file with several names once.
    What vanishes meanwhile or can't be looked into counts nothing.
    """
    total, folders = 0, [str(top)]
    linked: Set[Tuple[int, int]] = set()
    while folders:
        with contextlib.suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    stat = entry.stat(follow_symlinks=False)
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    elif stat.st_nlink > 1:
                        if (stat.st_dev, stat.st_ino) in linked:
                            continue
                        linked.add((stat.st_dev, stat.st_ino))
                    if owner is None or stat.st_uid == owner:
                        total += max(stat.st_blocks * 512, FILE_BYTES)
    return total


def disk_held(top: Path, pids: List[int]) -> int:
    """Bytes of files on the same disk that have no name any more and are held open by these processes."""
    held: Dict[Tuple[int, int], int] = {}
    for pid in pids:
        with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/fd") as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    stat = entry.stat()
                    if stat.st_nlink == 0 and S_ISREG(stat.st_mode) and stat.st_dev == top.stat().st_dev:
                        held[stat.st_dev, stat.st_ino] = stat.st_blocks * 512
    return sum(held.values())


class DiskWatch:
    """Looks for good, from its making on. `runs` by name, as the registry keeps them."""

    def __init__(self, loop: Loop, runs: Mapping[str, Run]) -> None:
        self._loop, self._runs = loop, runs
        self._seen: Dict[str, int] = {}
        self._ended: Set[str] = set()  # runs whose jobs were ended at the last look
        loop.later(EVERY_S, self._look)

    def _look(self) -> None:
        limited = [(name, run.place, run.pids()) for name, run in self._runs.items() if run.facts.disk_gb]
        if limited:
            threading.Thread(target=self._count, args=(limited,), name="disks", daemon=True).start()
        else:
            self._loop.later(EVERY_S, self._look)

    def _count(self, limited: List[Tuple[str, Place, List[int]]]) -> None:
        began = time.monotonic()
        used = {name: disk_used(place.top) + disk_held(place.top, pids) for name, place, pids in limited}
        for name, place, _pids in limited:
            if place.uid is not None:  # a run in a namespace has none of it, others have the machine's
                used[name] += disk_used(SHARED_MEMORY, place.uid)
        took_s = time.monotonic() - began
        self._loop.call_from_thread(lambda: self._counted(used, took_s))

    def _counted(self, used: Dict[str, int], took_s: float) -> None:
        self._loop.later(max(EVERY_S, SHARE * took_s), self._look)  # first: whatever goes wrong, the watch goes on
        for name, bytes_used in used.items():
            run = self._runs.get(name)
            if run is not None:
                self._judge(name, run, bytes_used)
        self._seen = used

    def _judge(self, name: str, run: Run, bytes_used: int) -> None:
        limit_gb = run.facts.disk_gb or 0.0
        over = bytes_used > limit_gb * GB
        run.full = f"the run keeps {bytes_used / GB:.2f} GB on the disk, its limit is {limit_gb:g} GB" if over else ""
        if over and bytes_used > self._seen.get(name, 0):
            why = f"{run.full}: what ran was ended; delete files before going on"
            run.jobs_end(why, shells_too=name in self._ended)
            self._ended.add(name)
        else:
            self._ended.discard(name)
