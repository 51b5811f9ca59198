"""Room: runs. How a run's state changes: under its row's lock, through the table, with an event and the clock.

Only these functions write `status` and what hangs on it. They are called by the other services, with the fence of a
claim (`epoch`) or without (controls and tick, which take the run over by raising the epoch).
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from runs import bell
from runs.agent.protocols import LeaseLost
from runs.enqueue import advance_enqueue
from runs.eventlog import Change, clock_switch, event_append
from runs.ledger import Clock
from runs.models.run import Run
from runs.outbox import outbox_put
from runs.states import TERMINAL, End, Status, Waiting, move_check

WANTS_PAUSE = "pause"
NO_CLAIM: Mapping[str, Any] = {"worker": "", "worker_lock": None, "claim_expires_at": None}


@dataclass(frozen=True)
class Fact:
    """The event that a move writes."""

    kind: str
    body: Mapping[str, Any] = field(default_factory=dict)


@contextmanager
def run_locked(run_id: int, *, epoch: int | None = None) -> Iterator[Run]:
    """The run under its row lock, in a transaction. Raises LeaseLost when `epoch` is given and no longer the run's."""
    with transaction.atomic():
        run = Run.objects.select_for_update(no_key=True).get(pk=run_id)
        if epoch is not None and run.epoch != epoch:
            raise LeaseLost
        yield run


def run_move(
    run: Run, to: Status, fact: Fact | None, *, clock: Clock | None, close_as: Clock | None = None, **columns: Any
) -> None:
    """Move a locked run, write `columns` with it, append `fact` (None: an event beside it says it all).

    Raises MoveRefused, and then nothing has changed.
    """
    move_check(run.pk, run.status, to)
    values = {"status": to, "waiting_reason": "", **columns}
    for name, value in values.items():
        setattr(run, name, value)
    run.save(update_fields=list(values))
    if fact is not None:
        event_append(run.pk, fact.kind, fact.body, epoch=None, change=Change(clock=clock, close_as=close_as))
    elif clock is not None:
        clock_switch(run.pk, clock, epoch=None, close_as=close_as)
        bell.ring(run.pk, run.seq)


def run_take_over(run: Run) -> None:
    """Fence out whoever holds the locked run: from here on nothing an older holder writes or does counts."""
    run.epoch += 1
    for name, value in NO_CLAIM.items():
        setattr(run, name, value)
    run.save(update_fields=["epoch", *NO_CLAIM])


def run_wait(
    run: Run,
    reason: Waiting,
    fact: Fact | None,
    *,
    clock: Clock,
    wake_at: datetime | None,
    close_as: Clock | None = None,
    **columns: Any,
) -> None:
    """Let a locked run wait, holding no worker, until `wake_at` (None: until something happens)."""
    run_move(
        run,
        Status.WAITING,
        fact,
        clock=clock,
        close_as=close_as,
        waiting_reason=reason,
        wake_at=wake_at,
        job_sent_at=None,
        **NO_CLAIM,
        **columns,
    )


def run_pause_now(run: Run, *, by: Mapping[str, Any] | None = None) -> None:
    """Pause a locked run; whoever comes next freezes its processes, so that they neither work nor are charged."""
    conditions = {**run.conditions, "paused": True}
    wished = {"by": run.conditions.get("by", ""), "person": run.conditions.get("person")}
    fact = Fact("paused", by or wished)
    run_wait(run, Waiting.PAUSED, fact, clock=Clock.PAUSED, wake_at=timezone.now(), conditions=conditions, wanted="")
    advance_enqueue(run.pk)


def run_end_begin(run: Run, end: End, fact: Fact, **columns: Any) -> None:
    """A locked run stops working: the final evaluation follows. A worker is called."""
    run_move(
        run,
        Status.FINISHING,
        fact,
        clock=Clock.ENGINE,
        end_reason=end,
        wake_at=timezone.now(),
        job_sent_at=timezone.now(),
        conditions={},
        outage_since=None,
        outage_tries=0,
        **columns,
    )
    advance_enqueue(run.pk)


def run_end(run: Run, to: Status, fact: Fact | None, *, close_as: Clock | None = None, **columns: Any) -> None:
    """The last move of a locked run. Its clock stops; nodes still held are given back by whoever is called next."""
    assert to in TERMINAL
    now = timezone.now()
    run_move(
        run,
        to,
        fact,
        clock=Clock.ENGINE,
        close_as=close_as,
        ended_at=now,
        wake_at=now if run.leased else None,
        **columns,
    )
    Run.objects.filter(pk=run.pk).update(clock_kind="", clock_since=None, deadline_at=None, conditions={}, wanted="")
    outbox_put("run_ended", {"run": run.pk, "status": to.value, "end": run.end_reason})
    if run.leased:
        advance_enqueue(run.pk)
