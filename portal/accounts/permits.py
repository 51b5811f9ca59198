"""Room: portal.accounts. How a person stands to a team, and the two refusals: 404 to strangers, 403 to readers."""

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import Http404

from portal.accounts.models import Membership, Role, Team, User
from portal.accounts.roles import Relation, Thing, Verb, allowed

Person = AbstractBaseUser | AnonymousUser


def relation_of(user: Person, team: Team | None) -> Relation:
    """The strongest relation of `user` to `team`; without a team (the site's own things) only staff is special.

    An owner or member who is staff too stands as owner or member: the stronger right over the team's own things.
    """
    if not isinstance(user, User) or not user.is_active:
        return Relation.NOBODY
    if team is not None:
        role = Membership.objects.filter(team=team, user=user).values_list("role", flat=True).first()
        if role is not None:
            return Relation.OWNER if role == Role.OWNER else Relation.MEMBER
    return Relation.STAFF if user.is_staff else Relation.STRANGER


def may(user: Person, team: Team | None, thing: Thing, verb: Verb) -> bool:
    """Whether the matrix lets `user` do `verb` to a `thing` of `team`. A staff member keeps what staff may do."""
    if allowed(relation_of(user, team), thing, verb):
        return True
    return isinstance(user, User) and user.is_active and user.is_staff and allowed(Relation.STAFF, thing, verb)


def demand(user: Person, team: Team | None, thing: Thing, verb: Verb) -> None:
    """Return if allowed. Raises Http404 when `user` may not even read it, else PermissionDenied."""
    if may(user, team, thing, verb):
        return
    if not may(user, team, thing, Verb.READ):
        raise Http404
    raise PermissionDenied
