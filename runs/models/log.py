"""Room: runs. What happened: events, pieces of time, terminal bytes, and news for higher rooms. Rows only."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.fields.json import KeyTransform

from runs.ledger import Clock
from runs.models.run import Run


class Event(models.Model):
    """One fact of a run. Gap-free by `seq`; written by `eventlog` only. `step` counts the replies up to here.

    A body over 64 KiB lies whole in the blob store under `blob`; `body` then holds it with its long texts cut.
    """

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="events")
    seq = models.PositiveBigIntegerField()
    step = models.PositiveIntegerField(default=0)
    kind = models.CharField(max_length=40)
    at = models.DateTimeField()
    body = models.JSONField()
    blob = models.CharField(max_length=64, blank=True)

    class Meta:
        ordering: ClassVar = ["run", "seq"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["run", "seq"], name="event_seq_once_per_run")]
        indexes: ClassVar = [
            models.Index(fields=["run", "step", "seq"], name="event_of_step"),
            models.Index(KeyTransform("person", "body"), name="event_of_person", condition=Q(body__has_key="person")),
        ]

    def __str__(self) -> str:
        return f"{self.run_id}#{self.seq} {self.kind}"


class Interval(models.Model):
    """A closed piece of a run's time. The open one is the run's own `clock_kind` since `clock_since`."""

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="intervals")
    kind = models.CharField(max_length=16, choices=Clock.choices)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField()

    class Meta:
        ordering: ClassVar = ["run", "started_at"]
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(kind__in=Clock.values), name="interval_kind_known"),
            models.CheckConstraint(condition=Q(ended_at__gte=models.F("started_at")), name="interval_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.run_id} {self.kind} {self.started_at:%H:%M:%S}"


class TerminalChunk(models.Model):
    """Raw bytes of a session's log from byte `offset` on, secrets masked (see services/terminals.py)."""

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="terminal_chunks")
    session = models.CharField(max_length=120)
    offset = models.PositiveBigIntegerField()
    at = models.DateTimeField()
    data = models.BinaryField()

    class Meta:
        ordering: ClassVar = ["run", "session", "offset"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "session", "offset"], name="terminal_chunk_once")
        ]

    def __str__(self) -> str:
        return f"{self.run_id} {self.session}@{self.offset}"


class OutboxMessage(models.Model):
    """News for a higher room, written in the transaction that made it true; gone once every handler took it."""

    topic = models.CharField(max_length=60)
    body = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True)
    due_at = models.DateTimeField()
    tries = models.PositiveIntegerField(default=0)
    error = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering: ClassVar = ["id"]
        indexes: ClassVar = [models.Index(fields=["due_at"])]

    def __str__(self) -> str:
        return f"{self.topic} {self.pk}"
