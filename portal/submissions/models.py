"""Room: portal.submissions. A team's claim: one agent config, some tasks, some repeats. Rows only."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q


class Submission(models.Model):
    """What a team said it would run, before the first run: repeats are declared here and count whether done or not."""

    team = models.ForeignKey("accounts.Team", on_delete=models.PROTECT, related_name="submissions")
    config = models.ForeignKey("runs.AgentConfig", on_delete=models.PROTECT, related_name="submissions")
    board = models.CharField(max_length=80, blank=True)
    visibility = models.CharField(max_length=10)
    repeats = models.PositiveSmallIntegerField(default=1)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["-id"]
        constraints: ClassVar = [models.CheckConstraint(condition=Q(repeats__gte=1), name="submission_repeats")]

    def __str__(self) -> str:
        return f"submission {self.pk}"


class Attempt(models.Model):
    """One try of one repeat of one task = one run. A retry is a further attempt; the old one stays."""

    submission = models.ForeignKey(Submission, on_delete=models.PROTECT, related_name="attempts")
    task_version = models.ForeignKey("catalog.TaskVersion", on_delete=models.PROTECT, related_name="+")
    repeat = models.PositiveSmallIntegerField()
    attempt = models.PositiveSmallIntegerField(default=1)
    run = models.OneToOneField("runs.Run", on_delete=models.PROTECT, related_name="place")

    class Meta:
        ordering: ClassVar = ["submission", "task_version", "repeat", "attempt"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["submission", "task_version", "repeat", "attempt"], name="attempt_once_per_repeat"
            )
        ]

    def __str__(self) -> str:
        return f"submission {self.submission_id}, repeat {self.repeat}, attempt {self.attempt}"
