"""Room: evaluator. `serve`: requests from a Redis stream, signed results into another. The one importer of redis.

At least once: an entry is acknowledged only after its result is in the stream; one whose evaluator died is taken up
at once by an evaluator started under the same name, or reclaimed by another after a silence. While a scoring runs, a
heartbeat keeps others from reclaiming it. A request that was answered is answered again with the very same envelope.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import chain
from types import FrameType
from typing import Any

import redis

from evaluator.answering import Answerer
from evaluator.contract import ContractError, ScoreRequest, sign, verify
from evaluator.keys import Keys, KeysMissing, keys_read
from evaluator.sandbox import Choice, probe
from evaluator.taskenv import task_env_open

REQUESTS, RESULTS, GROUP = "ib:score:requests", "ib:score:results", "evaluators"
ALLOWED = frozenset(
    [
        "PATH",
        "HOME",
        "LANG",
        "LC_ALL",
        "LC_CTYPE",
        "TZ",
        "TMPDIR",
        "PWD",
        "SHLVL",
        "_",
        "PYTHONPATH",
        "PYTHONUNBUFFERED",
        "PYTHONDONTWRITEBYTECODE",
    ]
) | {"PYTHONHASHSEED", "EVALUATOR_BROKER", "INVOCATION_ID", "JOURNAL_STREAM", "SYSTEMD_EXEC_PID"}
EXIT_ENVIRONMENT = 78
IDLE_MS = 60_000
HEARTBEAT_S = 15.0
MAX_DELIVERIES = 3
_BLOCK_MS = 2000
_KEPT_RESULTS = 100_000
_LOOK_BACK = 1000


class Stopping(BaseException):
    """SIGTERM or SIGINT: leave at once; what is under way stays pending and is reclaimed."""


def environment_faults(environment: Mapping[str, str]) -> list[str]:
    """Names of variables that an evaluator must not be given: it holds no credential but its own keys."""
    return sorted(name for name in environment if name not in ALLOWED)


def say(text: str) -> None:
    """One line of log."""
    print(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {text}", flush=True)


class Worker:
    """One consumer of the group; one scoring at a time."""

    def __init__(self, broker: redis.Redis, answerer: Answerer, keys: Keys, name: str, idle_ms: int = IDLE_MS) -> None:
        self.broker = broker
        self.answerer = answerer
        self.keys = keys
        self.name = name
        self.idle_ms = idle_ms
        self.answers: OrderedDict[str, bytes] = OrderedDict()  # by nonce

    def join(self) -> None:
        """Make stream and group where they are missing."""
        try:
            self.broker.xgroup_create(REQUESTS, GROUP, id="0", mkstream=True)
        except redis.ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise

    def serve(self) -> None:
        """Until stopped. A broker that is away is waited for."""
        wait_s = 0.5
        while True:
            try:
                self.join()
                self.resume()
                while True:
                    self.one()
                    wait_s = 0.5
            except (redis.ConnectionError, redis.TimeoutError, redis.ResponseError) as error:
                say(f"broker: {error}; again in {wait_s:g} s")
                time.sleep(wait_s)
                wait_s = min(wait_s * 2, 10)

    def one(self) -> bool:
        """Take one entry, a dead evaluator's first, and answer it; false when there was none."""
        for entry, fields, deliveries in chain(self.abandoned(), self.fresh()):
            self.handle(entry, fields, deliveries)
            return True
        return False

    def resume(self) -> None:
        """Answer what was under way under this name when it was killed or lost the broker."""
        read: Any = self.broker.xreadgroup(GROUP, self.name, {REQUESTS: "0"})
        for _, entries in read or ():
            for entry, fields in entries:
                self.handle(entry, fields or {}, self.deliveries(entry))

    def deliveries(self, entry: bytes) -> int:
        """How often an entry was given to an evaluator, this time included."""
        pending: Any = self.broker.xpending_range(REQUESTS, GROUP, min=entry, max=entry, count=1)
        return int(pending[0]["times_delivered"]) if pending else 1

    def abandoned(self) -> Iterator[tuple[bytes, Mapping[bytes, bytes], int]]:
        """An entry whose evaluator didn't show a sign of life for `idle_ms`."""
        claimed: Any = self.broker.xautoclaim(REQUESTS, GROUP, self.name, min_idle_time=self.idle_ms, count=1)
        for entry, fields in claimed[1]:
            if fields is not None:
                yield entry, fields, self.deliveries(entry)

    def fresh(self) -> Iterator[tuple[bytes, Mapping[bytes, bytes], int]]:
        """The next entry nobody has."""
        read: Any = self.broker.xreadgroup(GROUP, self.name, {REQUESTS: ">"}, count=1, block=_BLOCK_MS)
        for _, entries in read or ():
            for entry, fields in entries:
                yield entry, fields, 1

    def handle(self, entry: bytes, fields: Mapping[bytes, bytes], deliveries: int) -> None:
        """Answer one entry. What isn't signed by the site is dropped without an answer."""
        try:
            request = verify(fields.get(b"envelope", b""), self.keys.site_pem)
            if not isinstance(request, ScoreRequest):
                raise ContractError("not a request")  # one place says why an entry is dropped
        except ContractError as error:
            say(f"entry {entry.decode()} refused: {type(error).__name__}: {error}")
            self.finish(entry)
            return
        with self.heartbeat(entry):
            envelope = self.answered(request, deliveries) or self.scored(request, deliveries)
        self.send(request, envelope)
        self.finish(entry)

    def answered(self, request: ScoreRequest, deliveries: int) -> bytes | None:
        """The envelope that answered this very request before, here or by an evaluator that died right after."""
        if request.nonce in self.answers or deliveries == 1:
            return self.answers.get(request.nonce)
        recent: Any = self.broker.xrevrange(RESULTS, count=_LOOK_BACK)
        mark = request.nonce.encode()
        return next((bytes(fields[b"envelope"]) for _, fields in recent if mark in fields.get(b"envelope", b"")), None)

    def scored(self, request: ScoreRequest, deliveries: int) -> bytes:
        """Score and sign."""
        if deliveries > MAX_DELIVERIES:
            result = self.answerer.gave_up(request, f"{deliveries - 1} evaluators died while scoring this request")
        else:
            result = self.answerer.answer(request)
        say(f"evaluation {request.evaluation} try {request.try_no}: {result.outcome}, {result.seconds:.1f} s")
        return sign(result, self.keys.signing_pem)

    def send(self, request: ScoreRequest, envelope: bytes) -> None:
        """The result into the stream, and remembered."""
        self.answers[request.nonce] = envelope
        if len(self.answers) > _LOOK_BACK:
            self.answers.popitem(last=False)
        self.broker.xadd(RESULTS, {"envelope": envelope}, maxlen=_KEPT_RESULTS, approximate=True)

    def finish(self, entry: bytes) -> None:
        """The entry is done."""
        self.broker.xack(REQUESTS, GROUP, entry)
        self.broker.xdel(REQUESTS, entry)

    @contextmanager
    def heartbeat(self, entry: bytes) -> Iterator[None]:
        """Claim the entry again and again, so that it never looks abandoned while it is being scored."""
        over = threading.Event()
        beat_s = min(HEARTBEAT_S, self.idle_ms / 4000)

        def beat() -> None:
            while not over.wait(beat_s):
                try:
                    self.broker.xclaim(REQUESTS, GROUP, self.name, 0, [entry], justid=True)
                except redis.RedisError as error:
                    say(f"heartbeat: {error}")

        thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise Stopping


def serve_verb(args: argparse.Namespace) -> int:
    """Check the environment, find a sandbox, serve until SIGTERM."""
    foreign = environment_faults(os.environ)
    if foreign:
        advice = "start the evaluator with `env -i` and only what it needs"
        print(f"these variables are not for an evaluator: {', '.join(foreign)}; {advice}", file=sys.stderr)
        return EXIT_ENVIRONMENT
    try:
        keys = keys_read(args.keys, args.site_key)
    except KeysMissing as error:
        print(error, file=sys.stderr)
        return EXIT_ENVIRONMENT
    choice = Choice(args.level, args.bwrap, args.kernel or keys.kernel, args.work)
    sandbox = probe(task_env_open(args.task_env), choice)
    say(f"sandbox level {sandbox.level} ({sandbox.facts['walls']}), {keys!r}")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    answerer = Answerer(sandbox, keys, blobs=args.blobs)
    try:
        name = args.name or f"{socket.gethostname()}-{os.getpid()}"
        broker = redis.Redis.from_url(args.broker, health_check_interval=30)
        Worker(broker, answerer, keys, name, int(args.idle_s * 1000)).serve()
    except Stopping:
        say("stopped")
    finally:
        answerer.close()
    return 0
