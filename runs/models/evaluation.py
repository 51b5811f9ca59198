"""Room: runs. One scoring of one bundle of a run's outputs. Rows only; written by services/evaluating.py."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from runs.models.run import Run


class EvaluationState(models.TextChoices):
    """`failed` is our own failure after three tries: it never counts and never becomes a 0."""

    REQUESTED = "requested", _("requested")
    SCORED = "scored", _("scored")
    FAILED = "failed", _("failed")


class By(models.TextChoices):
    """Who asked."""

    AGENT = "agent", _("agent")
    FINAL = "final", _("final")


class Evaluation(models.Model):
    """Raw metrics as the evaluator signed them; `score` is computed from them with the scoring revision named,
    less `penalty` points for a hint that was viewed before, never below 0.
    """

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="evaluations")
    ordinal = models.PositiveIntegerField()
    by = models.CharField(max_length=8, choices=By.choices)
    action_id = models.CharField(max_length=80, blank=True)
    step = models.PositiveIntegerField(default=0)
    state = models.CharField(max_length=12, choices=EvaluationState.choices, default=EvaluationState.REQUESTED)
    try_no = models.PositiveIntegerField(default=1)
    nonce = models.CharField(max_length=64)
    ticket = models.CharField(max_length=64, blank=True)
    sent_at = models.DateTimeField(null=True)
    bundle_sha256 = models.CharField(max_length=64)
    bundle_bytes = models.PositiveBigIntegerField(default=0)
    problems = models.JSONField(default=list)
    valid = models.BooleanField(null=True)
    metrics = models.JSONField(default=dict)
    message = models.TextField(blank=True)
    score = models.DecimalField(max_digits=12, decimal_places=6, null=True)
    penalty = models.DecimalField(max_digits=6, decimal_places=2, default=0)
    revision = models.ForeignKey("catalog.ScoringRevision", null=True, on_delete=models.PROTECT, related_name="+")
    seconds = models.FloatField(null=True)
    sandbox_level = models.PositiveSmallIntegerField(null=True)
    facts = models.JSONField(default=dict)
    from_store = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="+")
    envelope = models.TextField(blank=True)
    log_tail = models.TextField(blank=True)
    working_s = models.FloatField(default=0)
    requested_at = models.DateTimeField()
    scored_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["run", "ordinal"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "ordinal"], name="evaluation_ordinal_once"),
            models.UniqueConstraint(
                fields=["run", "action_id"], condition=~Q(action_id=""), name="evaluation_once_per_action"
            ),
            models.UniqueConstraint(fields=["run"], condition=Q(by="final"), name="one_final_evaluation"),
            models.CheckConstraint(
                condition=~Q(state="scored") | Q(valid__isnull=False, score__isnull=False, scored_at__isnull=False),
                name="scored_evaluation_has_a_score",
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["bundle_sha256"])]

    def __str__(self) -> str:
        return f"evaluation {self.ordinal} of run {self.run_id}"
