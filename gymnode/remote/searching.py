"""Room: gymnode.remote. Looking for text and names below a folder, with limits that are stated in the answer."""

from __future__ import annotations

import fnmatch
import os
import stat
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

MAX_FILE = 32 * 1024 * 1024
MAX_SKIPPED = 50
MAX_LINE = 400
MAX_SECONDS = 20.0

Show = Callable[[str], str]


def tree_search(path: str, term: str, max_hits: int, show: Show) -> Dict[str, Any]:
    """Lines that contain `term` (bytes compared, case kept) in the file or the folder `path`."""
    search = _Search(term.encode("utf-8", "surrogateescape"), max_hits, show)
    Path(path).stat()  # a missing path is an error, not an empty answer
    for name in _walk_files(path):
        if search.full():
            search.truncated = True
            break
        search.look(name)
    return {
        "hits": search.hits,
        "files_searched": search.searched,
        "skipped": search.skipped,
        "truncated": search.truncated,
    }


class _Search:
    def __init__(self, term: bytes, max_hits: int, show: Show) -> None:
        self.hits: List[Dict[str, Any]] = []
        self.skipped: List[Dict[str, str]] = []
        self.searched = 0
        self.truncated = False
        self._term, self._max_hits, self._show = term, max_hits, show
        self._deadline = time.monotonic() + MAX_SECONDS

    def full(self) -> bool:
        """True when the hits or the time are used up."""
        return len(self.hits) >= self._max_hits or time.monotonic() > self._deadline

    def look(self, name: str) -> None:
        """Search one file; what can't be searched is noted with its reason."""
        try:
            facts = Path(name).stat()
            if not stat.S_ISREG(facts.st_mode):
                return
            if facts.st_size > MAX_FILE:
                self._skip(name, f"larger than {MAX_FILE // 2**20} MiB")
                return
            data = Path(name).read_bytes()
        except OSError as error:
            self._skip(name, error.strerror or "unreadable")
            return
        if b"\0" in data[:8192]:
            self._skip(name, "binary")
            return
        self.searched += 1
        self._collect(name, data)

    def _collect(self, name: str, data: bytes) -> None:
        position, line = 0, 1
        while True:
            found = data.find(self._term, position)
            if found < 0:
                return
            if self.full():
                self.truncated = True
                return
            line += data.count(b"\n", position, found)
            start = data.rfind(b"\n", 0, found) + 1
            end = data.find(b"\n", found)
            end = len(data) if end < 0 else end
            text = data[start:end][:MAX_LINE].decode("utf-8", "replace")
            self.hits.append({"path": self._show(name), "line": line, "text": text})
            if end == len(data):
                return
            position, line = end + 1, line + 1

    def _skip(self, name: str, why: str) -> None:
        if len(self.skipped) < MAX_SKIPPED:
            self.skipped.append({"path": self._show(name), "why": why})


def tree_find(path: str, pattern: str, max_hits: int, show: Show) -> Dict[str, Any]:
    """Paths whose name contains `pattern`, or matches it where it has `*`, `?` or `[`."""
    is_glob = any(mark in pattern for mark in "*?[")
    paths: List[str] = []
    deadline = time.monotonic() + MAX_SECONDS
    for folder, folders, files in os.walk(path, onerror=_raise_at_top(path)):
        folders.sort()
        for name in sorted([*folders, *files]):
            if not (fnmatch.fnmatchcase(name, pattern) if is_glob else pattern in name):
                continue
            if len(paths) >= max_hits or time.monotonic() > deadline:
                return {"paths": paths, "truncated": True}
            paths.append(show(str(Path(folder, name))))
    return {"paths": paths, "truncated": False}


def _raise_at_top(top: str) -> Callable[[OSError], None]:
    """Unreadable folders below are passed over; the folder that was asked for must be readable."""

    def on_error(error: OSError) -> None:
        if error.filename == top:
            raise error

    return on_error


def _walk_files(path: str) -> Iterator[str]:
    if not Path(path).is_dir():
        yield path
        return
    for folder, folders, files in os.walk(path, onerror=_raise_at_top(path)):
        folders.sort()
        for name in sorted(files):
            yield str(Path(folder, name))
