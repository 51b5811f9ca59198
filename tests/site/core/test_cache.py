"""The cache's server is away: pages, the API and signing in go on without counting (R3)."""

import pytest
from django.core.cache import cache
from django.urls import reverse

from portal.core.cache import OutlivingCache


@pytest.fixture(params=["redis://127.0.0.1:1/0", "unix:///nowhere/valkey.sock"])
def away(request, settings) -> None:
    settings.CACHES = {"default": {"BACKEND": "portal.core.cache.OutlivingCache", "LOCATION": request.param}}


def test_what_is_asked_of_it_looks_empty(away):
    cache.set("a", 1)
    assert (cache.get("a"), cache.get("a", [])) == (None, [])
    assert (cache.add("a", 1), cache.incr("a"), cache.delete("a"), cache.has_key("a")) == (True, 1, False, False)
    assert (cache.get_many(["a"]), cache.set_many({"a": 1}), cache.get_or_set("b", 2)) == ({}, [], 2)
    assert isinstance(cache._connections["default"], OutlivingCache)


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["home", "api-runs", "api-boards", "account_login", "account_signup"])
def test_pages_and_api_answer(away, client, name):
    assert client.get(reverse(name)).status_code == 200


def test_somebody_signs_in(away, client, alice):
    answer = client.post(reverse("account_login"), {"login": "alice", "password": "correct horse"})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/")
