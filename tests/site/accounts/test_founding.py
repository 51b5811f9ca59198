"""A team comes into being at an address of its own, whatever its name, with whoever else makes one at that moment."""

import pytest
from django.db import DataError
from django.test import Client
from django.urls import reverse

from portal.accounts.models import Team, User
from portal.accounts.selectors import team_for_work, team_of
from portal.accounts.services import team_create
from tests.site.accounts.together import at_once


def homeless(name: str) -> User:
    """A user as a broken sign-up left them: without a team."""
    user = User.objects.create_user(name)
    Team.objects.filter(personal_of=user).delete()
    return user


def test_a_user_whose_team_can_not_be_made_is_not_made(db: None, monkeypatch):
    monkeypatch.setattr("portal.accounts.founding.MOST_BASE", 400)
    with pytest.raises(DataError):
        User(username="ﬃ" * 75).save()
    assert not User.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_teams_made_at_once_under_one_name_get_an_address_each():
    alice = User.objects.create_user("alice")
    teams = at_once(*(lambda: team_create(name="Deep Lab", by=alice) for _ in range(4)))
    assert len({team.slug for team in teams}) == 4
    assert all(team.memberships.get().user_id == alice.pk for team in teams)


@pytest.mark.parametrize("name", ["㎒" * 80, "ﬃ" * 80, "ﬃ" * 79 + "-"])
def test_a_name_of_which_slugify_makes_more_gets_an_address_that_fits(alice: User, name: str):
    slugs = {team_create(name=name, by=alice).slug for _ in range(2)}
    assert len(slugs) == 2
    assert all(len(slug) <= 180 and not slug.endswith("-") for slug in slugs)


def test_who_was_left_without_a_team_gets_one_at_the_next_page(client: Client, db: None):
    user = homeless("ﬃ" * 50)
    client.force_login(user)
    assert client.get(reverse("home")).status_code == 200
    assert client.get(reverse("submit")).status_code == 200
    assert team_for_work(user, None).memberships.get().user == user
    assert Team.objects.filter(personal_of=user).count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_pages_at_once_make_one_team():
    user = homeless("erin")
    first, second = at_once(lambda: team_of(user), lambda: team_of(user))
    assert first == second
