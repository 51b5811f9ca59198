"""The account by API: tokens that expire, and a vault as wide as the page's."""

import json
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from portal.accounts.models import ApiToken, VaultSecret
from portal.core.secrets import vault_open_bytes

SECRET = "/api/v1/account/secrets/MY_KEY/"


def kept() -> dict:
    return json.loads(vault_open_bytes(bytes(VaultSecret.objects.get().sealed)))


def test_a_token_is_made_with_its_end(token, alice):
    end = timezone.now() + timedelta(days=30)
    wish = {"name": "laptop", "scopes": ["read"], "expires_at": end.isoformat()}
    made = token(alice).post(reverse("api-tokens"), wish, content_type="application/json").json()
    assert ApiToken.objects.get(pk=made["id"]).expires_at == end
    rows = token(alice).get(reverse("api-tokens")).json()["tokens"]
    assert made["expires_at"] == next(row["expires_at"] for row in rows if row["id"] == made["id"])


@pytest.mark.parametrize("given", [{}, {"expires_at": None}])
def test_a_token_without_an_end_lives_until_it_is_revoked(token, alice, given):
    wish = {"name": "laptop", "scopes": ["read"], **given}
    made = token(alice).post(reverse("api-tokens"), wish, content_type="application/json")
    assert (made.status_code, made.json()["expires_at"]) == (201, None)


@pytest.mark.parametrize("end", ["2020-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "soon", "", 5])
def test_an_end_that_is_none_is_told_at_its_field(token, alice, end):
    wish = {"name": "laptop", "scopes": ["read"], "expires_at": end}
    answer = token(alice).post(reverse("api-tokens"), wish, content_type="application/json")
    (fault,) = answer.json()["error"]["errors"]
    assert (answer.status_code, fault["path"]) == (400, "expires_at")


def test_a_secret_of_tasks_is_kept_as_it_is_and_up_to_what_the_vault_takes(token, alice):
    value = " " + "x" * (16 * 1024 - 2) + "\n"
    wish = {"value": value, "host": ""}
    assert token(alice).put(SECRET, wish, content_type="application/json").status_code == 204
    assert (kept()["host"], kept()["value"]) == ("", value)


def test_a_key_of_a_model_loses_the_blanks_around_it(token, alice):
    wish = {"value": " sk-x\n", "host": "api.example.org"}
    assert token(alice).put(SECRET, wish, content_type="application/json").status_code == 204
    assert kept()["value"] == "sk-x"


@pytest.mark.parametrize(
    ("wish", "field"),
    [
        ({"value": "x" * (16 * 1024 + 1), "host": ""}, "value"),
        ({"value": "\u00e9" * (16 * 1024), "host": ""}, "value"),
        ({"value": "  ", "host": "api.example.org"}, "value"),
        ({"value": "x"}, "host"),
    ],
)
def test_what_the_vault_does_not_take_is_told_at_its_field(token, alice, wish, field):
    answer = token(alice).put(SECRET, wish, content_type="application/json")
    (fault,) = answer.json()["error"]["errors"]
    assert (answer.status_code, fault["path"]) == (400, field)
    assert not VaultSecret.objects.exists()
