"""Room: portal.accounts. Teams, members and the end of a user. Doors check the right (permits.py) before they call."""

from allauth.account.models import EmailAddress
from django.db import transaction
from django.utils import timezone
from django.utils.crypto import get_random_string
from django.utils.translation import gettext_lazy as _

from portal.accounts.founding import team_insert
from portal.accounts.leaving import everywhere_forgotten
from portal.accounts.models import ApiToken, Membership, Notice, Role, Team, User
from portal.accounts.names import users_called
from portal.accounts.tokens import invites_end, invites_hold
from portal.accounts.vault import secrets_delete
from portal.core.audit import audit_write
from portal.core.errors import Conflict, FieldFault, LimitReached, Missing, Plain

TEAMS_PER_USER = 20


class LastOwner(Conflict):
    """A team without an owner could be managed by nobody."""

    code = "last_owner"
    template = _("{user} is the last owner of {team}; make somebody else an owner first.")


class PersonalTeam(Conflict):
    """A personal team goes with its user."""

    code = "personal_team"
    template = _("{team} is a personal team; it has one member and goes with its user. Make another team to share.")


def team_create(*, name: str, by: User) -> Team:
    """A team with `by` as its owner. Raises FieldFault (name), LimitReached."""
    shown = _name_checked(name, own=by.pk)
    if Membership.objects.filter(user=by, role=Role.OWNER).count() >= TEAMS_PER_USER:
        raise LimitReached(limit=TEAMS_PER_USER)
    with transaction.atomic():
        team = team_insert(name=shown, owner=by)
        audit_write(verb="created", thing=team, by=by, team_id=team.pk)
    return team


def team_rename(*, team: Team, name: str, by: User) -> None:
    """Change the shown name; the address stays, so links keep working. Raises FieldFault (name)."""
    before, team.name = team.name, _name_checked(name, own=team.personal_of_id or by.pk)
    with transaction.atomic():
        team.save(update_fields=["name"])
        audit_write(verb="renamed", thing=team, by=by, team_id=team.pk, facts={"before": before, "after": team.name})


def member_role_set(*, team: Team, user_id: int, role: Role, by: User) -> None:
    """Make a member an owner or an owner a member. Raises Missing, LastOwner."""
    with transaction.atomic():
        membership = _membership_locked(team, user_id)
        if role != Role.OWNER:
            _another_owner(team, membership)
        membership.role = role
        membership.save(update_fields=["role"])
        facts = {"user": membership.user.username, "role": str(role.value)}
        audit_write(verb="role_set", thing=membership, by=by, team_id=team.pk, facts=facts)


def member_remove(*, team: Team, user_id: int, by: User) -> None:
    """Take a member out (or leave, when `by` is the member). Raises Missing, LastOwner, PersonalTeam.

    Whoever was taken out may know any link of the team, so all of them end; whoever leaves ends those they made.
    """
    if team.personal_of_id is not None:
        raise PersonalTeam(team=team.name)
    with transaction.atomic():
        invites_hold(team=team)
        membership = _membership_locked(team, user_id)
        _another_owner(team, membership)
        ended = invites_end(team=team, made_by=by if by.pk == user_id else None)
        facts: dict[str, Plain] = {"user": membership.user.username, "links_ended": ended}
        audit_write(verb="removed", thing=membership, by=by, team_id=team.pk, facts=facts)
        membership.delete()


def user_delete(*, user: User, by: User) -> None:
    """Delete a person: name, address, password, tokens, memberships and personal secrets go, sessions die; the empty
    row stays, so runs and audit keep whole references and show "deleted user". Teams of which they are the only member
    end as their own one does. Twice is no fault.

    Raises LastOwner when a shared team would be left without an owner.
    """
    if user.deleted_at is not None:
        return
    with transaction.atomic():
        alone = _teams_of_one(user)
        audit_write(verb="deleted", thing=user, by=by)
        for team in alone:
            audit_write(verb="deleted", thing=team, by=by, team_id=team.pk)
        everywhere_forgotten(user)
        _personal_things_removed(user)
        for team in (*Team.objects.filter(personal_of=user), *alone):
            _team_ended(team, user)
        _emptied(user)


def _teams_of_one(user: User) -> list[Team]:
    """Shared teams with no other member; nobody can join or leave one of `user`'s meanwhile. Raises LastOwner."""
    alone = []
    for team in Team.objects.filter(memberships__user=user, personal_of=None).order_by("pk"):
        invites_hold(team=team)
        membership = _membership_locked(team, user.pk)
        if team.memberships.exclude(pk=membership.pk).exists():
            _another_owner(team, membership)
            invites_end(team=team, made_by=user)
        else:
            alone.append(team)
    return alone


def _personal_things_removed(user: User) -> None:
    ApiToken.objects.filter(user=user).delete()
    Notice.objects.filter(user=user).delete()
    user.memberships.all().delete()
    EmailAddress.objects.filter(user=user).delete()


def _team_ended(team: Team, user: User) -> None:
    """Runs, rows of boards and audit keep the row; nobody can use it or its address again."""
    secrets_delete(team=team)
    invites_end(team=team)
    # With chance in it: nobody can take the name first and so keep somebody from being deleted.
    team.slug = team.name = f"deleted-{user.pk}-{get_random_string(8).lower()}"
    team.deleted_at = timezone.now()
    team.save(update_fields=["slug", "name", "deleted_at"])


def _emptied(user: User) -> None:
    """A new unusable password also changes the hash that every session is checked against."""
    user.username = f"deleted-{user.pk}-{get_random_string(8).lower()}"
    user.email = user.first_name = user.last_name = ""
    user.is_active = user.is_staff = user.is_superuser = False
    user.deleted_at = timezone.now()
    user.set_unusable_password()
    user.save()
    user.groups.clear()
    user.user_permissions.clear()


def _membership_locked(team: Team, user_id: int) -> Membership:
    """All memberships of the team are locked: two owners leaving at once must not both see the other."""
    rows = {row.user_id: row for row in team.memberships.select_for_update().order_by("pk")}
    if user_id not in rows:
        raise Missing(thing=str(_("member")), name=user_id)
    return rows[user_id]


def _another_owner(team: Team, membership: Membership) -> None:
    if membership.role != Role.OWNER:
        return
    if not team.memberships.filter(role=Role.OWNER).exclude(pk=membership.pk).exists():
        raise LastOwner(user=membership.user.username, team=team.name)


def _name_checked(name: str, *, own: int) -> str:
    """The name as it is kept. Nobody's user name but that of `own`: boards show a team by its name alone."""
    shown = " ".join(name.split())
    if not 1 <= len(shown) <= 80 or not shown.isprintable():
        raise FieldFault(field="name", message=str(_("a team's name has 1 to 80 printable characters")))
    if any(user.pk != own for user in users_called(shown)):
        raise FieldFault(field="name", message=str(_("this is somebody else's user name; choose another")))
    return shown
