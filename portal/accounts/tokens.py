"""Room: portal.accounts. API tokens and invitation links: shown once, kept as digests."""

import hashlib
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from portal.accounts.models import ApiToken, Invite, Membership, Role, Scope, Team, User
from portal.core.audit import audit_write
from portal.core.errors import FieldFault, LimitReached, Missing
from portal.core.secrets import Secret

PREFIX = "ib_"
TOKENS_PER_USER = 50
INVITE_LIVES = timedelta(days=7)
# A row per request would be a write per request; a minute is exact enough for "last used".
USED_EVERY = timedelta(minutes=1)


class InviteDead(Missing):
    """Unknown, expired and revoked links look alike to whoever holds one."""

    code = "invite_dead"
    template = _("This invitation is not valid any more; ask the team for a new link.")


@dataclass(frozen=True)
class NewToken:
    """A token at the only moment its value exists."""

    token: ApiToken
    value: Secret


@dataclass(frozen=True)
class NewInvite:
    """An invitation at the only moment its value exists; the link is made of it."""

    invite: Invite
    value: Secret


def token_create(*, user: User, name: str, scopes: Collection[str], expires_at: datetime | None = None) -> NewToken:
    """A token of `user` with these scopes. Raises FieldFault (name, scopes, expires_at), LimitReached."""
    _token_checked(name, scopes, expires_at)
    if user.tokens.filter(revoked_at=None).count() >= TOKENS_PER_USER:
        raise LimitReached(limit=TOKENS_PER_USER)
    value = PREFIX + secrets.token_urlsafe(32)
    with transaction.atomic():
        token = ApiToken.objects.create(
            user=user,
            name=name.strip(),
            hint=value[: len(PREFIX) + 4],
            token_sha256=digest_of(value),
            scopes=sorted(scopes),
            expires_at=expires_at,
        )
        audit_write(verb="created", thing=token, by=user, facts={"name": token.name})
    return NewToken(token=token, value=Secret(value))


def token_revoke(*, user: User, token_id: int) -> None:
    """End one's own token. Raises Missing when it is not one's own; a second time is no fault."""
    token = user.tokens.filter(pk=token_id).first()
    if token is None:
        raise Missing(thing=str(_("token")), name=token_id)
    with transaction.atomic():
        if user.tokens.filter(pk=token_id, revoked_at=None).update(revoked_at=timezone.now()):
            audit_write(verb="revoked", thing=token, by=user, facts={"name": token.name})


def token_find(value: str) -> ApiToken | None:
    """The living token with this value, its user loaded, noted as used; None for every kind of dead or unknown one."""
    now = timezone.now()
    alive = ApiToken.objects.filter(
        Q(expires_at=None) | Q(expires_at__gt=now), token_sha256=digest_of(value), revoked_at=None, user__is_active=True
    )
    token = alive.select_related("user").first()
    if token is not None and (token.last_used_at is None or token.last_used_at < now - USED_EVERY):
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    return token


def invite_create(*, team: Team, by: User) -> NewInvite:
    """A link to `team` for whoever holds it, for a week. The caller checked that `by` may manage the team."""
    value = secrets.token_urlsafe(24)
    with transaction.atomic():
        invite = Invite.objects.create(
            team=team, token_sha256=digest_of(value), created_by=by, expires_at=timezone.now() + INVITE_LIVES
        )
        audit_write(verb="created", thing=invite, by=by, team_id=team.pk)
    return NewInvite(invite=invite, value=Secret(value))


def invite_revoke(*, team: Team, invite_id: int, by: User) -> None:
    """End a link of `team`. Raises Missing when it is of another team; a second time is no fault."""
    invite = team.invites.filter(pk=invite_id).first()
    if invite is None:
        raise Missing(thing=str(_("invitation")), name=invite_id)
    with transaction.atomic():
        if team.invites.filter(pk=invite_id, revoked_at=None).update(revoked_at=timezone.now()):
            audit_write(verb="revoked", thing=invite, by=by, team_id=team.pk)


def invite_team(value: str) -> Team:
    """The team that a link leads to, for the page that asks "join?". Raises InviteDead."""
    return _invite_alive(value).team


def invite_accept(*, value: str, user: User) -> Team:
    """Make `user` a member of the link's team; a member stays what they are. Raises InviteDead."""
    with transaction.atomic():
        # Held: whoever ends the link at this moment is before this or after it, not in the middle.
        invite = _invite_alive(value, hold=True)
        membership, joined = Membership.objects.get_or_create(
            team=invite.team, user=user, defaults={"role": Role.MEMBER}
        )
        if joined:
            Invite.objects.filter(pk=invite.pk).update(joined=F("joined") + 1)
            audit_write(verb="joined", thing=membership, by=user, team_id=invite.team_id)
    return invite.team


def invites_hold(*, team: Team) -> None:
    """Until the transaction ends nobody joins by a link of `team`. Comes before a lock on its memberships."""
    list(team.invites.select_for_update().filter(revoked_at=None).order_by("pk"))


def invites_end(*, team: Team, made_by: User | None = None) -> int:
    """End the links of `team`, or those that `made_by` made; how many there were that still worked."""
    now = timezone.now()
    links = team.invites.filter(revoked_at=None, expires_at__gt=now)
    return (links if made_by is None else links.filter(created_by=made_by)).update(revoked_at=now)


def digest_of(value: str) -> str:
    """SHA-256 in hex. Tokens have 192 bits and more of chance in them, so a slow hash would add nothing."""
    return hashlib.sha256(value.encode()).hexdigest()


def _invite_alive(value: str, *, hold: bool = False) -> Invite:
    rows = Invite.objects.select_for_update(of=("self",)) if hold else Invite.objects.all()
    alive = rows.filter(
        token_sha256=digest_of(value), revoked_at=None, expires_at__gt=timezone.now(), team__deleted_at=None
    )
    invite = alive.select_related("team").first()
    if invite is None:
        raise InviteDead
    return invite


def _token_checked(name: str, scopes: Collection[str], expires_at: datetime | None) -> None:
    if not 1 <= len(name.strip()) <= 80:
        raise FieldFault(field="name", message=str(_("give the token a name of 1 to 80 characters")))
    unknown = sorted(set(scopes) - set(Scope.values))
    if unknown or not scopes:
        known = ", ".join(Scope.values)
        raise FieldFault(field="scopes", message=str(_("choose at least one of: {known}")).format(known=known))
    if expires_at is not None and expires_at <= timezone.now():
        raise FieldFault(field="expires_at", message=str(_("this time has passed")))
