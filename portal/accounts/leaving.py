"""Room: portal.accounts. Rooms above this one may keep a person's name; they are told when the person is deleted.

The composition root registers whom to tell. What is told runs in the transaction that deletes: all of it or nothing.
"""

from collections.abc import Callable

from portal.accounts.models import User

Forget = Callable[[int], None]
_told: list[Forget] = []


def register(forget: Forget) -> None:
    """Called once at start by portal/apps.py. `forget(user_id)` takes the name out of what that room stores."""
    _told.append(forget)


def everywhere_forgotten(user: User) -> None:
    """Have every room that is registered forget the person's name."""
    for forget in _told:
        forget(user.pk)
