"""A broker that delivers a job again while it is worked on: a real Valkey, a real visibility time-out, a real node."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from django.conf import settings
from kombu import Connection
from kombu.message import Message

from portal.celery import app
from runs.jobs import advance_run_job
from runs.models.run import Run
from runs.services.queueing import queue_start
from tests.site.runs.driving import drive, file_below, kinds, trace
from tests.site.runs.test_controls import under_way

VISIBLE_S = 1
SLOW = """
task: example-task
steps:
  - call: {run_command: {command: "echo x >> count; until [ -e go ]; do sleep 0.1; done; wc -l < count", timeout_s: 60}}
  - call: {finish: {}}
"""


@contextmanager
def taken(job: str = "") -> Iterator[Message]:
    """The next job of the queue, or the one of this id, as a worker gets it; acknowledged when the block ends."""
    held: list[Message] = []
    with Connection(settings.CELERY_BROKER_URL, transport_options={"visibility_timeout": VISIBLE_S}) as connection:

        def look(_body: object, message: Message) -> None:
            held.append(message) if job in ("", message.headers["id"]) else message.ack()

        with connection.Consumer([app.amqp.queues["runs"]], callbacks=[look]):
            ends = time.monotonic() + 60
            while not held:
                assert time.monotonic() < ends, "no such job came"
                with suppress(TimeoutError):  # nothing new: now the transport looks for what is overdue
                    connection.drain_events(timeout=0.3)
        yield held[0]
        held[0].ack()


def job_done(message: Message) -> None:
    """What a worker does with the message."""
    arguments, named, _embedded = message.decode()
    assert message.headers["task"] == advance_run_job.name
    advance_run_job(*arguments, **named)


def test_a_job_delivered_again_while_it_is_worked_on_does_nothing(queue, node, gymd_home, playbook, scorer) -> None:
    """R4: the second worker finds the claim held and leaves; the first one works on; one execution."""
    playbook(SLOW)
    run = queue()
    with Connection(settings.CELERY_BROKER_URL) as connection:
        app.amqp.queues["runs"](connection.default_channel).purge()
    assert queue_start() == [run.pk]
    with taken() as first:
        working = under_way(run)
        with taken(first.headers["id"]) as second:
            before = Run.objects.values("epoch", "worker", "status").get(pk=run.pk)
            job_done(second)
            assert Run.objects.values("epoch", "worker", "status").get(pk=run.pk) == before
            assert working.thread.is_alive()
        file_below(gymd_home, "count").with_name("go").touch()
        working.wait(60)
    drive(run)
    outputs = [body["observation"].get("output", "").strip() for kind, body in trace(run) if kind == "observed"]
    assert (outputs[0], kinds(run).count("action_sent"), run.status) == ("1", 2, "finished")
