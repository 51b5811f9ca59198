"""Who starts next, and what a broker that is down does to it: nothing."""

import time
from datetime import timedelta

import redis
from django.db import transaction
from django.utils import timezone

from portal.accounts.models import Team
from runs import bell, enqueue
from runs.models.run import Run
from runs.services.configs import config_create
from runs.services.queueing import queue_order, queue_start
from runs.services.ticking import runs_due_enqueue, tick
from tests.site.runs.driving import CONFIG


def test_one_run_of_another_team_starts_before_the_tenth(queue, node, bob) -> None:
    """R8: 50 runs of one team, then 1 of another, two slots."""
    node.capacity = 2
    node.memory_gb = 64
    node.cpus = 64
    node.save(update_fields=["capacity", "memory_gb", "cpus"])
    mine = [queue() for _ in range(50)]
    other = queue(by_team=bob.personal_team)
    started = queue_start()
    assert started == [mine[0].pk, other.pk]
    assert [each.run_id for each in queue_order()] == [run.pk for run in mine[1:]]


def test_queued_runs_wait_for_nodes_and_are_looked_at_again(queue) -> None:
    run = queue()
    assert queue_start() == []
    run.refresh_from_db()
    assert run.status == "queued"
    assert run.wake_at > timezone.now()


def test_the_lower_limit_holds(queue, team: Team, alice, version) -> None:
    text = CONFIG + "limits: {steps: 7, usd: 3, hours: 0.5}\n"
    run = queue(text)
    assert (run.limit_s, run.limit_steps, run.limit_usd, run.limit_evaluations) == (1800, 7, 3, 3)


def test_a_board_makes_a_run_public(queue) -> None:
    assert queue(board="nano", visibility="private").visibility == "public"


def test_a_run_queued_while_the_broker_is_down_is_found_later(queue, node, settings) -> None:
    """R3, R9: the database is the queue; the broker only carries hints."""
    run = queue()
    tick()
    run.refresh_from_db()
    assert run.status == "preparing"
    Run.objects.filter(pk=run.pk).update(job_sent_at=timezone.now() - timedelta(seconds=60))
    assert runs_due_enqueue() == 1
    assert runs_due_enqueue() == 0


def test_the_same_config_twice_is_one_version(team: Team, alice) -> None:
    first = config_create(team=team, text=CONFIG, by=alice)
    again = config_create(team=team, text=CONFIG + "# a comment\n", by=alice)
    other = config_create(team=team, text=CONFIG + "limits: {steps: 5}\n", by=alice)
    assert (again.pk, first.version, other.version) == (first.pk, 1, 2)


def test_nobody_waits_for_a_broker_that_is_down(queue, monkeypatch) -> None:
    """R3: the row is stored, the answer comes at once, the tick finds it."""
    down = redis.Redis.from_url("redis://127.0.0.1:1/0", socket_connect_timeout=1.0)
    monkeypatch.setattr(bell, "broker", lambda: down)
    begun = time.monotonic()
    assert queue().status == "queued"
    assert time.monotonic() - begun < 10  # nobody waits out an attempt after the other


def test_a_job_is_sent_after_the_commit_and_not_before(queue, monkeypatch) -> None:
    """R9: no worker looks for a row that is not there yet; what is rolled back is never sent."""
    sent = list[int]()
    monkeypatch.setattr(enqueue, "_send", sent.append)
    with transaction.atomic():
        run = queue()
        assert sent == []
    assert sent == [run.pk]
    with transaction.atomic():
        queue()
        transaction.set_rollback(True)
    assert sent == [run.pk]
