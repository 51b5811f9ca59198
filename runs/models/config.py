"""Room: runs. A version of an agent: immutable, hashed, naming a credential and never holding one. Rows only."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.urls import reverse


class AgentConfig(models.Model):
    """One uploaded agent config. `spec` is the parsed form, `source` the text as it came, `digest` of the former."""

    team = models.ForeignKey("accounts.Team", on_delete=models.PROTECT, related_name="agent_configs")
    name = models.CharField(max_length=120)
    version = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)
    spec = models.JSONField()
    source = models.TextField()
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["name", "-version"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["team", "name", "version"], name="agent_config_version_once"),
            models.UniqueConstraint(fields=["team", "name", "digest"], name="agent_config_digest_once"),
        ]

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"

    def get_absolute_url(self) -> str:
        return reverse("agent", args=[self.pk])
