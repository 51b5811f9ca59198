"""The people of every site test: alice owns a team, bob is in it, charlie is a stranger, dora runs the site."""

from collections.abc import Iterator

import pytest
from django.utils.translation import override

from portal.accounts.models import Membership, Role, Team, User
from portal.accounts.services import team_create


def person(name: str, *, staff: bool = False) -> User:
    """A user with a password and a personal team."""
    return User.objects.create_user(name, f"{name}@example.org", "correct horse", is_staff=staff)


@pytest.fixture(autouse=True)
def english() -> Iterator[None]:
    """A request that asked for Chinese leaves its language behind in the thread."""
    with override("en"):
        yield


@pytest.fixture
def alice(db: None) -> User:
    return person("alice")


@pytest.fixture
def bob(db: None) -> User:
    return person("bob")


@pytest.fixture
def charlie(db: None) -> User:
    return person("charlie")


@pytest.fixture
def dora(db: None) -> User:
    return person("dora", staff=True)


@pytest.fixture
def team(alice: User, bob: User) -> Team:
    """Alice's and Bob's: she owns it, he is a member."""
    lab = team_create(name="The Lab", by=alice)
    Membership.objects.create(team=lab, user=bob, role=Role.MEMBER)
    return lab
