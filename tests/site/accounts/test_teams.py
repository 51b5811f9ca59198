"""Teams: one of one's own from the first moment, others by link, never without an owner."""

import threading
from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from django.urls import reverse
from django.utils import timezone

from portal.accounts.models import Invite, Membership, Role, Team, User
from portal.accounts.selectors import invites_of, members_of, team_of, teams_of
from portal.accounts.services import (
    LastOwner,
    PersonalTeam,
    member_remove,
    member_role_set,
    team_create,
    team_rename,
)
from portal.accounts.tokens import InviteDead, invite_accept, invite_create, invite_revoke, invite_team
from portal.core.errors import FieldFault, LimitReached, Missing
from portal.core.models import AuditEntry
from tests.site.accounts.together import overtaken


def test_every_new_user_owns_a_team_of_their_own(alice: User):
    own = team_of(alice)
    assert (own.name, own.slug, own.memberships.get().role) == ("alice", "alice", Role.OWNER)


def test_two_names_with_one_address_get_two_addresses(db: None):
    first, second, third = (User.objects.create_user(name) for name in ("Ann.Lee", "ann-lee", "李"))
    assert len({team_of(user).slug for user in (first, second, third)}) == 3


def test_names_that_differ_only_in_case_are_one_name(alice: User):
    with pytest.raises(IntegrityError), transaction.atomic():
        User.objects.create_user("ALICE")
    with pytest.raises(IntegrityError), transaction.atomic():
        User.objects.create_user("other", "Alice@Example.org")
    assert [User.objects.create_user(name).email for name in ("x", "y")] == ["", ""]


def test_who_makes_a_team_owns_it(alice: User):
    team = team_create(name="  Deep   Lab ", by=alice)
    assert (team.name, team.slug) == ("Deep Lab", "deep-lab")
    assert team_create(name="Deep Lab", by=alice).slug.startswith("deep-lab-")
    assert {row.name for row in teams_of(alice)} == {"alice", "Deep Lab"}


@pytest.mark.parametrize("name", ["", "   ", "x" * 81, "a\0b", "a\u202eb"])
def test_a_name_that_can_not_be_shown_is_refused_at_its_field(alice: User, name: str):
    """T7"""
    with pytest.raises(FieldFault) as caught:
        team_create(name=name, by=alice)
    assert caught.value.field == "name"


def test_the_number_of_teams_one_owns_is_limited(alice: User, monkeypatch):
    monkeypatch.setattr("portal.accounts.services.TEAMS_PER_USER", 2)
    team_create(name="second", by=alice)
    with pytest.raises(LimitReached, match="limit of 2"):
        team_create(name="third", by=alice)


def test_renaming_keeps_the_address_and_says_who_did_it(alice: User, team: Team):
    team_rename(team=team, name="The Other Lab", by=alice)
    team.refresh_from_db()
    assert (team.name, team.slug) == ("The Other Lab", "the-lab")
    entry = AuditEntry.objects.filter(verb="renamed").get()
    assert (entry.by, entry.facts) == (alice, {"before": "The Lab", "after": "The Other Lab"})


def test_whoever_holds_the_link_can_join_once(team: Team, alice: User, charlie: User):
    invite = invite_create(team=team, by=alice)
    value = invite.value.reveal()
    assert invite_team(value) == team
    assert invite_accept(value=value, user=charlie) == invite_accept(value=value, user=charlie) == team
    assert Membership.objects.get(team=team, user=charlie).role == Role.MEMBER
    assert Invite.objects.get().joined == 1


def test_an_owner_who_follows_the_link_stays_an_owner(team: Team, alice: User):
    invite_accept(value=invite_create(team=team, by=alice).value.reveal(), user=alice)
    assert Membership.objects.get(team=team, user=alice).role == Role.OWNER


def test_dead_links_look_alike(team: Team, alice: User, charlie: User):
    revoked, expired = (invite_create(team=team, by=alice) for _ in range(2))
    invite_revoke(team=team, invite_id=revoked.invite.pk, by=alice)
    Invite.objects.filter(pk=expired.invite.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    for value in (revoked.value.reveal(), expired.value.reveal(), "never-was", ""):
        with pytest.raises(InviteDead, match="not valid any more"):
            invite_accept(value=value, user=charlie)
    assert charlie not in team.members.all()


def test_only_links_that_still_work_are_listed(team: Team, alice: User):
    revoked, expired, alive = (invite_create(team=team, by=alice).invite for _ in range(3))
    invite_revoke(team=team, invite_id=revoked.pk, by=alice)
    Invite.objects.filter(pk=expired.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert list(invites_of(team)) == [alive]


def test_whoever_was_taken_out_does_not_come_back_by_a_link(client, team: Team, alice: User, bob: User):
    value = invite_create(team=team, by=alice).value.reveal()
    client.force_login(alice)
    answer = client.post(reverse("member_remove", args=[team.slug, bob.pk]), follow=True)
    assert "all links made so far are dead" in answer.content.decode()
    assert list(invites_of(team)) == []
    with pytest.raises(InviteDead):
        invite_accept(value=value, user=bob)
    assert bob not in team.members.all()
    assert AuditEntry.objects.get(verb="removed").facts == {"user": "bob", "links_ended": 1}


def test_whoever_leaves_ends_the_links_they_made_and_no_others(team: Team, alice: User, bob: User):
    member_role_set(team=team, user_id=bob.pk, role=Role.OWNER, by=alice)
    hers, his = (invite_create(team=team, by=user).invite for user in (alice, bob))
    other = invite_create(team=team_create(name="Other", by=bob), by=bob).invite
    member_remove(team=team, user_id=bob.pk, by=bob)
    alive = Invite.objects.filter(revoked_at=None)
    assert set(alive) == {hers, other}
    assert his not in alive


@pytest.mark.django_db(transaction=True)
def test_a_link_that_is_being_ended_lets_nobody_in():
    owner, member = (User.objects.create_user(name) for name in ("alice", "bob"))
    team = team_create(name="Lab", by=owner)
    Membership.objects.create(team=team, user=member)
    value = invite_create(team=team, by=owner).value.reveal()

    def join() -> str:
        try:
            return invite_accept(value=value, user=member).slug
        except InviteDead as dead:
            return dead.code

    assert overtaken(lambda: member_remove(team=team, user_id=member.pk, by=owner), join) == "invite_dead"
    assert member not in team.members.all()


def test_only_the_digest_of_a_link_is_stored(team: Team, alice: User):
    """A2"""
    value = invite_create(team=team, by=alice).value.reveal()
    with connection.cursor() as cursor:
        cursor.execute("SELECT t::text FROM accounts_invite t UNION ALL SELECT t::text FROM core_auditentry t")
        assert value not in str(cursor.fetchall())


def test_a_link_of_another_team_is_not_there(team: Team, alice: User, charlie: User):
    invite = invite_create(team=team_of(charlie), by=charlie).invite
    with pytest.raises(Missing):
        invite_revoke(team=team, invite_id=invite.pk, by=alice)


def test_a_team_is_never_left_without_an_owner(team: Team, alice: User, bob: User):
    for deed in (
        lambda: member_remove(team=team, user_id=alice.pk, by=alice),
        lambda: member_role_set(team=team, user_id=alice.pk, role=Role.MEMBER, by=alice),
    ):
        with pytest.raises(LastOwner, match="alice is the last owner"):
            deed()
    member_role_set(team=team, user_id=bob.pk, role=Role.OWNER, by=alice)
    member_remove(team=team, user_id=alice.pk, by=alice)
    assert [row.user for row in members_of(team)] == [bob]


@pytest.mark.django_db(transaction=True)
def test_two_owners_who_leave_at_once_leave_one_behind():
    """S11"""
    owners = [User.objects.create_user(name) for name in ("alice", "bob")]
    team = team_create(name="Lab", by=owners[0])
    Membership.objects.create(team=team, user=owners[1], role=Role.OWNER)
    refused: list[str] = []

    def leave(user: User) -> None:
        try:
            member_remove(team=team, user_id=user.pk, by=user)
        except LastOwner:
            refused.append(user.username)
        connection.close()

    threads = [threading.Thread(target=leave, args=(user,)) for user in owners]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == team.memberships.filter(role=Role.OWNER).count() == 1


def test_a_personal_team_keeps_its_member(alice: User):
    with pytest.raises(PersonalTeam, match="personal team"):
        member_remove(team=team_of(alice), user_id=alice.pk, by=alice)


def test_a_stranger_can_not_be_removed(team: Team, alice: User, charlie: User):
    with pytest.raises(Missing):
        member_remove(team=team, user_id=charlie.pk, by=alice)
