"""Room: portal.accounts. How a team comes into being: at an address of its own, with an owner, or not at all."""

from collections.abc import Iterator
from contextlib import suppress

from django.db import IntegrityError, transaction
from django.utils.crypto import get_random_string
from django.utils.text import slugify
from django.utils.translation import gettext_lazy as _

from portal.accounts.models import Membership, Role, Team, User
from portal.core.errors import Conflict

# Below the column's 180: slugify may make more characters of a name than it has, and a suffix must fit.
MOST_BASE = 150
TRIES = 5


def team_insert(*, name: str, owner: User, personal: bool = False) -> Team:
    """A team at the address its name gives, or near it when that is taken. The caller checked the name.

    Raises Conflict when every address tried was taken.
    """
    base = slugify(name)[:MOST_BASE].strip("-_") or (f"user-{owner.pk}" if personal else "team")
    for slug in _addresses(base):
        if Team.objects.filter(slug=slug).exists():
            continue
        with suppress(IntegrityError), transaction.atomic():  # taken in this very moment: the next one
            team = Team.objects.create(slug=slug, name=name, personal_of=owner if personal else None)
            Membership.objects.create(team=team, user=owner, role=Role.OWNER)
            return team
    raise Conflict(thing=str(_("team")), name=name)


def personal_team_ensure(user: User) -> Team:
    """The personal team of `user`; made now for whom a broken sign-up of an earlier release left without one."""
    found = Team.objects.filter(personal_of=user).first()
    if found is not None:
        return found
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=user.pk)  # two requests at once make one team
        found = Team.objects.filter(personal_of=user).first()
        return found or team_insert(name=user.username, owner=user, personal=True)


def _addresses(base: str) -> Iterator[str]:
    yield base
    for _try in range(TRIES):
        yield f"{base}-{get_random_string(4, '23456789abcdefghjkmnpqrstuvwxyz')}"
