"""Room: portal.core. The audit log: who did what to which thing, and why. Values of secrets never go in here."""

from collections.abc import Mapping

from django.contrib.auth.models import AbstractBaseUser
from django.db.models import Model, QuerySet

from portal.core.errors import Plain
from portal.core.models import AuditEntry


def audit_write(
    *, verb: str, thing: Model, by: AbstractBaseUser | None, team_id: int | None = None, facts: Mapping[str, Plain] = {}
) -> AuditEntry:
    """Append one entry, in the caller's transaction: it stands exactly when the deed stands.

    `verb` is a past participle ("added", "revoked"); `by` is empty where the site itself acted.
    """
    return AuditEntry.objects.create(
        verb=verb,
        thing=thing._meta.label_lower,
        thing_id=str(thing.pk),
        by_id=by.pk if by is not None else None,
        team_id=team_id,
        facts=dict(facts),
    )


def audit_of_thing(*, thing: Model) -> QuerySet[AuditEntry]:
    """Entries about one thing, newest first."""
    return AuditEntry.objects.filter(thing=thing._meta.label_lower, thing_id=str(thing.pk)).select_related("by")


def audit_of_team(*, team_id: int) -> QuerySet[AuditEntry]:
    """Entries about a team's own things, newest first."""
    return AuditEntry.objects.filter(team_id=team_id).select_related("by")
