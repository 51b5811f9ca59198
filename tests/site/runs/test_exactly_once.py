"""A worker killed between any two phases leads to the same trace as one that lived, and no action runs twice."""

import re
import threading
import time

import pytest
from django.db import connection
from django.utils import timezone

from gymnode.workbench import Bench
from runs.agent.events import Kind
from runs.models.run import Run
from runs.services import claims
from runs.services import session as session_module
from runs.services.claims import claim_take
from runs.services.queueing import queue_start
from runs.services.stepping import run_advance
from runs.workers import this_worker
from tests.site.runs.driving import drive, kinds, trace

PLAY = """
task: example-task
steps:
  - say: "I count."
    call: {run_command: {command: "echo once >> count.txt; wc -l < count.txt"}}
  - say: "Two at once."
    calls:
      - run_command: {command: "echo twice >> count.txt; wc -l < count.txt"}
      - run_command: {command: "mkdir -p data/outputs; date +%N > data/outputs/predictions.csv"}
  - say: "Scored?"
    call: {eval: {}}
  - say: "Over."
    call: {finish: {}}
"""
TIMES = {"started_at", "finished_at", "duration_s", "seconds", "evaluation", "usd", "ended_at", "mtime"}


class Killed(BaseException):
    """What SIGKILL is to this process: nothing catches it, nothing is stored after it."""


def plain(value: object) -> object:
    """The value without times: what two equal traces have in common. Ids derive from the run's own number."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if key not in TIMES}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def visible(run: Run) -> list[str]:
    """The agent-visible events, comparable between runs."""
    seen = [(kind, body) for kind, body in trace(run) if kind in set(Kind)]
    lines = [repr((kind, plain(body))).replace(run.key, "run-N") for kind, body in seen]
    return [re.sub(r"after [0-9.]+ m?s", "after a while", line) for line in lines]


def killed_at(run: Run, monkeypatch, number: int, *, before: bool) -> bool:
    """Drive the run, dying at the append number `number`; whether it came to that."""
    real, count = session_module.event_append, 0

    def append(*args, **kwargs):
        nonlocal count
        count += 1
        if before and count == number:
            raise Killed
        done = real(*args, **kwargs)
        if not before and count == number:
            raise Killed
        return done

    monkeypatch.setattr(session_module, "event_append", append)
    try:
        drive(run)
    except Killed:
        # The dead worker's lock is gone, so its claim is: here the process lives on, so the claim is let run out.
        Run.objects.filter(pk=run.pk).update(claim_expires_at=timezone.now())
        return True
    finally:
        monkeypatch.setattr(session_module, "event_append", real)
    return False


@pytest.mark.parametrize("before", [True, False])
def test_a_worker_killed_at_any_append_changes_nothing_of_the_trace(
    queue, node, playbook, scorer, monkeypatch, before: bool
) -> None:
    """R1, R13, N7: also between the intent and its observation, where the action goes out again under its old id."""
    playbook(PLAY)
    undisturbed = visible(drive(queue()))
    number, died = 0, True
    while died:
        number += 1
        run = queue()
        died = killed_at(run, monkeypatch, number, before=before)
        drive(run)
        for one, other in zip(visible(run), undisturbed, strict=True):
            assert one == other, f"killed at append {number}: {kinds(run)}"
    assert number > 10


def test_a_lost_reply_of_an_action_leaves_one_side_effect(queue, node, playbook, scorer, monkeypatch) -> None:
    """N7"""
    playbook(PLAY)
    real, lost = Bench.op, []

    def op(self, node, name, args, *, wait_s=0.0):
        result = real(self, node, name, args, wait_s=wait_s)
        if name == "session.run" and not lost:
            lost.append(name)
            raise Killed
        return result

    monkeypatch.setattr(Bench, "op", op)
    run = queue()
    with pytest.raises(Killed):
        drive(run)
    Run.objects.filter(pk=run.pk).update(claim_expires_at=timezone.now())
    drive(run)
    outputs = [body["observation"].get("output", "").strip() for kind, body in trace(run) if kind == "observed"]
    assert outputs[:2] == ["1", "2"]


def test_a_second_worker_leaves_a_claimed_run_alone(queue, node, playbook, scorer) -> None:
    """R2, R4: the same job twice, at once and later: one execution."""
    playbook(PLAY)
    run = queue()
    assert queue_start() == [run.pk]
    claim = claim_take(run.pk, this_worker())
    assert claim is not None
    assert claim_take(run.pk, this_worker()) is None
    assert run_advance(run_id=run.pk) is False
    claims.claim_release(claim, wake_at=timezone.now())
    drive(run)
    assert run_advance(run_id=run.pk) is False


def test_an_old_epoch_writes_nothing(queue, node, playbook, scorer) -> None:
    playbook(PLAY)
    run = queue()
    assert queue_start() == [run.pk]
    old = claim_take(run.pk, this_worker())
    Run.objects.filter(pk=run.pk).update(claim_expires_at=timezone.now())
    time.sleep(0.01)
    new = claim_take(run.pk, this_worker())
    assert old is not None
    assert new is not None
    assert session_module.event_append(run.pk, "noted", {}, epoch=old.epoch) is None
    assert claims.claim_release(old, wake_at=None) is False
    former = {claims.Claim(run.pk, epoch) for epoch in range(20) if epoch != new.epoch}
    assert old in former
    assert claims.claims_renew({new, *former}) == {new}  # in whatever order a set has them


def test_two_workers_with_the_same_job_at_once_act_once(queue, node, playbook, scorer) -> None:
    """R2, R4"""
    playbook(PLAY)
    run = queue()
    assert queue_start() == [run.pk]
    together, took = threading.Barrier(2, timeout=60), list[bool]()

    def work() -> None:
        try:
            together.wait()
            took.append(run_advance(run_id=run.pk))
        finally:
            connection.close()

    threads = [threading.Thread(target=work, daemon=True) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(120)
    assert sorted(took) == [False, True]
    drive(run)
    outputs = [body["observation"].get("output", "").strip() for kind, body in trace(run) if kind == "observed"]
    assert (outputs[:2], run.status) == (["1", "2"], "finished")
