"""The database is away: 503 and when to come back, on pages and in the API; other faults stay 500."""

import pytest
from django.db import OperationalError
from django.urls import reverse


@pytest.fixture
def broken(client, monkeypatch):
    """The client, on a site whose first page and list of runs fail with the error given."""

    def make(error: Exception):
        def fail(*_args: object, **_named: object) -> None:
            raise error

        monkeypatch.setattr("portal.pages.views.home_page", fail)
        monkeypatch.setattr("portal.api.views.runs.runs_list_for", fail)
        client.raise_request_exception = False
        return client

    return make


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["home", "api-runs"])
def test_a_page_says_that_it_works_later(broken, name):
    answer = broken(OperationalError("the server went away at 10.0.0.7")).get(reverse(name))
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert "10.0.0.7" not in answer.content.decode()


@pytest.mark.django_db
def test_the_api_keeps_its_shape(broken):
    answer = broken(OperationalError("gone")).get(reverse("api-runs"))
    assert answer.json()["error"]["code"] == "unavailable"


@pytest.mark.django_db
def test_another_fault_is_ours(broken):
    answer = broken(RuntimeError("x")).get(reverse("home"))
    assert (answer.status_code, "Retry-After" in answer.headers) == (500, False)
