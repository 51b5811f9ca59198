"""Room: gymnode.remote. The state of the machine: processor, memory, disk, load. GPUs are read by a thread, cached."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

from gymnode.remote.gpus import nvidia_smi_read
from gymnode.remote.loop import Loop
from gymnode.remote.sweeping import stat_fields

GPU_AGE_S = 5.0
Owner = Callable[[int], "Tuple[str, str] | None"]


class Machine:
    """Samples on demand; nothing runs while nobody asks."""

    def __init__(self, loop: Loop, root: Path) -> None:
        self._loop, self._root = loop, root
        self._cpu = _cpu_times()
        self._busy = 0.0
        self._cpu_at = 0.0
        self._gpus: List[Dict[str, Any]] = []
        self._holders: List[Tuple[str, int]] = []
        self._gpus_at = 0.0
        self._waiting: List[Callable[[], None]] = []

    def status(self, owner: Owner, answer: Callable[[Dict[str, Any]], None]) -> None:
        """Answer {cpu, memory, disk, load, gpus}; `owner(pid)` tells run and session of a process."""
        self.gpus_fresh(lambda: answer({**self._basics(), "gpus": self._gpus_with(owner)}))

    def gpus_fresh(self, done: Callable[[], None]) -> None:
        """Call `done` once the GPUs' state is at most five seconds old."""
        if time.monotonic() - self._gpus_at < GPU_AGE_S:
            done()
            return
        self._waiting.append(done)
        if len(self._waiting) == 1:
            threading.Thread(target=self._read_gpus, daemon=True).start()

    def holders(self) -> List[Tuple[int, int]]:
        """(GPU index, process) of the last reading."""
        index = {gpu["uuid"]: gpu["index"] for gpu in self._gpus}
        return [(index[uuid], pid) for uuid, pid in self._holders if uuid in index]

    def _read_gpus(self) -> None:
        gpus, holders = nvidia_smi_read()

        def store() -> None:
            self._gpus, self._holders, self._gpus_at = gpus, holders, time.monotonic()
            waiting, self._waiting = self._waiting, []
            for done in waiting:
                done()

        self._loop.call_from_thread(store)

    def _gpus_with(self, owner: Owner) -> List[Dict[str, Any]]:
        rows = []
        for gpu in self._gpus:
            held = []
            for index, pid in self.holders():
                found = owner(pid)
                if index == gpu["index"]:
                    run, session = found if found is not None else (None, None)
                    held.append({"run": run, "session": session, "pid": pid})
            rows.append({**{key: value for key, value in gpu.items() if key != "uuid"}, "holders": held})
        return rows

    def _basics(self) -> Dict[str, Any]:
        now = time.monotonic()
        if now - self._cpu_at > 0.5:
            previous, self._cpu, self._cpu_at = self._cpu, _cpu_times(), now
            total = self._cpu[1] - previous[1]
            self._busy = (self._cpu[0] - previous[0]) / total if total > 0 else 0.0
        facts = os.statvfs(self._root)
        load = os.getloadavg()
        return {
            "cpu": {"count": os.cpu_count() or 1, "utilisation": round(100 * self._busy, 1)},
            "memory": _memory(),
            "disk": {
                "total_mb": facts.f_blocks * facts.f_frsize // 2**20,
                "free_mb": facts.f_bavail * facts.f_frsize // 2**20,
            },
            "load": [round(value, 2) for value in load],
        }


def _cpu_times() -> Tuple[float, float]:
    """(busy, total) processor time since boot in ticks."""
    fields = [float(one) for one in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return sum(fields) - fields[3] - fields[4], sum(fields)


def _memory() -> Dict[str, int]:
    facts = {}
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _colon, rest = line.partition(":")
        facts[name] = int(rest.split()[0]) // 1024
    return {"total_mb": facts.get("MemTotal", 0), "available_mb": facts.get("MemAvailable", 0)}


def ancestors_of(pid: int) -> List[int]:
    """The process and its parents, up to the first one."""
    chain: List[int] = []
    while pid > 0 and len(chain) < 100:
        chain.append(pid)
        fields = stat_fields(pid)
        pid = int(fields[1]) if fields else 0
    return chain
