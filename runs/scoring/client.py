"""Room: runs. The evaluator as a port: signed requests go out, signed results come back, nothing else crosses.

`QueueEvaluator` is the site's: two Redis streams. `fake.py` holds the double that ships. Whatever comes back is
verified by services/evaluating.py.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, cast

import redis

from runs.bell import broker
from runs.workers import this_worker

REQUESTS = "ib:score:requests"
RESULTS = "ib:score:results"
GROUP = "site"
FIELD = b"envelope"
STREAM_LENGTH = 100_000
BATCH = 50
STALE_MS = 30_000


class EvaluatorDown(Exception):
    """The way to the evaluator is closed at the moment; the request stays in the database and is sent again."""


@dataclass(frozen=True)
class Delivered:
    """One signed result; `receipt` is what `settle` needs."""

    receipt: str
    envelope: bytes


class Evaluator(Protocol):
    """Where requests go and results come from. Results may come twice, late, or altered: the caller checks."""

    def submit(self, envelope: bytes) -> str:
        """Hand a signed request over; returns a ticket. Raises EvaluatorDown."""
        ...

    def holds(self, ticket: str) -> bool:
        """Whether the request still waits or is being worked on. False: lost or answered. Raises EvaluatorDown."""
        ...

    def results(self) -> Sequence[Delivered]:
        """What has come back and isn't settled, without waiting. Raises EvaluatorDown."""
        ...

    def settle(self, delivered: Delivered) -> None:
        """This result is stored or dropped; don't deliver it again. Raises EvaluatorDown."""
        ...


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except redis.RedisError as problem:
        raise EvaluatorDown(type(problem).__name__) from problem


class QueueEvaluator:
    """The evaluator program behind two Redis streams, each entry one field `envelope`."""

    def __init__(self, connection: redis.Redis) -> None:
        self._redis = connection

    def submit(self, envelope: bytes) -> str:
        with _translated():
            ticket = self._redis.xadd(REQUESTS, {FIELD: envelope}, maxlen=STREAM_LENGTH, approximate=True)
        return cast("bytes", ticket).decode()

    def holds(self, ticket: str) -> bool:
        with _translated():
            return bool(self._redis.xrange(REQUESTS, ticket, ticket, count=1))

    def results(self) -> Sequence[Delivered]:
        with _translated():
            try:
                return self._read()
            except redis.ResponseError as problem:
                if "NOGROUP" not in str(problem):
                    raise
                # A fresh or restarted server: make the group from the first entry on, so that nothing is passed over.
                self._redis.xgroup_create(RESULTS, GROUP, id="0", mkstream=True)
                return self._read()

    def _read(self) -> Sequence[Delivered]:
        name = this_worker().name
        fresh = cast("list[Any]", self._redis.xreadgroup(GROUP, name, {RESULTS: ">"}, count=BATCH)) or []
        entries = [entry for _, found in fresh for entry in found]
        # What a process took and didn't settle before it died.
        entries += cast("Any", self._redis.xautoclaim(RESULTS, GROUP, name, STALE_MS, count=BATCH))[1]
        return [Delivered(key.decode(), fields.get(FIELD, b"")) for key, fields in entries if fields]

    def settle(self, delivered: Delivered) -> None:
        with _translated():
            self._redis.xack(RESULTS, GROUP, delivered.receipt)
            self._redis.xdel(RESULTS, delivered.receipt)


@cache
def _queue() -> QueueEvaluator:
    return QueueEvaluator(broker())


_instead: list[Evaluator] = []


def evaluator() -> Evaluator:
    """The evaluator of this installation."""
    return _instead[-1] if _instead else _queue()


@contextmanager
def evaluator_instead(other: Evaluator) -> Iterator[None]:
    """Use another implementation until the block ends: for tests and tools of one process."""
    _instead.append(other)
    try:
        yield
    finally:
        _instead.remove(other)
