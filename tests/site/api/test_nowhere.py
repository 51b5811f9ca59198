"""An address below /api/ that leads nowhere is refused in the API's own shape; elsewhere a page says so."""

import pytest

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("method", ["get", "post"])
def test_a_program_is_told_in_json_that_there_is_nothing(client, method):
    answer = getattr(client, method)("/api/v1/nothing/")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "not_found"


def test_a_missing_slash_is_still_mended(client):
    assert client.get("/api/v1/runs").headers["Location"] == "/api/v1/runs/"


def test_a_person_gets_a_page(client):
    answer = client.get("/nothing/")
    assert answer.status_code == 404
    assert "<h1" in answer.content.decode()
