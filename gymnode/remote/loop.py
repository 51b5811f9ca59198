"""Room: gymnode.remote. One thread, one epoll: control descriptors first, terminals after, timers in between.

Two hundred terminals that print without pause must not keep a request waiting, so control descriptors live in an
epoll of their own that is asked again before every terminal's callback. Whatever a callback raises ends what it
belongs to and is logged; the loop, and with it every other run of the node, goes on.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import os
import select
import sys
import time
import traceback
from typing import Callable, Dict, List, NamedTuple, Tuple

Callback = Callable[[int], None]
TURN_LIMIT = 64
MOST_LOGGED = 20
LOGGED_AGAIN_S = 60.0


class Timer:
    """A call that is due at a monotonic time; `cancel` makes it nothing."""

    def __init__(self, call: Callable[[], None]) -> None:
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        """Forget the call; harmless when it has run."""
        self.call = None


class _Watched(NamedTuple):
    callback: Callback
    control: bool
    on_fault: Callable[[], None] | None


class FaultLog:
    """Tracebacks on standard error, which is gymd's log: not without end, and harmless on a full disk."""

    def __init__(self) -> None:
        self._since, self._count = 0.0, 0

    def write(self) -> None:
        """Log the exception that is being handled."""
        now = time.monotonic()
        if now - self._since > LOGGED_AGAIN_S:
            self._since, self._count = now, 0
        self._count += 1
        if self._count <= MOST_LOGGED:
            with contextlib.suppress(OSError, ValueError):
                traceback.print_exc()
                sys.stderr.flush()


class Loop:
    """Readiness and time. Not thread-safe but for `call_from_thread`."""

    def __init__(self) -> None:
        self._outer = select.epoll()
        self._control = select.epoll()
        self._outer.register(self._control.fileno(), select.EPOLLIN)
        self._callbacks: Dict[int, _Watched] = {}
        self._timers: List[Tuple[float, int, Timer]] = []
        self._order = itertools.count()
        self._wake_read, self._wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._queued: List[Callable[[], None]] = []
        self.running = True
        self.faults = FaultLog()
        self.watch(self._wake_read, self._on_wake)

    def watch(
        self, fd: int, callback: Callback, *, control: bool = True, on_fault: Callable[[], None] | None = None
    ) -> None:
        """Call `callback(events)` whenever `fd` can be read; terminals pass `control=False`. `on_fault` closes what the
        descriptor belongs to when the callback raises."""
        self._callbacks[fd] = _Watched(callback, control, on_fault)
        (self._control if control else self._outer).register(fd, select.EPOLLIN)

    def interest(self, fd: int, events: int) -> None:
        """Change what is waited for (select.EPOLLIN, EPOLLOUT) on a watched descriptor."""
        control = self._callbacks[fd].control
        (self._control if control else self._outer).modify(fd, events)

    def unwatch(self, fd: int) -> None:
        """Stop watching; harmless for a descriptor that isn't watched. Call before closing it."""
        entry = self._callbacks.pop(fd, None)
        if entry is not None:
            (self._control if entry.control else self._outer).unregister(fd)

    def later(self, delay_s: float, call: Callable[[], None]) -> Timer:
        """Run `call` once, `delay_s` seconds from now."""
        timer = Timer(call)
        heapq.heappush(self._timers, (time.monotonic() + delay_s, next(self._order), timer))
        return timer

    def call_from_thread(self, call: Callable[[], None]) -> None:
        """Run `call` in the loop's thread soon; the only method other threads may use."""
        self._queued.append(call)
        os.write(self._wake_write, b"w")

    def run(self) -> None:
        """Serve until `running` is made false."""
        while self.running:
            for fd, events in self._outer.poll(self._wait_s(), TURN_LIMIT):
                if fd == self._control.fileno():
                    self._serve_control()
                    continue
                self._serve_control()
                self._call(fd, events)
            self._serve_timers()

    def _call(self, fd: int, events: int) -> None:
        entry = self._callbacks.get(fd)
        if entry is None:
            return
        try:
            entry.callback(events)
        except Exception:  # noqa: BLE001 - the top of the loop: one fault must not end every run of the node
            self.faults.write()
            if entry.on_fault is not None:
                self._guard(entry.on_fault)

    def _guard(self, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception:  # noqa: BLE001 - the top of the loop: one fault must not end every run of the node
            self.faults.write()

    def _serve_control(self) -> None:
        for fd, events in self._control.poll(0, TURN_LIMIT):
            self._call(fd, events)

    def _wait_s(self) -> float:
        while self._timers and self._timers[0][2].call is None:
            heapq.heappop(self._timers)
        if not self._timers:
            return -1
        return max(0.0, self._timers[0][0] - time.monotonic())

    def _serve_timers(self) -> None:
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            timer = heapq.heappop(self._timers)[2]
            if timer.call is not None:
                call, timer.call = timer.call, None
                self._guard(call)

    def _on_wake(self, _events: int) -> None:
        os.read(self._wake_read, 65536)
        queued, self._queued = self._queued, []
        for call in queued:
            self._guard(call)
