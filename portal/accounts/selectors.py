"""Room: portal.accounts. What pages and the API show of people, teams, tokens and the vault."""

from dataclasses import dataclass
from datetime import datetime

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404
from django.utils import timezone

from portal.accounts.founding import personal_team_ensure
from portal.accounts.models import ApiToken, Invite, Membership, Role, Team, User, VaultSecret
from portal.accounts.permits import Person, demand
from portal.accounts.roles import Thing, Verb


@dataclass(frozen=True)
class SecretRow:
    """All that may be shown of a secret."""

    id: int
    name: str
    host: str
    created_by: str
    created_at: datetime
    replaced_at: datetime | None
    last_used_at: datetime | None


def teams_of(user: User) -> QuerySet[Team]:
    """The teams of `user`, the personal one among them."""
    return Team.objects.filter(memberships__user=user, deleted_at=None).order_by("name", "id")


def team_ids_of(user: Person) -> frozenset[int]:
    """Primary keys of the teams of `user`, empty for a visitor: what list queries filter by."""
    if not isinstance(user, User) or not user.is_active:
        return frozenset()
    return frozenset(Membership.objects.filter(user=user).values_list("team_id", flat=True))


def team_of(user: User) -> Team:
    """The personal team of `user`, who gets one if they have none."""
    return personal_team_ensure(user)


def team_get_for(user: Person, slug: str, *, need: Verb = Verb.READ) -> Team:
    """The team at `slug`. Raises Http404 (strangers, unknown slugs), PermissionDenied when one may only read."""
    team = Team.objects.filter(slug=slug, deleted_at=None).first()
    if team is None:
        raise Http404
    demand(user, team, Thing.TEAM, need)
    return team


def team_for_work(user: User, slug: str | None) -> Team:
    """The team a submission is made for: `slug`, or one's own. Raises Http404 for teams one is not a member of."""
    if slug is None:
        return team_of(user)
    membership = Membership.objects.filter(user=user, team__slug=slug, team__deleted_at=None).select_related("team")
    found = membership.first()
    if found is None:
        raise Http404
    return found.team


def members_of(team: Team) -> QuerySet[Membership]:
    """Members of `team` with their users, owners first."""
    return team.memberships.select_related("user").order_by("-role", "joined_at", "id")


def owners_of(team: Team) -> QuerySet[User]:
    """Who may manage `team`."""
    return User.objects.filter(memberships__team=team, memberships__role=Role.OWNER)


def invites_of(team: Team) -> QuerySet[Invite]:
    """Links of `team` that still let somebody in, newest first."""
    return team.invites.filter(revoked_at=None, expires_at__gt=timezone.now()).select_related("created_by")


def tokens_of(user: User) -> QuerySet[ApiToken]:
    """Living and expired tokens of `user`, newest first; revoked ones are gone."""
    return user.tokens.filter(revoked_at=None)


def secrets_for(user: Person, team: Team) -> tuple[SecretRow, ...]:
    """Names of the team's vault, never a value. Raises Http404 or PermissionDenied."""
    demand(user, team, Thing.SECRET, Verb.READ)
    rows = VaultSecret.objects.filter(team=team).select_related("created_by")
    return tuple(
        SecretRow(
            id=row.pk,
            name=row.name,
            host=row.host,
            created_by=row.created_by.shown_name,
            created_at=row.created_at,
            replaced_at=row.replaced_at,
            last_used_at=row.last_used_at,
        )
        for row in rows
    )


def staff_required(user: Person) -> User:
    """`user`, typed. Raises Http404 for visitors and PermissionDenied for people who don't run the site."""
    if not isinstance(user, User) or not user.is_active:
        raise Http404
    if not user.is_staff:
        raise PermissionDenied
    return user
