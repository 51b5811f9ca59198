"""Room: portal.accounts. People, teams, tokens, the vault. Rows only: what may be done with them is in services.py."""

from typing import Any, ClassVar

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.db import models, transaction
from django.db.models.functions import Lower
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _


class User(AbstractUser):
    """A person. A deleted one stays as an empty row, so that runs, events and audit keep whole references."""

    deleted_at = models.DateTimeField(null=True, editable=False)

    class Meta(AbstractUser.Meta):
        constraints: ClassVar = [
            models.UniqueConstraint(Lower("username"), name="username_once_whatever_case"),
            models.UniqueConstraint(Lower("email"), condition=~models.Q(email=""), name="email_once_whatever_case"),
        ]

    def __str__(self) -> str:
        return self.shown_name

    def save(self, *args: Any, **kwargs: Any) -> None:
        """With the team that a new user gets (signals.py), or not at all."""
        with transaction.atomic():
            super().save(*args, **kwargs)

    @property
    def shown_name(self) -> str:
        """What pages, exports and the API call this person."""
        return _t("deleted user") if self.deleted_at else self.username


class Team(models.Model):
    """Who owns runs, configs, secrets and nodes. Every user has one of their own (`personal_of`)."""

    slug = models.SlugField(max_length=180, unique=True)
    name = models.CharField(max_length=150)
    personal_of = models.OneToOneField(User, null=True, on_delete=models.PROTECT, related_name="personal_team")
    members = models.ManyToManyField(User, through="Membership", related_name="teams")
    created_at = models.DateTimeField(auto_now_add=True)
    deleted_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        ordering: ClassVar = ["name", "id"]

    def __str__(self) -> str:
        return self.shown_name

    @property
    def shown_name(self) -> str:
        """What pages, exports and the API call this team."""
        return _t("deleted user") if self.deleted_at else self.name


class Role(models.TextChoices):
    """What a member may do is in roles.py."""

    OWNER = "owner", _("owner")
    MEMBER = "member", _("member")


class Membership(models.Model):
    """One user in one team."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.MEMBER)
    joined_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["team", "user"], name="member_once"),
            models.CheckConstraint(condition=models.Q(role__in=Role.values), name="membership_role_known"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} {self.role} of {self.team_id}"


class Invite(models.Model):
    """A link that lets whoever holds it join a team. Only the digest of its token is kept."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="invites")
    token_sha256 = models.CharField(max_length=64, unique=True)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    joined = models.PositiveIntegerField(default=0)

    class Meta:
        ordering: ClassVar = ["-id"]

    def __str__(self) -> str:
        return f"invite {self.pk} to team {self.team_id}"


class Scope(models.TextChoices):
    """What an API token may be used for."""

    READ = "read", _("read what its owner may read")
    RUN = "run", _("submit and control runs")
    CURATE = "curate", _("bring and publish tasks")
    ADMIN = "admin", _("account, team, vault and nodes")


class ApiToken(models.Model):
    """A bearer token of a user. Shown once; only its digest is kept."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=80)
    hint = models.CharField(max_length=12)
    token_sha256 = models.CharField(max_length=64, unique=True)
    scopes = ArrayField(models.CharField(max_length=10, choices=Scope.choices))
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["-id"]

    def __str__(self) -> str:
        return f"{self.name} ({self.hint}…)"


class VaultSecret(models.Model):
    """A team's key for one host, sealed with age: the web process writes it and can't read it back."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="secrets")
    name = models.CharField(max_length=64)
    host = models.CharField(max_length=255, blank=True)
    sealed = models.BinaryField()
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    replaced_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["team", "name"], name="secret_name_once_per_team")]

    def __str__(self) -> str:
        return f"{self.name} of team {self.team_id}"


class FormerSecret(models.Model):
    """What a secret was before it was replaced or deleted, sealed as it was: output of runs that were sent it may come
    later, and is masked. Sent nowhere, shown nowhere, forgotten after `until`.
    """

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=64)
    sealed = models.BinaryField()
    until = models.DateTimeField(db_index=True)

    class Meta:
        indexes: ClassVar = [models.Index(fields=["team", "name"])]

    def __str__(self) -> str:
        return f"former {self.name} of team {self.team_id}"


class Notice(models.Model):
    """Something a person should know: a code with its arguments, rendered in the reader's language."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="notices")
    code = models.CharField(max_length=64)
    facts = models.JSONField(default=dict)
    address = models.CharField(max_length=255, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    read_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["-id"]
        indexes: ClassVar = [models.Index(fields=["user", "-id"])]

    def __str__(self) -> str:
        return f"{self.code} to user {self.user_id}"
