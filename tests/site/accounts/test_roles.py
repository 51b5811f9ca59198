"""Who may do what: the matrix, how a person stands to a team, and the two refusals."""

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import Http404

from portal.accounts.models import Role, Team, User
from portal.accounts.permits import demand, may, relation_of
from portal.accounts.roles import MATRIX, Relation, Thing, Verb, allowed
from portal.accounts.selectors import secrets_for, staff_required, team_for_work, team_get_for, team_ids_of, team_of
from portal.accounts.services import member_role_set

# One row per thing: the verbs of nobody, stranger, member, owner and staff, written out a second time on purpose.
EXPECTED = {
    Thing.PUBLIC_RUN: ("r", "r", "rw", "rwm", "rwm"),
    Thing.PRIVATE_RUN: ("", "", "rw", "rwm", "rwm"),
    Thing.CONFIG: ("", "", "rw", "rwm", "r"),
    Thing.TEAM: ("", "", "r", "rwm", "rwm"),
    Thing.SECRET: ("", "", "rw", "rwm", ""),
    Thing.SITE_NODE: ("", "r", "r", "r", "rwm"),
    Thing.TEAM_NODE: ("", "", "r", "rwm", "rwm"),
    Thing.PUBLISHED_TASK: ("r", "r", "rw", "rwm", "rwm"),
    Thing.DRAFT_TASK: ("", "", "rw", "rwm", "rwm"),
}
VERBS = {Verb.READ: "r", Verb.WRITE: "w", Verb.MANAGE: "m"}


@pytest.fixture
def people(alice: User, bob: User, charlie: User, dora: User) -> dict[Relation, User | AnonymousUser]:
    return {
        Relation.NOBODY: AnonymousUser(),
        Relation.STRANGER: charlie,
        Relation.MEMBER: bob,
        Relation.OWNER: alice,
        Relation.STAFF: dora,
    }


def test_the_matrix_has_every_relation_and_thing():
    """A1"""
    assert set(MATRIX) == {(relation, thing) for relation in Relation for thing in Thing}
    assert set(EXPECTED) == set(Thing)


@pytest.mark.parametrize("thing", Thing)
@pytest.mark.parametrize("relation", Relation)
def test_each_relation_may_do_what_the_matrix_says_and_no_more(people, team: Team, relation, thing):
    """A1"""
    letters = EXPECTED[thing][list(Relation).index(relation)]
    assert relation_of(people[relation], team) == relation
    for verb, letter in VERBS.items():
        assert allowed(relation, thing, verb) == may(people[relation], team, thing, verb) == (letter in letters)


@pytest.mark.parametrize(("relation", "refusal"), [(Relation.STRANGER, Http404), (Relation.MEMBER, PermissionDenied)])
def test_strangers_get_404_and_readers_403(people, team: Team, relation, refusal):
    """A1"""
    with pytest.raises(refusal):
        demand(people[relation], team, Thing.TEAM, Verb.MANAGE)
    with pytest.raises(refusal):
        team_get_for(people[relation], team.slug, need=Verb.MANAGE)


def test_a_readers_page_opens_and_a_visitor_sees_nothing_of_a_team(people, team: Team):
    """A1"""
    assert team_get_for(people[Relation.MEMBER], team.slug) == team
    with pytest.raises(Http404):
        team_get_for(AnonymousUser(), team.slug)


def test_staff_may_not_even_see_the_names_in_a_teams_vault(dora: User, team: Team):
    """A1"""
    with pytest.raises(Http404):
        secrets_for(dora, team)


def test_a_member_who_is_staff_has_both_rights(bob: User, team: Team):
    bob.is_staff = True
    bob.save()
    assert may(bob, team, Thing.SECRET, Verb.WRITE)
    assert may(bob, team, Thing.TEAM, Verb.MANAGE)


def test_an_inactive_user_is_nobody(bob: User, team: Team):
    bob.is_active = False
    bob.save()
    assert relation_of(bob, team) == Relation.NOBODY
    assert team_ids_of(bob) == frozenset()


def test_the_sites_own_things_belong_to_staff(alice: User, dora: User):
    assert [relation_of(user, None) for user in (alice, dora, AnonymousUser())] == ["stranger", "staff", "nobody"]
    assert staff_required(dora) == dora
    with pytest.raises(PermissionDenied):
        staff_required(alice)
    with pytest.raises(Http404):
        staff_required(AnonymousUser())


def test_work_is_done_for_ones_own_team_unless_another_of_ones_teams_is_named(alice, bob, charlie, team: Team):
    assert team_for_work(bob, None) == team_of(bob)
    assert team_for_work(bob, team.slug) == team
    with pytest.raises(Http404):
        team_for_work(charlie, team.slug)
    assert team_ids_of(bob) == {team.pk, team_of(bob).pk}
    member_role_set(team=team, user_id=bob.pk, role=Role.OWNER, by=alice)
    assert relation_of(bob, team) == Relation.OWNER
