"""Room: gymnode.remote. `gymd doctor`: what this node lacks for the best isolation, each with the exact remedy."""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from pathlib import Path
from typing import Any, Dict, List

from gymnode.remote.gpus import cards
from gymnode.remote.homes import Home, boot_id, home_of_words, machine_id
from gymnode.remote.landlock import landlock_abi
from gymnode.remote.levels import capabilities_probe
from gymnode.remote.registry import FIRST_UID, LAST_UID


def verb_main(words: List[str]) -> None:
    """Print the report as JSON."""
    sys.stdout.write(json.dumps(doctor_report(home_of_words(words)), indent=2) + "\n")


def doctor_report(home: Home) -> Dict[str, Any]:
    """Levels with reasons, faults with remedies, leftovers of runs that are gone."""
    found = capabilities_probe()
    return {
        "machine_id": machine_id(),
        "boot_id": boot_id(),
        "python": platform.python_version(),
        "keeper_python": found.python,
        "bubblewrap": found.bwrap,
        "landlock_abi": landlock_abi(),
        "user": os.getuid(),
        "root": str(home.root),
        "gpus": [card.uuid for card in cards()],
        "best": found.best(),
        "levels": [
            {"name": level.name, "available": level.available, "reason": level.reason}
            for level in found.levels.values()
        ],
        "faults": _faults(home, found.levels["namespace"].reason),
        "leftovers": _leftovers(home),
    }


def _faults(home: Home, namespace_reason: str) -> List[Dict[str, str]]:
    faults = []
    if namespace_reason:
        thing, _colon, remedy = namespace_reason.rpartition(": ")
        faults.append({"lacks": "namespace", "why": thing or namespace_reason, "remedy": remedy})
    if not Path("/bin/bash").exists():
        faults.append({"lacks": "bash", "why": "/bin/bash is missing", "remedy": "install the package bash"})
    if shutil.which("git") is None:
        faults.append({"lacks": "git", "why": "git is missing", "remedy": "install the package git"})
    closed = _closed_parent(home.root)
    if os.getuid() == 0 and closed is not None:
        faults.append(
            {
                "lacks": "reachable root",
                "why": f"users of runs can't reach {home.root}: {closed} is closed to them",
                "remedy": f"chmod o+x {closed}, or choose a root elsewhere",
            }
        )
    return faults


def _closed_parent(folder: Path) -> Path | None:
    for place in [folder, *folder.parents]:
        if not place.stat().st_mode & 0o001:
            return place
    return None


def _leftovers(home: Home) -> List[Dict[str, Any]]:
    """Folders and processes of runs that gymd no longer knows."""
    known = {entry.name for entry in (home.state / "runs").iterdir()} if (home.state / "runs").is_dir() else set()
    left: List[Dict[str, Any]] = [
        {"folder": str(entry)} for entry in sorted(home.root.iterdir()) if entry.name not in known and entry.is_dir()
    ]
    if os.getuid() == 0 and not known:
        left += [{"uid": uid, "pids": pids} for uid, pids in sorted(_pids_by_uid().items())]
    return left


def _pids_by_uid() -> Dict[int, List[int]]:
    found: Dict[int, List[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                uid = entry.stat().st_uid
            except OSError:
                continue
            if FIRST_UID <= uid <= LAST_UID:
                found.setdefault(uid, []).append(int(entry.name))
    return found
