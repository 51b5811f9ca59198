"""Room: runs. One attempt of one agent config at one task version. Rows only; who may change what is in services/."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.urls import reverse

from runs.ledger import Clock
from runs.models.config import AgentConfig
from runs.states import TERMINAL, End, Status, Visibility, Waiting


class Run(models.Model):
    """A run. Columns below `seq` are projections of its events, kept so that lists and the tick stay one query.

    `wake_at` is when somebody has to work on it (empty: nobody, until something happens); a worker that works holds a
    claim: `epoch` fences its writes, `claim_expires_at` bounds it, `worker_lock` is the advisory lock of its process.
    """

    team = models.ForeignKey("accounts.Team", on_delete=models.PROTECT, related_name="runs")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    config = models.ForeignKey(AgentConfig, on_delete=models.PROTECT, related_name="runs")
    task_version = models.ForeignKey("catalog.TaskVersion", on_delete=models.PROTECT, related_name="runs")
    board = models.CharField(max_length=80, blank=True)
    visibility = models.CharField(max_length=10, choices=Visibility.choices, default=Visibility.PRIVATE)
    engine_version = models.CharField(max_length=20)
    assisted = models.BooleanField(default=False)
    limits_altered = models.BooleanField(default=False)
    parent = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="branches")

    status = models.CharField(max_length=12, choices=Status.choices, default=Status.QUEUED)
    waiting_reason = models.CharField(max_length=12, choices=Waiting.choices, blank=True)
    end_reason = models.CharField(max_length=16, choices=End.choices, blank=True)
    failure_code = models.CharField(max_length=40, blank=True)
    failure_args = models.JSONField(default=dict)
    wanted = models.CharField(max_length=12, blank=True)
    conditions = models.JSONField(default=dict)
    wake_at = models.DateTimeField(null=True)
    outage_since = models.DateTimeField(null=True)
    outage_tries = models.PositiveIntegerField(default=0)
    engine_faults = models.PositiveIntegerField(default=0)
    job_sent_at = models.DateTimeField(null=True)

    epoch = models.PositiveBigIntegerField(default=0)
    worker = models.CharField(max_length=80, blank=True)
    worker_lock = models.BigIntegerField(null=True)
    claim_expires_at = models.DateTimeField(null=True)
    leased = models.BooleanField(default=False)
    prepared_at = models.DateTimeField(null=True)
    isolation = models.CharField(max_length=12, blank=True)
    workspace = models.CharField(max_length=255, blank=True)

    seq = models.PositiveBigIntegerField(default=0)
    fold = models.JSONField(null=True)
    fold_seq = models.PositiveBigIntegerField(default=0)
    steps = models.PositiveIntegerField(default=0)
    usd = models.DecimalField(max_digits=14, decimal_places=6, default=0)
    unpriced = models.BooleanField(default=False)
    tokens = models.PositiveBigIntegerField(default=0)
    cached_tokens = models.PositiveBigIntegerField(default=0)
    evaluations_used = models.PositiveIntegerField(default=0)
    model_returned = models.CharField(max_length=160, blank=True)
    score = models.DecimalField(max_digits=12, decimal_places=6, null=True)
    best = models.DecimalField(max_digits=12, decimal_places=6, null=True)
    result_at = models.DateTimeField(null=True)

    clock_kind = models.CharField(max_length=16, choices=Clock.choices, blank=True)
    clock_since = models.DateTimeField(null=True)
    charged_s = models.FloatField(default=0)
    deadline_at = models.DateTimeField(null=True)
    limit_s = models.FloatField()
    limit_steps = models.PositiveIntegerField()
    limit_usd = models.DecimalField(max_digits=14, decimal_places=6, null=True)
    limit_tokens = models.PositiveBigIntegerField(null=True)
    limit_evaluations = models.PositiveIntegerField()

    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["-id"]
        indexes: ClassVar = [
            models.Index(fields=["wake_at"], condition=Q(wake_at__isnull=False), name="run_due"),
            models.Index(fields=["deadline_at"], condition=Q(deadline_at__isnull=False), name="run_deadline"),
            models.Index(fields=["claim_expires_at"], condition=Q(claim_expires_at__isnull=False), name="run_claimed"),
            models.Index(fields=["team", "-id"], name="run_of_team"),
            models.Index(fields=["status"], condition=~Q(status__in=sorted(TERMINAL)), name="run_live"),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(status__in=Status.values), name="run_status_known"),
            models.CheckConstraint(
                condition=Q(status=Status.WAITING, waiting_reason__in=Waiting.values)
                | (~Q(status=Status.WAITING) & Q(waiting_reason="")),
                name="run_waits_for_something",
            ),
            models.CheckConstraint(
                condition=~Q(status=Status.FAILED) | ~Q(failure_code=""), name="run_failure_has_a_code"
            ),
            models.CheckConstraint(
                condition=~Q(status__in=sorted(TERMINAL)) | (~Q(end_reason="") & Q(ended_at__isnull=False)),
                name="run_end_has_a_reason",
            ),
            models.CheckConstraint(condition=Q(charged_s__gte=0), name="run_working_time_not_negative"),
        ]

    def __str__(self) -> str:
        return f"run {self.pk}"

    def get_absolute_url(self) -> str:
        return reverse("run", args=[self.pk])

    @property
    def key(self) -> str:
        """The name under which nodes and leases know the run."""
        return f"run-{self.pk}"

    @property
    def ended(self) -> bool:
        return self.status in TERMINAL
