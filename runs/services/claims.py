"""Room: runs. Claims: who works on a run, fenced by an epoch, renewed by one heartbeat per process.

A claim is a conditional UPDATE: of two workers with the same job one gets it, the other finds nothing to do.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache

import psycopg
from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import F, Q
from django.utils import timezone

from runs.enqueue import advance_enqueue
from runs.models.run import Run
from runs.services.moves import NO_CLAIM
from runs.states import Status
from runs.workers import LifeLock, Worker, this_worker

BEAT_S = 1.0
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Claim:
    """The right to work on one run, until somebody raises its epoch."""

    run_id: int
    epoch: int


def claim_take(run_id: int, worker: Worker) -> Claim | None:
    """Claim a run that is due; None when it isn't, or when somebody else holds it."""
    now = timezone.now()
    free = Q(claim_expires_at=None) | Q(claim_expires_at__lt=now)
    due = Run.objects.filter(free, pk=run_id, wake_at__lte=now).exclude(status=Status.QUEUED)
    with transaction.atomic():
        taken = due.update(
            epoch=F("epoch") + 1,
            worker=worker.name,
            worker_lock=worker.lock,
            claim_expires_at=now + timedelta(seconds=settings.CLAIM_SECONDS),
            job_sent_at=None,
        )
        if taken != 1:
            return None
        return Claim(run_id, Run.objects.values_list("epoch", flat=True).get(pk=run_id))


def claim_release(claim: Claim, *, wake_at: datetime | None) -> bool:
    """Let go of a claim that is still ours, and have the run worked on at `wake_at`; False when it was taken over."""
    now = timezone.now()
    at_once = wake_at is not None and wake_at <= now
    with transaction.atomic():
        held = Run.objects.filter(pk=claim.run_id, epoch=claim.epoch, worker=this_worker().name)
        released = held.update(wake_at=wake_at, job_sent_at=now if at_once else None, **NO_CLAIM)
        if released and at_once:
            advance_enqueue(claim.run_id)
    return bool(released)


def claims_renew(claims: set[Claim]) -> set[Claim]:
    """Extend these claims in one statement; returns those that are still ours. A process that lost a run and took it
    again may ask for both of its claims.
    """
    asked = list(claims)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE runs_run r SET claim_expires_at = clock_timestamp() + make_interval(secs => %s)"
            " FROM unnest(%s::bigint[], %s::bigint[]) AS held(id, epoch)"
            " WHERE r.id = held.id AND r.epoch = held.epoch AND r.claim_expires_at IS NOT NULL RETURNING r.id, r.epoch",
            [settings.CLAIM_SECONDS, [claim.run_id for claim in asked], [claim.epoch for claim in asked]],
        )
        return {Claim(run_id, epoch) for run_id, epoch in cursor.fetchall()}


class Heart:
    """Renews every claim of this process from one thread, and says when one was taken away (`on_lost`).

    While there are claims, `pulse` is called about once a second from a second thread, however long it takes.
    """

    def __init__(self, worker: Worker) -> None:
        self.life = LifeLock(worker)
        self.pulse: Callable[[], None] = _nothing
        self._guard = threading.Lock()
        self._claims: dict[Claim, Callable[[Claim], None]] = {}
        self._wake = threading.Event()
        self._threads: dict[str, threading.Thread] = {}

    @contextmanager
    def keeping(self, claim: Claim, on_lost: Callable[[Claim], None]) -> Iterator[None]:
        """Renew `claim` until the block ends. `on_lost` is called once, in the heart's thread, and must be quick."""
        with self._guard:
            self._claims[claim] = on_lost
            for name, work in (("heart", self._beat), ("pulse", self._pulsate)):
                known = self._threads.get(name)
                if known is None or not known.is_alive():
                    self._threads[name] = threading.Thread(target=work, name=name, daemon=True)
                    self._threads[name].start()
            self._wake.set()
        try:
            yield
        finally:
            with self._guard:
                self._claims.pop(claim, None)

    def _beat(self) -> None:
        while True:
            with self._guard:
                held = set(self._claims)
                if not held:
                    self._wake.clear()
            if not held:
                connection.close()
                self._wake.wait()
                continue
            self._once(held)
            time.sleep(BEAT_S)

    def _pulsate(self) -> None:
        while True:
            self._wake.wait()
            self.pulse()
            connection.close()
            time.sleep(BEAT_S)

    def _once(self, held: set[Claim]) -> None:
        try:
            self.life.ensure()
            lost = held - claims_renew(held)
        except (DatabaseError, psycopg.Error) as problem:
            # Claims expire while the database is away; whoever holds a newer epoch then fences us out.
            log.warning("claims were not renewed: %s", type(problem).__name__)
            connection.close()
            return
        for claim in lost:
            with self._guard:
                told = self._claims.pop(claim, None)
            if told is not None:
                told(claim)


def _nothing() -> None:
    """No pulse."""


@cache
def heart() -> Heart:
    """The heart of this process."""
    return Heart(this_worker())
