"""Room: portal.accounts. Every user has a team of their own, whoever made the user: sign-up page, API or command."""

from portal.accounts.founding import team_insert
from portal.accounts.models import User


def personal_team_make(sender: type, instance: User, *, created: bool, raw: bool = False, **_rest: object) -> None:
    """Make the personal team of a user row that was just inserted; fixtures bring their own teams."""
    if created and not raw:
        team_insert(name=instance.username, owner=instance, personal=True)
