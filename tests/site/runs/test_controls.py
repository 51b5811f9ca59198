"""What people and clocks do to a run under way: cancel, pause, deadline. On a real node."""

import threading
import time
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from gymnode.transport.base import NodeLink
from runs.ledger import Clock
from runs.models.run import Run
from runs.selectors import run_clock
from runs.services.controls import run_cancel, run_pause, run_resume
from runs.services.moves import Fact, run_end_begin, run_locked, run_pause_now
from runs.services.queueing import queue_start
from runs.services.stepping import run_advance
from runs.states import End, MoveRefused, Status
from tests.site.runs.driving import drive, file_below, kinds, trace

LONG = """
task: example-task
steps:
  - say: "It takes a while."
    call: {run_command: {command: "for i in $(seq 600); do sleep 0.5; echo $i > beat; done", timeout_s: 300}}
  - say: "Over."
    call: {finish: {}}
"""
HELD = """
task: example-task
steps:
  - say: "Until it is let go."
    call: {run_command: {command: "echo x > begun; until [ -e go ]; do sleep 0.1; done; echo slept", timeout_s: 60}}
  - say: "Over."
    call: {finish: {}}
"""
SHORT = "task: example-task\nsteps:\n  - call: {run_command: {command: pwd}}\n  - call: {finish: {}}\n"


class Background:
    """A slice in a thread of its own, as a worker's."""

    def __init__(self, run: Run) -> None:
        self.thread = threading.Thread(target=self._work, args=(run.pk,), daemon=True)
        self.thread.start()

    def _work(self, run_id: int) -> None:
        try:
            run_advance(run_id=run_id)
        finally:
            connection.close()

    def wait(self, seconds: float) -> None:
        self.thread.join(seconds)
        assert not self.thread.is_alive(), "the slice still holds its thread"


def under_way(run: Run, kind: str = Clock.ACTION) -> Background:
    """The run with its slice in the background, once the remote command has begun."""
    slice_ = Background(run)
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        run.refresh_from_db()
        if run.clock_kind == kind and run.steps:
            time.sleep(0.5)
            return slice_
        time.sleep(0.05)
    raise AssertionError(f"{run} is {run.status}, clock {run.clock_kind}")


@pytest.fixture
def started(queue, node, scorer):
    """A queued run that has its node; nothing more."""

    def make() -> Run:
        run = queue()
        queue_start()
        run.refresh_from_db()
        return run

    return make


def test_cancel_ends_a_remote_command_within_seconds(started, playbook, gymd: NodeLink, node, alice) -> None:
    """R7: process group dead, node free, state cancelled, late events ignored."""
    playbook(LONG)
    run = started()
    slice_ = under_way(run)
    begun = time.monotonic()
    run_cancel(run=run, by=alice, why="changed my mind")
    slice_.wait(60)
    while node.leases.filter(released_at=None).exists():
        assert time.monotonic() - begun < 100  # the command goes on for 300
        time.sleep(0.1)
    run.refresh_from_db()
    assert (run.status, run.end_reason, run.leased) == ("cancelled", "cancelled", False)
    assert kinds(run)[-1] == "cancelled"
    assert gymd.request("GET", f"/v1/runs/{run.key}/sessions/main/log").status == 404


def test_a_paused_run_is_frozen_and_not_charged(started, playbook, gymd_home, alice) -> None:
    playbook(HELD)
    run = started()
    slice_ = under_way(run)
    run_pause(run=run, by=alice)
    drive(run, until=lambda each: each.status == "waiting" and each.wake_at is None)
    charged = run.charged_s
    time.sleep(1.5)
    run.refresh_from_db()
    assert (run.waiting_reason, run.charged_s, run.clock_kind) == ("paused", charged, "paused")
    run_resume(run=run, by=alice)
    file_below(gymd_home, "begun").with_name("go").touch()
    drive(run)
    slice_.wait(60)
    (observed,) = [body for kind, body in trace(run) if kind == "observed" and body["name"] == "run_command"]
    assert "slept" in observed["text"]
    assert run_clock(run).by_kind["paused"] >= 1.5
    assert run.status == "finished"


def test_the_deadline_kills_jobs_and_the_final_evaluation_runs(started, playbook) -> None:
    playbook(LONG)
    run = started()
    slice_ = under_way(run)
    Run.objects.filter(pk=run.pk).update(deadline_at=timezone.now() - timedelta(seconds=1))
    drive(run)
    slice_.wait(60)
    run.refresh_from_db()
    assert (run.status, run.end_reason) == ("finished", "deadline")
    assert run.score is not None
    assert "budget_reached" in kinds(run)


def test_a_step_limit_is_followed_by_the_final_evaluation(queue, node, playbook, scorer) -> None:
    playbook(SHORT)
    run = queue()
    Run.objects.filter(pk=run.pk).update(limit_steps=1)
    drive(run)
    assert (run.status, run.end_reason, run.score) == ("finished", "step_limit", 80)


@pytest.mark.parametrize("control", [run_cancel, run_pause, run_resume])
def test_nothing_can_be_done_to_a_run_that_is_over(queue, node, playbook, scorer, alice, control) -> None:
    """R6: refused, unchanged."""
    playbook("task: example-task\nsteps:\n  - call: {finish: {}}\n")
    run = drive(queue())
    before = Run.objects.filter(pk=run.pk).values().get()
    with pytest.raises(MoveRefused):
        control(run=run, by=alice)
    assert Run.objects.filter(pk=run.pk).values().get() == before


def test_a_queued_run_is_cancelled_at_once(queue, alice) -> None:
    run = run_cancel(run=queue(), by=alice)
    run.refresh_from_db()
    assert (run.status, run.wake_at, run.leased) == (Status.CANCELLED, None, False)


def _finish(*, run: Run, by: object) -> None:
    with run_locked(run.pk) as locked:
        run_end_begin(locked, End.FINISH, Fact("finishing", {}))


def _pause_now(*, run: Run, by: object) -> None:
    with run_locked(run.pk) as locked:
        run_pause_now(locked)


@pytest.mark.parametrize("control", [_finish, _pause_now, run_cancel, run_pause, run_resume])
def test_a_cancelled_run_stays_cancelled(queue, alice, control) -> None:
    """R6: whatever finishes, pauses or resumes it comes too late; neither row nor trace changes."""
    run = run_cancel(run=queue(), by=alice)
    before = Run.objects.filter(pk=run.pk).values().get()
    with pytest.raises(MoveRefused):
        control(run=run, by=alice)
    assert run_advance(run_id=run.pk) is False
    assert Run.objects.filter(pk=run.pk).values().get() == before
    assert kinds(run)[-1] == "cancelled"
