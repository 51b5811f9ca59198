"""Room: portal.nodes. The collector: one process per site that holds a link to every node in service.

A thread per node waits for changes, another reads its machine every ten seconds. Whatever fails (database, Redis, a
node, a sink) is tried again; the process itself ends only when told to.
"""

import logging
import threading
import time
from collections.abc import Callable

from django.db import connection

from portal.core.idempotency import idempotency_prune
from portal.nodes.links import Dial, link_for
from portal.nodes.samples import samples_prune
from portal.nodes.watching import Flow, NodeWatcher, Timing, watched_ids

LOOK_S = 2.0
PRUNE_S = 3600.0
FAULT_PAUSE_S = 1.0
log = logging.getLogger(__name__)


class Collector:
    """Starts and stops watchers as nodes come into service and leave it."""

    def __init__(self, dial: Dial = link_for, *, timing: Timing | None = None, flow: Flow | None = None) -> None:
        self.stop = threading.Event()
        self._dial = dial
        self._timing = timing or Timing()
        self._flow = flow or Flow()
        self._watchers: dict[int, NodeWatcher] = {}
        self._pruned_at = time.monotonic()

    def run(self) -> None:
        """Until `stop` is set."""
        while not self.stop.is_set():
            wait = self._guarded("looking for nodes", self._look, LOOK_S)
            self.stop.wait(wait)
        for watcher in self._watchers.values():
            watcher.stop.set()

    def _look(self) -> float:
        wanted = set(watched_ids())
        for node_id in set(self._watchers) - wanted:
            self._watchers.pop(node_id).stop.set()
        for node_id in wanted - set(self._watchers):
            self._watchers[node_id] = self._started(node_id)
        if time.monotonic() - self._pruned_at > PRUNE_S:
            self._pruned_at = time.monotonic()
            samples_prune()
            idempotency_prune()
        return LOOK_S

    def _started(self, node_id: int) -> NodeWatcher:
        watcher = NodeWatcher(node_id, self._dial, timing=self._timing, flow=self._flow)
        for name, work in (("watch", self._watch), ("sample", self._sample)):
            threading.Thread(target=work, args=(watcher,), name=f"{name}-{node_id}", daemon=True).start()
        return watcher

    def _watch(self, watcher: NodeWatcher) -> None:
        while not watcher.stop.is_set() and not self.stop.is_set():
            watcher.stop.wait(self._guarded(f"watching node {watcher.node_id}", watcher.turn, FAULT_PAUSE_S))
        connection.close()

    def _sample(self, watcher: NodeWatcher) -> None:
        def once() -> float:
            watcher.sample()
            return self._timing.sample

        while not watcher.stop.is_set() and not self.stop.is_set():
            watcher.stop.wait(self._guarded(f"reading node {watcher.node_id}", once, self._timing.sample))
        connection.close()

    def _guarded(self, what: str, work: Callable[[], float], pause: float) -> float:
        """The top of each thread: whatever `work` raises is logged, and it is called again after `pause` seconds."""
        try:
            return work()
        except Exception:
            log.exception("%s failed; trying again", what)
            return pause
        finally:
            # A connection that broke, or belongs to a server that was restarted, is not used again.
            connection.close()
