"""Room: gymnode.remote. The journal of one run: what was begun, what came of it; nothing runs twice.

An entry is written before the action and again with its result, both with one `write`, so a killed gymd leaves at
worst a begun entry without a result: the outcome is unknown, and is said to be. On a full disk nothing begins; the
result of what had begun is kept in memory until there is room for it.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

from gymnode.remote.appending import line_append

Answer = Dict[str, Any]
Listener = Callable[[Answer], None]

_ENTRY = re.compile(r'\{"(?:begin|done)":')
_DECODER = json.JSONDecoder()
_ORDERED = re.compile(r"^(.*)\.(\d+)\.(\d+)")


class Journal:
    """Entries by key (action id and operation). Results stay on disk; memory holds their place."""

    def __init__(self, path: Path) -> None:
        self._places: Dict[str, Tuple[int, int]] = {}
        self._begun: Dict[str, List[Listener]] = {}
        self._unknown: Dict[str, None] = {}
        self._earliest: Dict[str, Tuple[int, int]] = {}
        self._unwritten: Dict[str, Answer] = {}
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._load(path)

    def begin(self, key: str) -> None:
        """Write that the action starts now. Raises OSError (a full disk): then it must not start."""
        for finished in list(self._unwritten):
            self._places[finished] = self._write({"done": finished, "answer": self._unwritten[finished]})
            del self._unwritten[finished]
        self._write({"begin": key})
        self._order_note(key)
        self._begun[key] = []

    def finish(self, key: str, answer: Answer) -> None:
        """Store the answer and tell all who wait for it."""
        try:
            self._places[key] = self._write({"done": key, "answer": answer})
        except OSError:
            self._unwritten[key] = answer
        for listener in self._begun.pop(key, []):
            listener(answer)

    def stored(self, key: str) -> Answer | None:
        """The stored answer, None when there is none (yet)."""
        if key in self._unwritten:
            return self._unwritten[key]
        place = self._places.get(key)
        if place is None:
            return None
        answer: Answer = json.loads(os.pread(self._fd, place[1], place[0]))["answer"]
        return answer

    def listen(self, key: str, listener: Listener) -> bool:
        """Hear the answer of an action under way; False when none is."""
        if key not in self._begun:
            return False
        self._begun[key].append(listener)
        return True

    def is_unknown(self, key: str) -> bool:
        """True when the action was begun by a gymd that died before its end."""
        return key in self._unknown

    def covers(self, key: str) -> bool:
        """True when this journal surely existed before that action was first sent: an earlier one stands in it."""
        parsed = _order_of(key)
        if parsed is None:
            return False
        earliest = self._earliest.get(parsed[0])
        return earliest is not None and earliest < parsed[1]

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def _order_note(self, key: str) -> None:
        parsed = _order_of(key)
        if parsed is not None:
            self._earliest[parsed[0]] = min(self._earliest.get(parsed[0], parsed[1]), parsed[1])

    def _write(self, entry: Dict[str, Any]) -> Tuple[int, int]:
        return line_append(self._fd, json.dumps(entry, separators=(",", ":")).encode() + b"\n")

    def _load(self, path: Path) -> None:
        """Read what an earlier gymd wrote. A torn last line is cut: what it was to begin hasn't begun. Of one in the
        middle, what stands on it whole is taken."""
        position = 0
        torn, last = False, b"\n"
        with path.open("rb") as stream:
            for last in stream:
                whole = self._take_line(last.decode("latin-1"), position)
                torn = torn or (not whole and last.endswith(b"\n"))
                position += len(last)
        if not last.endswith(b"\n"):
            if whole:
                os.write(self._fd, b"\n")
            else:
                os.ftruncate(self._fd, position - len(last))
        if torn:
            # What the lost lines named may have been done: of nothing before the next action is it sure that it wasn't.
            self._earliest.clear()

    def _take_line(self, line: str, position: int) -> bool:
        """Take the entry of a line, or all that a torn one still holds; False when something of it is lost."""
        at, whole = 0, True
        while line[at:].strip():
            match = _ENTRY.search(line, at)
            if match is None:
                return False
            whole = whole and match.start() == at
            try:
                entry, end = _DECODER.raw_decode(line, match.start())
                self._take(entry, (position + match.start(), end - match.start()))
            except (ValueError, KeyError):
                whole, end = False, match.start() + 1
            at = end
        return whole

    def _take(self, entry: Dict[str, Any], place: Tuple[int, int]) -> None:
        if "begin" in entry:
            self._order_note(entry["begin"])
            self._unknown[entry["begin"]] = None
        else:
            self._places[entry["done"]] = place
            self._unknown.pop(entry["done"], None)


def _order_of(key: str) -> Tuple[str, Tuple[int, int]] | None:
    match = _ORDERED.match(key)
    return (match.group(1), (int(match.group(2)), int(match.group(3)))) if match else None
