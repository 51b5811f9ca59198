"""Tokens are shown once; secrets go in and come out only for the host they were stored for, in a worker."""

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from portal.accounts.models import ApiToken, FormerSecret, Team, User, VaultSecret
from portal.accounts.selectors import secrets_for, team_of, tokens_of
from portal.accounts.tokens import token_create, token_find, token_revoke
from portal.accounts.vault import (
    SecretBoundElsewhere,
    SecretMissing,
    formers_forget,
    secret_delete,
    secret_open,
    secret_put,
    values_to_mask,
)
from portal.core.errors import FieldFault, LimitReached, Missing
from portal.core.secrets import Secret, VaultClosed

KEY = "sk-ant-0123456789-very-secret"
HOME = "https://api.anthropic.com/v1"


def everything_stored() -> str:
    tables = ("accounts_apitoken", "accounts_vaultsecret", "core_auditentry")
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(f"SELECT t::text FROM {table} t" for table in tables))
        return str(cursor.fetchall())


@pytest.fixture
def stored(team: Team, bob: User) -> VaultSecret:
    return secret_put(team=team, name="ANTHROPIC_KEY", value=Secret(KEY), host="api.anthropic.com", by=bob)


def test_a_token_finds_its_user_and_only_its_digest_is_stored(alice: User):
    """A2"""
    made = token_create(user=alice, name="laptop", scopes=["run", "read"])
    found = token_find(made.value.reveal())
    assert found is not None
    assert (found.user, found.scopes, found.hint) == (alice, ["read", "run"], made.value.reveal()[:7])
    assert made.value.reveal() not in everything_stored() + repr(made)


def test_using_a_token_is_noted_at_most_once_a_minute(alice: User, django_assert_num_queries):
    made = token_create(user=alice, name="laptop", scopes=["read"])
    token_find(made.value.reveal())
    assert ApiToken.objects.get().last_used_at is not None
    with django_assert_num_queries(1):
        token_find(made.value.reveal())


def test_dead_tokens_find_nobody(alice: User, bob: User):
    revoked, expired, inactive = (token_create(user=u, name="t", scopes=["read"]) for u in (alice, alice, bob))
    token_revoke(user=alice, token_id=revoked.token.pk)
    token_revoke(user=alice, token_id=revoked.token.pk)
    ApiToken.objects.filter(pk=expired.token.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    User.objects.filter(pk=bob.pk).update(is_active=False)
    values = [made.value.reveal() for made in (revoked, expired, inactive)]
    assert [token_find(value) for value in [*values, "", "ib_unknown"]] == [None] * 5
    assert [token.pk for token in tokens_of(alice)] == [expired.token.pk]


def test_another_persons_token_is_not_there(alice: User, bob: User):
    made = token_create(user=alice, name="t", scopes=["read"])
    with pytest.raises(Missing):
        token_revoke(user=bob, token_id=made.token.pk)


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("name", {"name": "  "}),
        ("scopes", {"scopes": []}),
        ("scopes", {"scopes": ["read", "root"]}),
        ("expires_at", {"expires_at": timezone.now() - timedelta(days=1)}),
    ],
)
def test_a_token_that_makes_no_sense_is_refused_at_its_field(alice: User, field: str, changes: dict):
    with pytest.raises(FieldFault) as caught:
        token_create(**{"user": alice, "name": "t", "scopes": ["read"]} | changes)
    assert caught.value.field == field


def test_the_number_of_living_tokens_is_limited(alice: User, monkeypatch):
    monkeypatch.setattr("portal.accounts.tokens.TOKENS_PER_USER", 1)
    first = token_create(user=alice, name="t", scopes=["read"])
    with pytest.raises(LimitReached):
        token_create(user=alice, name="t", scopes=["read"])
    token_revoke(user=alice, token_id=first.token.pk)
    token_create(user=alice, name="t", scopes=["read"])


def test_a_worker_opens_a_secret_for_its_host(stored: VaultSecret, team: Team, bob: User):
    assert secret_open(team=team, name="ANTHROPIC_KEY", url="https://API.anthropic.com.:443/v1").reveal() == KEY
    row = secrets_for(bob, team)[0]
    assert (row.name, row.host, row.created_by) == ("ANTHROPIC_KEY", "api.anthropic.com", "bob")
    assert row.last_used_at is not None


def test_no_copy_of_the_database_shows_a_secret(stored: VaultSecret):
    """A2"""
    assert KEY not in everything_stored()
    assert KEY.encode().hex() not in everything_stored()
    assert KEY.encode() not in bytes(stored.sealed)


def test_the_web_process_can_store_but_not_open(stored: VaultSecret, team: Team, bob: User, settings):
    settings.VAULT_IDENTITY_PATH = None
    secret_put(team=team, name="OTHER", value=Secret("x"), host="example.org", by=bob)
    with pytest.raises(VaultClosed):
        secret_open(team=team, name="ANTHROPIC_KEY", url=HOME)


@pytest.mark.parametrize("place", ["evil.example.org", "api.anthropic.com:8443", "api.anthropic.com.evil.org"])
def test_a_secret_is_never_opened_for_another_place(stored: VaultSecret, team: Team, place: str):
    with pytest.raises(SecretBoundElsewhere, match=rf"stored for api\.anthropic\.com, and {place} asked"):
        secret_open(team=team, name="ANTHROPIC_KEY", url=f"https://{place}/v1")


def test_a_secret_for_a_host_and_port_is_opened_there_and_nowhere_else(team: Team, bob: User):
    secret_put(team=team, name="LAB", value=Secret("x"), host="127.0.0.1:8977", by=bob)
    assert secret_open(team=team, name="LAB", url="http://127.0.0.1:8977/v1").reveal() == "x"
    for place in ("127.0.0.1", "127.0.0.1:8978"):
        with pytest.raises(SecretBoundElsewhere):
            secret_open(team=team, name="LAB", url=f"http://{place}/v1")


def test_a_secret_for_tasks_is_sent_to_no_model(team: Team, bob: User):
    secret_put(team=team, name="DATA", value=Secret("line\nline é\n"), host=" ", by=bob)
    with pytest.raises(SecretBoundElsewhere, match="tasks only"):
        secret_open(team=team, name="DATA", url=HOME)


def test_editing_the_row_opens_the_secret_for_nobody_new(stored: VaultSecret, team: Team, charlie: User):
    VaultSecret.objects.update(host="evil.example.org")
    with pytest.raises(SecretBoundElsewhere):
        secret_open(team=team, name="ANTHROPIC_KEY", url="https://evil.example.org")
    VaultSecret.objects.update(team=team_of(charlie))
    with pytest.raises(SecretMissing):
        secret_open(team=team_of(charlie), name="ANTHROPIC_KEY", url=HOME)


def test_storing_again_replaces_value_and_host(stored: VaultSecret, team: Team, alice: User):
    secret_put(team=team, name="ANTHROPIC_KEY", value=Secret("new"), host="proxy.example.org:8443", by=alice)
    assert secret_open(team=team, name="ANTHROPIC_KEY", url="https://proxy.example.org:8443").reveal() == "new"
    assert VaultSecret.objects.get().replaced_at is not None


def test_another_teams_secret_is_not_there(stored: VaultSecret, team: Team, alice: User, charlie: User):
    with pytest.raises(SecretMissing, match="team charlie has no secret ANTHROPIC_KEY"):
        secret_open(team=team_of(charlie), name="ANTHROPIC_KEY", url=HOME)
    with pytest.raises(Missing):
        secret_delete(team=team_of(charlie), secret_id=stored.pk, by=charlie)
    secret_delete(team=team, secret_id=stored.pk, by=alice)
    assert not VaultSecret.objects.exists()


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("name", {"name": "lower"}),
        ("name", {"name": "A B"}),
        ("host", {"host": "https://example.org/v1"}),
        ("host", {"host": "user@example.org"}),
        ("host", {"host": "example.org/path"}),
        ("host", {"host": "example.org:99999"}),
        ("host", {"host": "999.1.1.1"}),
        ("host", {"host": "x." * 125 + "org:8000"}),
        ("value", {"value": Secret("")}),
        ("value", {"value": Secret("a\0b")}),
        ("value", {"value": Secret("a\0b"), "host": ""}),
        ("value", {"value": Secret("a\ud800b"), "host": ""}),
        ("value", {"value": Secret(" \n ")}),
        ("value", {"value": Secret("x" * 20_000)}),
    ],
)
def test_a_secret_that_makes_no_sense_is_refused_at_its_field(team: Team, bob: User, field: str, changes: dict):
    with pytest.raises(FieldFault) as caught:
        secret_put(**{"team": team, "name": "K", "value": Secret("v"), "host": "h.org", "by": bob} | changes)
    assert caught.value.field == field
    assert "v" * 2 not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("sk-é", r"character 4 is U\+00E9 \(LATIN SMALL LETTER E WITH ACUTE\)"),
        ("密钥", r"character 1 is U\+5BC6"),
        ("sk-a\nb", r"character 5 is U\+000A \(CONTROL CHARACTER\)"),
        ("sk-a\u200b", r"character 5 is U\+200B \(ZERO WIDTH SPACE\)"),
        ("sk-a\ud800", r"character 5 is U\+D800"),
    ],
)
def test_a_key_that_no_request_can_carry_is_refused_when_it_is_stored(team: Team, bob: User, value: str, said: str):
    with pytest.raises(FieldFault, match=said + r".*printable ASCII alone") as caught:
        secret_put(team=team, name="K", value=Secret(value), host="h.org", by=bob)
    assert caught.value.field == "value"
    assert not VaultSecret.objects.exists()


def test_blanks_around_a_key_are_left_out(team: Team, bob: User):
    secret_put(team=team, name="K", value=Secret(" \tsk-x\r\n\u3000"), host="h.org", by=bob)
    assert secret_open(team=team, name="K", url="https://h.org/v1").reveal() == "sk-x"


def test_what_a_secret_was_is_masked_for_a_while_and_then_forgotten(team: Team, bob: User):
    for value in ("sk-first-value", "sk-second-value"):
        secret_put(team=team, name="KEY", value=Secret(value), host="api.example.org", by=bob)
    secret_delete(team=team, secret_id=team.secrets.get(name="KEY").pk, by=bob)
    formers_forget()
    assert values_to_mask(team_id=team.pk, name="KEY") == ("sk-second-value", "sk-first-value")
    FormerSecret.objects.filter(team=team).update(until=timezone.now())
    formers_forget()
    assert not FormerSecret.objects.filter(team=team).exists()
