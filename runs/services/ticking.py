"""Room: runs. The tick: four times a second it finds what is due in the database, whatever the broker forgot.

Lost claims, forgotten runs, used-up time, due and stale runs, free nodes, evaluations without an answer. Any number of
ticks may run at once: rows are taken with SKIP LOCKED, and each part is a transaction of its own.
"""

import logging
import time
from collections.abc import Callable
from datetime import timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from runs.agent.protocols import StopReason
from runs.enqueue import advance_enqueue
from runs.eventlog import clock_switch
from runs.ledger import Clock
from runs.models.evaluation import By, Evaluation, EvaluationState
from runs.models.run import Run
from runs.scoring.client import EvaluatorDown
from runs.services.evaluating import evaluations_resend, results_take
from runs.services.moves import Fact, run_end_begin, run_take_over
from runs.services.queueing import queue_start
from runs.states import LIVE, End, Status
from runs.workers import locks_held

AT_ONCE = 500
STALE_JOB_S = 10.0
LATE_S = 2.0
log = logging.getLogger(__name__)
_ticked = [0.0]  # when this process last ticked, on the monotonic clock


def tick() -> None:
    """One look at everything. A part that fails doesn't keep the others from their turn."""
    _ticked[0] = time.monotonic()
    for part in (
        claims_free_lost,
        runs_forgotten_wake,
        deadlines_enforce,
        queue_look,
        runs_due_enqueue,
        _results,
        _resend,
    ):
        _guarded(part)


def tick_if_late() -> None:
    """A look, unless this process had one just now: a worker whose threads all hold slices has none left for the
    tick's job, and the time of its runs must be kept all the same.
    """
    if time.monotonic() - _ticked[0] > LATE_S:
        tick()


def _guarded(part: Callable[[], object]) -> None:
    try:
        part()
    except EvaluatorDown as problem:
        log.warning("the evaluator's queue is away: %s", problem)
    except Exception:
        log.exception("a part of the tick failed: %s", part.__name__)


def _results() -> int:
    return results_take()


def _resend() -> int:
    return evaluations_resend()


def claims_free_lost() -> list[int]:
    """Runs whose worker died (its advisory lock is gone) or vanished (its claim ran out) are free and due again.

    The runs are read before the locks: a worker takes its lock before its first claim, so a claim seen here whose lock
    isn't seen after it is surely lost.
    """
    held = Run.objects.filter(claim_expires_at__isnull=False)
    claimed = list(held.values_list("pk", "epoch", "worker_lock", "claim_expires_at"))
    if not claimed:
        return []
    alive, now = locks_held(), timezone.now()
    lost = [
        (pk, epoch) for pk, epoch, lock, expires in claimed if expires is None or expires < now or lock not in alive
    ]
    return [pk for pk, epoch in lost if _free(pk, epoch)]


def _free(run_id: int, epoch: int) -> bool:
    """Our restart is nobody's time: the clock stands until the next slice."""
    with transaction.atomic():
        held = Run.objects.filter(pk=run_id, epoch=epoch, claim_expires_at__isnull=False)
        run = held.select_for_update(skip_locked=True, no_key=True).first()
        if run is None:
            return False
        log.warning("run %s: its worker %s is gone", run_id, run.worker)
        now = timezone.now()
        run_take_over(run)
        Run.objects.filter(pk=run_id).update(wake_at=now, job_sent_at=now)
        if not run.ended:
            clock_switch(run_id, Clock.INFRASTRUCTURE, epoch=None)
        advance_enqueue(run_id)
    return True


def runs_forgotten_wake() -> int:
    """Live runs that nobody holds and nothing will wake are due: all but paused ones and those whose evaluation is open
    or, with the final one, answered. No release leaves such a row; one that is found all the same must not wait for
    ever.
    """
    evaluations = Evaluation.objects.filter(run=OuterRef("pk"))
    answering = Exists(evaluations.filter(Q(state=EvaluationState.REQUESTED) | Q(by=By.FINAL)))
    still = Run.objects.filter(status__in=LIVE, wake_at=None, claim_expires_at=None)
    return still.exclude(conditions__has_key="paused").exclude(answering).update(wake_at=timezone.now())


def deadlines_enforce() -> list[int]:
    """Runs whose working time is used up stop working, whoever holds them and whatever they are doing."""
    over = Run.objects.filter(deadline_at__lte=timezone.now()).exclude(status=Status.FINISHING)
    ended: list[int] = []
    for pk in over.values_list("pk", flat=True)[:AT_ONCE]:
        with transaction.atomic():
            run = over.filter(pk=pk).select_for_update(skip_locked=True, no_key=True).first()
            if run is None or run.ended:
                continue
            run_take_over(run)
            run_end_begin(run, End.DEADLINE, Fact("budget_reached", {"budget": StopReason.DEADLINE.value}))
            ended.append(pk)
    return ended


def queue_look() -> list[int]:
    """Start queued runs, if it is time to look."""
    if Run.objects.filter(status=Status.QUEUED, wake_at__lte=timezone.now()).exists():
        return queue_start()
    return []


def runs_due_enqueue() -> int:
    """Enqueue what is due and isn't held: waits that are over, and jobs that the broker lost."""
    now = timezone.now()
    unsent = Q(job_sent_at=None) | Q(job_sent_at__lt=now - timedelta(seconds=STALE_JOB_S))
    due = Run.objects.filter(unsent, wake_at__lte=now, claim_expires_at=None).exclude(status=Status.QUEUED)
    with transaction.atomic():
        rows = due.select_for_update(skip_locked=True, no_key=True).order_by("wake_at").values_list("pk", flat=True)
        found = list(rows[:AT_ONCE])
        Run.objects.filter(pk__in=found).update(job_sent_at=now)
        for pk in found:
            advance_enqueue(pk)
    return len(found)
