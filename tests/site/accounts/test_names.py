"""Signing up: a name is one name however it is written, and an account comes whole or not at all."""

import pytest
from django.test import Client
from django.urls import reverse

from portal.accounts.models import Membership, Team, User
from portal.accounts.names import folded, plain, users_called
from portal.accounts.selectors import team_of
from portal.accounts.services import team_create, team_rename
from portal.core.errors import FieldFault
from tests.site.accounts.together import at_once, overtaken

PASSWORD = "a long sentence"
TAKEN = "A user with that username already exists."


def sign_up(name: str, email: str = "erin@example.org", *, client: Client | None = None):
    words = {"username": name, "email": email, "password1": PASSWORD, "password2": PASSWORD}
    return (client or Client()).post(reverse("account_signup"), words)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("alice", "ａlice"),
        ("Ålan", "ålan"),
        ("straße", "STRASSE"),
        ("李明", "李明"),
        ("kim", "\u212aim"),
        ("é", "e\u0301"),
    ],
)
def test_width_form_and_case_make_no_other_name(one: str, other: str):
    assert folded(one) == folded(other)
    assert plain("ａlice") == "alice"


@pytest.mark.parametrize(("first", "second"), [("alice", "ａlice"), ("Ålan", "ålan"), ("Straße", "STRASSE")])
def test_a_name_is_signed_up_once_however_it_is_written(db: None, first: str, second: str):
    assert sign_up(first).status_code == 302
    answer = sign_up(second, "other@example.org")
    assert answer.status_code == 200
    assert TAKEN in answer.content.decode()
    assert User.objects.get().username == first
    assert Client().post(reverse("account_login"), {"login": second, "password": PASSWORD}).status_code == 302


def test_a_name_is_kept_in_its_plain_form_and_signs_in_as_it_was_typed(db: None):
    assert sign_up("Ｅｒｉｎ").status_code == 302
    assert (User.objects.get().username, team_of(User.objects.get()).slug) == ("Erin", "erin")
    for typed in ("Ｅｒｉｎ", "erin", "ｅｒｉｎ"):
        answer = Client().post(reverse("account_login"), {"login": typed, "password": PASSWORD})
        assert answer.status_code == 302


def test_who_signed_up_before_names_were_compared_still_signs_in(db: None):
    for name in ("ålan", "Ålan"):
        user = User.objects.create_user(name, password=PASSWORD)
        User.objects.filter(pk=user.pk).update(username=name)
    assert len(users_called("Ålan")) == 2
    for name in ("ålan", "Ålan"):
        client = Client()
        client.post(reverse("account_login"), {"login": name, "password": PASSWORD})
        assert client.session["_auth_user_id"] == str(User.objects.get(username=name).pk)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ﬃ" * 75, "at most 150 characters (it has 225)"),
        ("ﷺlice", "Enter a valid username"),
        ("x" * 151, "at most 150"),
    ],
)
def test_a_name_whose_plain_form_is_no_name_is_refused_and_leaves_nothing(db: None, name: str, said: str):
    answer = sign_up(name)
    assert answer.status_code == 200
    assert said in answer.content.decode()
    assert not User.objects.exists()
    assert not Team.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_one_of_those_who_sign_up_at_once_with_a_name_has_it():
    names = ("erin", "Erin", "ｅrin")
    answers = at_once(*(lambda n=name, i=i: sign_up(n, f"e{i}@example.org") for i, name in enumerate(names)))
    assert sorted(answer.status_code for answer in answers) == [200, 200, 302]
    assert [TAKEN in answer.content.decode() for answer in answers if answer.status_code == 200] == [True, True]
    assert User.objects.count() == Team.objects.count() == Membership.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_name_or_address_taken_while_one_signs_up_is_said_at_its_field():
    answer = overtaken(lambda: User.objects.create_user("frank", "erin@example.org"), lambda: sign_up("erin"))
    assert "A user is already registered with this email address." in answer.content.decode()
    answer = overtaken(lambda: User.objects.create_user("grace"), lambda: sign_up("Grace", "grace@example.org"))
    assert TAKEN in answer.content.decode()
    assert User.objects.count() == Team.objects.count() == 2


@pytest.mark.parametrize("name", ["bob", "BOB", "Ｂob", " bob "])
def test_a_team_is_not_called_like_somebody_else(alice: User, bob: User, team: Team, name: str):
    for deed in (
        lambda: team_create(name=name, by=alice),
        lambda: team_rename(team=team, name=name, by=alice),
        lambda: team_rename(team=team_of(alice), name=name, by=alice),
    ):
        with pytest.raises(FieldFault, match="somebody else's user name") as caught:
            deed()
        assert caught.value.field == "name"


def test_a_team_may_be_called_like_its_owner(alice: User, dora: User):
    own = team_of(alice)
    team_rename(team=own, name="Something", by=alice)
    team_rename(team=own, name="Alice", by=dora)
    assert team_create(name="alice", by=alice).slug.startswith("alice-")
    with pytest.raises(FieldFault):
        team_rename(team=own, name="dora", by=dora)
