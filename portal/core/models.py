"""Room: portal.core. Rows that every room may write: who did what, and which request was already answered."""

from typing import ClassVar

from django.conf import settings
from django.db import models


class AuditEntry(models.Model):
    """One deed of a person or of the site itself (`by` empty). Appended, never changed."""

    at = models.DateTimeField(auto_now_add=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    verb = models.CharField(max_length=64)
    thing = models.CharField(max_length=64)
    thing_id = models.CharField(max_length=64)
    team = models.ForeignKey("accounts.Team", null=True, on_delete=models.PROTECT, related_name="+")
    facts = models.JSONField(default=dict)

    class Meta:
        ordering: ClassVar = ["-id"]
        indexes: ClassVar = [models.Index(fields=["thing", "thing_id"]), models.Index(fields=["team", "-id"])]

    def __str__(self) -> str:
        return f"{self.verb} {self.thing} {self.thing_id}"


class IdempotencyKey(models.Model):
    """The answer to a request that carried an `Idempotency-Key`: the same request again gets it again."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=255)
    request_sha256 = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)
    body = models.JSONField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["user", "key"], name="idempotency_key_once")]
        indexes: ClassVar = [models.Index(fields=["created_at"])]

    def __str__(self) -> str:
        return f"{self.user_id}:{self.key}"
