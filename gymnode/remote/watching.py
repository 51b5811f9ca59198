"""Room: gymnode.remote. What changed since when: the long poll of the collector.

Numbers rise for ever, also across a restart of gymd, since they begin at the clock. Output is coalesced: one entry
per session, carrying the newest total. Watchers are woken at 20 Hz at most.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Any, Callable, Dict, List, Tuple

from gymnode.remote.loop import Loop, Timer

MAX_CHANGES = 20_000
BATCH_S = 0.05

Change = Dict[str, Any]
Answer = Callable[[Dict[str, Any]], None]


class Changes:
    """The newest changes by (run, session, kind, job) and those who wait for the next."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._number = int(time.time() * 1000) * 1000
        self._first = self._number
        self._changes: "OrderedDict[Tuple[str, ...], Change]" = OrderedDict()
        self._waiting: List[Tuple[int, Answer, Timer]] = []
        self._batch: Timer | None = None

    def note(self, kind: str, run: str, session: str, **facts: Any) -> None:
        """Record one change; an older one of the same kind and job gives way."""
        self._number += 1
        key = (kind, run, session, str(facts.get("job", "")))
        self._changes[key] = {"n": self._number, "kind": kind, "run": run, "session": session, **facts}
        self._changes.move_to_end(key)
        while len(self._changes) > MAX_CHANGES:
            self._changes.popitem(last=False)
        if self._waiting and self._batch is None:
            self._batch = self._loop.later(BATCH_S, self._wake)

    def forget(self, run: str) -> None:
        """Drop a removed run's changes, but for the note that it is gone."""
        for key in [key for key in self._changes if key[1] == run]:
            del self._changes[key]

    def ask(self, after: int, wait_s: float, answer: Answer) -> None:
        """Answer with all changes after `after`, at once or when there is one, at the latest after `wait_s`."""
        if after > self._number or after == 0:
            after = min(after, self._first)
        if self._after(after) or wait_s <= 0:
            answer(self._answer_for(after))
            return
        timer = self._loop.later(wait_s, lambda: self._expire(answer))
        self._waiting.append((after, answer, timer))

    def _after(self, number: int) -> List[Change]:
        found: List[Change] = []
        for change in reversed(self._changes.values()):
            if change["n"] <= number:
                break
            found.append(change)
        return found[::-1]

    def _answer_for(self, after: int) -> Dict[str, Any]:
        return {"cursor": self._number, "changes": self._after(after)}

    def _expire(self, answer: Answer) -> None:
        for entry in self._waiting:
            if entry[1] is answer:
                self._waiting.remove(entry)
                answer(self._answer_for(entry[0]))
                return

    def _wake(self) -> None:
        self._batch = None
        waiting, self._waiting = self._waiting, []
        for after, answer, timer in waiting:
            timer.cancel()
            answer(self._answer_for(after))
