"""A deleted user leaves an empty row behind: references stay whole, everything personal is gone."""

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth import get_user
from django.db import connection
from django.db.models import ProtectedError
from django.test import Client

from portal.accounts.models import Membership, Notice, Role, Team, User, VaultSecret
from portal.accounts.notices import (
    notice_send,
    notice_send_to_staff,
    notice_sentence,
    notices_mark_read,
    notices_unread,
)
from portal.accounts.selectors import invites_of, members_of, team_of, teams_of
from portal.accounts.services import LastOwner, member_role_set, team_create, user_delete
from portal.accounts.tokens import InviteDead, invite_accept, invite_create, token_create, token_find
from portal.accounts.vault import secret_put, values_to_mask
from portal.core.errors import Missing
from portal.core.models import AuditEntry
from portal.core.secrets import Secret
from tests.site.accounts.together import at_once


def test_name_address_tokens_memberships_and_secrets_of_a_deleted_user_are_gone(bob: User, team: Team):
    """A5"""
    token = token_create(user=bob, name="t", scopes=["read"]).value.reveal()
    secret_put(team=team_of(bob), name="KEY", value=Secret("x"), host="example.org", by=bob)
    EmailAddress.objects.create(user=bob, email="bob@example.org")
    notice_send(users=[bob], code="node_lost", facts={"node": "n"})
    user_delete(user=bob, by=bob)
    assert token_find(token) is None
    assert bob not in team.members.all()
    assert not any(rows.objects.exists() for rows in (VaultSecret, Notice, EmailAddress))
    with connection.cursor() as cursor:
        cursor.execute("SELECT t::text FROM accounts_user t UNION ALL SELECT t::text FROM accounts_team t")
        assert "bob" not in str(cursor.fetchall())


def test_a_deleted_user_is_shown_as_such_and_every_reference_is_whole(bob: User):
    """A5"""
    own = team_of(bob)
    entry = AuditEntry.objects.create(verb="did", thing="x", thing_id="1", by=bob, team=own)
    user_delete(user=bob, by=bob)
    entry = AuditEntry.objects.select_related("by", "team").get(pk=entry.pk)
    assert (str(entry.by), str(entry.team)) == ("deleted user", "deleted user")
    assert list(teams_of(entry.by)) == []


def test_sessions_of_a_deleted_user_are_dead(client: Client, bob: User):
    """A5"""
    client.force_login(bob)
    session = client.session
    user_delete(user=bob, by=bob)
    request = type("Request", (), {"session": session})()
    from_session = get_user(request)
    assert not from_session.is_authenticated
    assert not Client().login(username="bob", password="correct horse")


def test_the_name_is_free_again(bob: User):
    user_delete(user=bob, by=bob)
    again = User.objects.create_user("bob", "bob@example.org")
    assert team_of(again).slug == "bob"


def test_deleting_twice_is_no_fault(bob: User):
    user_delete(user=bob, by=bob)
    user_delete(user=bob, by=bob)
    assert AuditEntry.objects.filter(verb="deleted").count() == 1


def test_the_last_owner_of_a_shared_team_hands_it_over_first(alice: User, bob: User, team: Team):
    with pytest.raises(LastOwner):
        user_delete(user=alice, by=alice)
    assert User.objects.filter(username="alice").exists()
    member_role_set(team=team, user_id=bob.pk, role=Role.OWNER, by=alice)
    user_delete(user=alice, by=alice)


def test_a_row_of_a_user_can_not_be_removed_behind_the_services_back(bob: User):
    """A5"""
    with pytest.raises(ProtectedError):
        bob.delete()


def test_links_of_a_deleted_users_own_team_are_dead(bob: User, charlie: User):
    value = invite_create(team=team_of(bob), by=bob).value.reveal()
    user_delete(user=bob, by=bob)
    with pytest.raises(InviteDead):
        invite_accept(value=value, user=charlie)


def test_a_shared_team_of_one_ends_with_its_only_member(bob: User, charlie: User):
    lab = team_create(name="Bob Lab", by=bob)
    secret_put(team=lab, name="KEY", value=Secret("sk-of-the-lab"), host="example.org", by=bob)
    value = invite_create(team=lab, by=bob).value.reveal()
    user_delete(user=bob, by=bob)
    with pytest.raises(InviteDead):
        invite_accept(value=value, user=charlie)
    lab.refresh_from_db()
    assert (lab.shown_name, lab.slug.startswith("deleted-")) == ("deleted user", True)
    assert lab.deleted_at is not None
    assert not VaultSecret.objects.exists()
    assert not lab.invites.filter(revoked_at=None).exists()
    assert AuditEntry.objects.filter(verb="deleted", team=lab).count() == 1
    assert team_create(name="Bob Lab", by=charlie).slug == "bob-lab"


def test_a_shared_team_with_others_lives_on_without_the_links_of_the_deleted(alice: User, bob: User, team: Team):
    member_role_set(team=team, user_id=bob.pk, role=Role.OWNER, by=alice)
    hers, his = (invite_create(team=team, by=user).invite for user in (alice, bob))
    secret_put(team=team, name="KEY", value=Secret("x"), host="example.org", by=bob)
    user_delete(user=bob, by=bob)
    team.refresh_from_db()
    assert (team.name, team.deleted_at, list(members_of(team).values_list("user", flat=True))) == (
        "The Lab",
        None,
        [alice.pk],
    )
    assert list(invites_of(team)) == [hers]
    assert his.team.secrets.count() == 1


def test_what_runs_still_print_of_a_deleted_users_keys_is_masked(bob: User):
    own = team_of(bob)
    secret_put(team=own, name="KEY", value=Secret("sk-of-bob"), host="example.org", by=bob)
    user_delete(user=bob, by=bob)
    assert values_to_mask(team_id=own.pk, name="KEY") == ("sk-of-bob",)


@pytest.mark.django_db(transaction=True)
def test_two_owners_who_delete_themselves_at_once_leave_one_behind():
    owners = [User.objects.create_user(name) for name in ("alice", "bob")]
    lab = team_create(name="Lab", by=owners[0])
    Membership.objects.create(team=lab, user=owners[1], role=Role.OWNER)
    Membership.objects.create(team=lab, user=User.objects.create_user("charlie"))

    def go(user: User) -> str:
        try:
            user_delete(user=user, by=user)
        except LastOwner as last:
            return last.code
        return "gone"

    said = at_once(*(lambda user=user: go(user) for user in owners))
    assert sorted(said) == ["gone", "last_owner"]
    assert lab.memberships.filter(role=Role.OWNER).count() == 1


def test_notices_go_to_whom_they_concern_and_are_read_once(alice: User, dora: User):
    notice_send_to_staff(code="host_key_changed", facts={"node": "h200", "fingerprint": "SHA256:abc"})
    assert (notices_unread(alice), notices_unread(dora)) == (0, 1)
    assert "h200" in notice_sentence(dora.notices.get())
    assert "SHA256:abc" in notice_sentence(dora.notices.get())
    notices_mark_read(user=dora)
    assert notices_unread(dora) == 0


def test_a_notice_of_another_release_is_shown_all_the_same(alice: User):
    """R17"""
    notice_send(users=[alice], code="of_the_future", facts={})
    notice_send(users=[alice], code="node_lost", facts={})
    assert [notice_sentence(notice) for notice in alice.notices.order_by("id")] == [
        "of_the_future",
        "Node ? stopped answering; its runs wait for it.",
    ]


def test_a_missing_thing_says_which(alice: User):
    assert Missing(thing="node", name="x").sentence == "There is no node x."
