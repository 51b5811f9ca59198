"""Room: evaluator. Hidden content that also lies in the public part: exactly, nearly, or as a canary."""

from __future__ import annotations

import hashlib
import re
import stat
from pathlib import Path

from evaluator.trees import Entry, tree_entries
from evaluator.yamlcore import Fault

_SMALL = 32  # shorter files and lines say nothing about where they come from
_MAX_READ = 64 * 1024 * 1024
_NEARLY = 0.8
_MIN_LINES = 5
_BLANKS = re.compile(rb"[\s,;\"']+")


def _lines(data: bytes) -> set[bytes]:
    """Lines without blanks, quotes and separators, so that another dialect of the same table is seen through."""
    found = (_BLANKS.sub(b" ", line).strip() for line in data.splitlines())
    return {hashlib.blake2b(line, digest_size=8).digest() for line in found if line}


def _read(entry: Entry) -> bytes:
    assert isinstance(entry.source, Path)
    with entry.source.open("rb") as stream:
        return stream.read(_MAX_READ)


def _plain(folder: Path, prefix: str) -> list[Entry]:
    """Plain files only: a link is a fault of its own, or its target is read where it lies; a pipe would never end."""
    entries = tree_entries(folder / prefix, prefix)
    return [one for one in entries if isinstance(one.source, Path) and stat.S_ISREG(one.source.lstat().st_mode)]


def leak_faults(folder: Path) -> list[Fault]:
    """Reference files that lie in the workspace too. Reference solutions are hidden too."""
    public, hidden = _plain(folder, "workspace/"), _plain(folder, "evaluation/")
    own = _plain(folder, "solutions/reference/")
    return _copies(public, [entry for entry in hidden if "/references/" in f"/{entry.path}"], own)


def _copies(public: list[Entry], references: list[Entry], solutions: list[Entry]) -> list[Fault]:
    contents = {entry.path: _read(entry) for entry in public}
    exact = {hashlib.sha256(data).digest(): path for path, data in contents.items() if len(data) >= _SMALL}
    lines = {path: _lines(data) for path, data in contents.items()}
    faults = []
    for entry in (*references, *solutions):
        data = _read(entry)
        if len(data) < _SMALL:
            continue
        same = exact.get(hashlib.sha256(data).digest())
        if same:
            faults.append(Fault(f"also lies in the workspace, as {same}: take it out there", "", 0, entry.path))
        elif entry in references:
            faults += _near(entry, _lines(data), lines)
    return faults


def _near(entry: Entry, lines: set[bytes], public: dict[str, set[bytes]]) -> list[Fault]:
    if len(lines) < _MIN_LINES:
        return []
    for path, others in public.items():
        shared = len(lines & others) / len(lines)
        if shared >= _NEARLY:
            return [Fault(f"{shared:.0%} of its lines also lie in {path}: take them out there", "", 0, entry.path)]
    return []


def canary_faults(folder: Path, canary: str | None) -> list[Fault]:
    """Hidden programs without the canary, public files with it."""
    if canary is None:
        advice = "missing; add a random string of its own (`canary: name-of-task-<32 hex digits>`)"
        return [Fault(f"{advice} and write it into evaluate.py and each run.sh as a comment", "canary", 0, "task.yaml")]
    mark = canary.encode()
    places = [folder / "evaluation" / "evaluate.py", *sorted((folder / "solutions").glob("*/run.sh"))]
    faults = [
        Fault("lacks the canary of task.yaml; add it as a comment", "", 0, path.relative_to(folder).as_posix())
        for path in places
        if path.is_file() and mark not in path.read_bytes()
    ]
    texts = [
        *_plain(folder, "workspace/"),
        *(Entry(name, folder / name) for name in ("task_description.md", "hint.md") if (folder / name).is_file()),
    ]
    return faults + [
        Fault("holds the canary, which marks hidden parts only: take it out", "", 0, entry.path)
        for entry in texts
        if mark in _read(entry)
    ]
