"""Room: portal.accounts. When two names are one: what differs only in width, form or case is the same name.

The database tells ASCII cases apart for us (`username_once_whatever_case`) and nothing else, so the rest is done here.
"""

import unicodedata

from django.db import connection
from django.db.models import Q
from django.db.models.functions import Lower

from portal.accounts.models import User

# First number of the pair, so that these locks meet no other.
NAME_LOCKS = 0x6E616D65


def plain(name: str) -> str:
    """`name` as it is kept: one way of writing each character (NFKC), so full-width letters become ordinary ones."""
    return unicodedata.normalize("NFKC", name)


def folded(name: str) -> str:
    """What two names have in common when they are one."""
    return plain(plain(name).casefold())


def users_called(name: str) -> tuple[User, ...]:
    """Users whose name is `name`; more than one only where they signed up before names were compared like this."""
    wanted = folded(name)
    # Only names with other characters than ASCII's need be looked at one by one.
    near = User.objects.alias(low=Lower("username")).filter(Q(low=wanted) | Q(username__regex="[^ -~]"))
    found = [pk for pk, username in near.values_list("pk", "username") if folded(username) == wanted]
    return tuple(User.objects.filter(pk__in=found).order_by("pk")) if found else ()


def name_hold(name: str) -> None:
    """Until the transaction ends, whoever else asks for this name waits here."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [NAME_LOCKS, folded(name)])
