"""Room: gymnode.remote. NVIDIA GPUs of this machine: device files by index, and what nvidia-smi says of them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Dict, Iterable, List, NamedTuple, Tuple

_DRIVER = Path("/proc/driver/nvidia/gpus")
_SHARED = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset")
_QUERY_GPUS = "index,uuid,utilization.gpu,memory.used,memory.total"
_QUERY_APPS = "gpu_uuid,pid,used_memory"


class Card(NamedTuple):
    """One GPU as the driver lists it, in bus order, which is nvidia-smi's order too."""

    number: int
    minor: int
    uuid: str


def cards() -> List[Card]:
    """The driver's GPUs; none where no driver is loaded."""
    found = []
    if not _DRIVER.is_dir():
        return []
    for index, folder in enumerate(sorted(_DRIVER.iterdir(), key=lambda entry: entry.name)):
        try:
            text = (folder / "information").read_text()
        except OSError:
            continue
        minor = re.search(r"Device Minor:\s*(\d+)", text)
        uuid = re.search(r"GPU UUID:\s*(\S+)", text)
        found.append(Card(index, int(minor.group(1)) if minor else index, uuid.group(1) if uuid else str(index)))
    return found


def gpu_devices(indices: Iterable[int]) -> List[str]:
    """Device files a run with these GPUs needs, and no others."""
    wanted = set(indices)
    if not wanted:
        return []
    known = cards()
    minors = [card.minor for card in known if card.number in wanted] if known else sorted(wanted)
    paths = [f"/dev/nvidia{minor}" for minor in minors] + list(_SHARED)
    return [path for path in paths if Path(path).exists()]


def gpu_uuids_of(indices: Iterable[int]) -> List[str]:
    """Names for CUDA_VISIBLE_DEVICES that mean the same inside and outside; indices where no driver tells."""
    wanted = set(indices)
    known = [card.uuid for card in cards() if card.number in wanted]
    return known or [str(index) for index in sorted(wanted)]


def nvidia_smi_read() -> Tuple[List[Dict[str, Any]], List[Tuple[str, int]]]:
    """(GPUs, [(uuid, pid)] of compute processes). Blocks up to some seconds: call it in a thread."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return [], []
    gpus = [_gpu_parse(line) for line in _query(program, "--query-gpu=" + _QUERY_GPUS)]
    holders = []
    for line in _query(program, "--query-compute-apps=" + _QUERY_APPS):
        fields = [field.strip() for field in line.split(",")]
        if len(fields) >= 2 and fields[1].isdigit():
            holders.append((fields[0], int(fields[1])))
    return [gpu for gpu in gpus if gpu], holders


def _query(program: str, what: str) -> List[str]:
    try:
        done = subprocess.run(
            [program, what, "--format=csv,noheader,nounits"], capture_output=True, timeout=8, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return done.stdout.decode("utf-8", "replace").splitlines() if done.returncode == 0 else []


def _gpu_parse(line: str) -> Dict[str, Any]:
    fields = [field.strip() for field in line.split(",")]
    if len(fields) != 5 or not fields[0].isdigit():
        return {}
    numbers = [int(float(field)) if re.match(r"^\d+(\.\d+)?$", field) else None for field in fields[2:]]
    return {
        "index": int(fields[0]),
        "uuid": fields[1],
        "utilisation": numbers[0],
        "memory_used_mb": numbers[1],
        "memory_total_mb": numbers[2],
    }
