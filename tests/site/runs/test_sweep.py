"""Rows left behind in every state and every waiting reason, with old times and null starts: each settles."""

import time
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from portal.nodes.models import Node
from runs.models.run import Run
from runs.services.controls import run_resume
from runs.services.queueing import queue_start
from runs.services.stepping import run_advance
from runs.services.ticking import tick
from runs.states import LIVE, Status, Waiting

FINISH = "task: example-task\nsteps:\n  - call: {finish: {}}\n"
STATES = [(status, "") for status in sorted(LIVE - {Status.WAITING})]
STATES += [(Status.WAITING, reason) for reason in sorted(Waiting)]


def left_behind(run: Run, state: tuple[str, str], left: str) -> Run:
    """The run as of three days ago: `due` since then, `forgotten` by everybody, or `held` by a worker that vanished."""
    old = timezone.now() - timedelta(days=3)
    status, reason = state
    facts: dict[str, Any] = {"status": status, "waiting_reason": reason, "job_sent_at": old, "created_at": old}
    facts |= {"started_at": None, "clock_kind": "", "clock_since": None}
    facts |= {"prepared_at": None, "leased": False} if status == Status.QUEUED else {}
    facts |= {"wake_at": old if left == "due" else None}
    facts |= _held(old) if left == "held" and status != Status.QUEUED else {}
    facts |= {"end_reason": "finish"} if status == Status.FINISHING else {}
    facts |= {"conditions": {"paused": True}} if reason == Waiting.PAUSED else {}
    if reason in (Waiting.MODEL, Waiting.NODE_LOST, Waiting.STORE):
        facts |= {"outage_since": old, "outage_tries": 9, "failure_code": "provider_down"}
    Run.objects.filter(pk=run.pk).update(**facts)
    return run


def _held(old: datetime) -> dict[str, Any]:
    return {"claim_expires_at": old, "worker": "gone:1:aa", "worker_lock": 4_343_434_343, "epoch": 7}


def settled(runs: list[Run], seconds: float = 120.0) -> list[Run]:
    """Tick, and work on what is due, until every run is over or rests as a paused one."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        tick()
        for run in runs:
            run_advance(run_id=run.pk)
            run.refresh_from_db()
        if all((run.ended and not run.leased) or resting(run) for run in runs):
            return runs
    raise AssertionError([f"{run.status} {run.waiting_reason} wake {run.wake_at}" for run in runs if not run.ended])


def resting(run: Run) -> bool:
    return run.waiting_reason == Waiting.PAUSED and run.wake_at is None and not run.claim_expires_at


def test_every_old_row_without_a_node_settles(queue, node, playbook, scorer) -> None:
    """R5: a queued one runs; whoever worked has lost its node and says so; none is scored 0."""
    playbook(FINISH)
    runs = [left_behind(queue(), state, "due") for state in STATES]
    for run, (status, _reason) in zip(settled(runs), STATES, strict=True):
        if resting(run):
            settled([run_resume(run=run, by=None)])
            run.refresh_from_db()
        queued = status == Status.QUEUED
        assert run.status == ("finished" if queued else "failed"), (status, run.failure_code)
        assert run.score == (80 if queued else None)
        assert queued or run.failure_code == "node_lost"


def test_every_old_row_with_its_node_goes_on_to_its_score(queue, node, playbook, scorer, alice, settings) -> None:
    """R5: in every state, forgotten by everybody; a paused one stays paused till it is resumed."""
    playbook(FINISH)
    Node.objects.update(capacity=99, cpus=99, memory_gb=999)
    runs = [queue() for _ in STATES]
    queue_start()
    settings.SLICE_SECONDS = 0  # prepared and given its task, nothing more
    assert all(run_advance(run_id=run.pk) for run in runs)
    settings.SLICE_SECONDS = 30
    for run, state in zip(runs, STATES, strict=True):
        left_behind(run, state, "forgotten")
    for run, state in zip(settled(runs), STATES, strict=True):
        if state == (Status.WAITING, Waiting.PAUSED):
            assert resting(run)
            settled([run_resume(run=run, by=alice)])
            run.refresh_from_db()
        assert (run.status, run.score, run.leased) == ("finished", 80, False), state


def test_the_tick_takes_every_state_from_a_worker_that_vanished(queue, scorer) -> None:
    """R5: and leaves alone what waits for a person or for the evaluator."""
    runs = [left_behind(queue(), state, "held") for state in STATES]
    waits = left_behind(queue(), (Status.WAITING, Waiting.EVALUATION), "forgotten")
    facts = {"ordinal": 1, "by": "agent", "nonce": "n", "bundle_sha256": "0" * 64}
    waits.evaluations.create(requested_at=timezone.now(), **facts)
    paused = left_behind(queue(), (Status.WAITING, Waiting.PAUSED), "forgotten")
    tick()
    for run, state in zip(runs, STATES, strict=True):
        run.refresh_from_db()
        assert (run.claim_expires_at, run.worker) == (None, ""), state
        assert run.wake_at, state
    for run in (waits, paused):
        run.refresh_from_db()
        assert run.wake_at is None
