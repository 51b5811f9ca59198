"""The OpenAPI description says what is really sent; tokens do what their scopes say; nobody asks without end."""

from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.validation import validate_schema
from rest_framework.settings import api_settings
from rest_framework.throttling import AnonRateThrottle
from rest_framework.views import APIView

from portal.leaderboard.entries import on_run_changed
from portal.leaderboard.models import LeaderboardEntry
from tests.site.leaderboard.world import CONFIG, ended, run_made


@pytest.fixture(scope="module")
def description() -> dict[str, Any]:
    found: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    return found


def holds(value: Any, shape: dict[str, Any], whole: dict[str, Any], where: str = "") -> list[str]:
    """Where `value` differs from its schema: keys that are missing or more than said."""
    if "$ref" in shape:
        shape = whole["components"]["schemas"][shape["$ref"].rsplit("/", 1)[1]]
    if shape.get("allOf") or shape.get("oneOf"):
        options = shape.get("allOf") or shape["oneOf"]
        return [] if value is None else holds(value, options[0], whole, where)
    if isinstance(value, list):
        return [fault for each in value for fault in holds(each, shape.get("items", {}), whole, f"{where}[]")]
    if not isinstance(value, dict) or "properties" not in shape:
        return []
    said = shape["properties"]
    faults = [f"{where}.{name}" for name in set(said) ^ set(value) if name in value or name in shape["required"]]
    return faults + [
        fault for name in set(said) & set(value) for fault in holds(value[name], said[name], whole, f"{where}.{name}")
    ]


def test_the_description_is_sound(description):
    validate_schema(description)
    assert not [
        path for path, verbs in description["paths"].items() for verb in verbs.values() if not verb["operationId"]
    ]


@pytest.fixture
def places(team, alice, version, board) -> dict[str, Any]:
    run = ended(run_made(team, alice, version), "50")
    on_run_changed({"run": run.pk})
    return {"slug": "nano-public", "run_id": run.pk, "entry_id": LeaderboardEntry.objects.get().pk}


READ = (
    *(
        "leaderboards/",
        "leaderboards/{slug}/",
        "leaderboards/{slug}/entries/{entry_id}/",
        "tasks/",
        "configs/",
        "runs/",
    ),
    *("runs/{run_id}/", "runs/{run_id}/events/", "runs/{run_id}/evaluations/", "submissions/", "nodes/"),
    *("account/", "account/tokens/", "account/secrets/"),
)


@pytest.mark.parametrize("path", READ)
def test_answers_have_the_shape_that_the_description_says(description, token, alice, places, path):
    answer = token(alice).get("/api/v1/" + path.format(**places))
    assert answer.status_code == 200
    said = description["paths"][f"/api/v1/{path}"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    assert not holds(answer.json(), said, description)


def test_a_task_has_the_shape_that_the_description_says(description, client, version):
    said = description["paths"]["/api/v1/tasks/{slug}/"]["get"]["responses"]["200"]["content"]["application/json"]
    answer = client.get("/api/v1/tasks/example-task/").json()
    assert not holds(answer, said["schema"], description)
    assert "shortest answers" not in str(answer)


@pytest.mark.parametrize(
    ("scopes", "verb", "path", "status"),
    [
        (("read",), "get", "runs/", 200),
        (("read",), "post", "configs/check/", 403),
        (("run",), "post", "configs/check/", 200),
        (("run",), "get", "runs/", 403),
        (("read", "run"), "get", "account/tokens/", 403),
        (("read", "run"), "get", "account/secrets/", 403),
        (("admin",), "get", "account/secrets/", 200),
    ],
)
def test_a_token_does_what_its_scopes_say_and_no_more(token, alice, scopes, verb, path, status):
    client = token(alice, *scopes)
    answer = getattr(client, verb)(
        f"/api/v1/{path}", {"config": CONFIG} if verb == "post" else {}, content_type="application/json"
    )
    assert answer.status_code == status


@pytest.mark.parametrize("header", ["Bearer", "Bearer ib_nonsense", "Bearer a b", "Bearer \xff"])
def test_a_dead_token_is_an_error_and_never_a_visitor(client, db, header):
    answer = client.get("/api/v1/runs/", headers={"Authorization": header})
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "bad_token")


def test_a_session_without_its_csrf_value_may_not_act(alice):
    """T8"""
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(alice)
    assert strict.post("/api/v1/configs/check/", {"config": CONFIG}, content_type="application/json").status_code == 403


def test_too_many_questions_are_429_and_say_how_long_to_wait(client, db, monkeypatch):
    cache.clear()
    monkeypatch.setattr(APIView, "throttle_classes", [AnonRateThrottle])
    monkeypatch.setattr(AnonRateThrottle, "THROTTLE_RATES", {"anon": "2/min"})
    answers = [client.get("/api/v1/leaderboards/") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert answers[-1].json()["error"]["code"] == "throttled"
    assert 0 < int(answers[-1].headers["Retry-After"]) <= 60
    assert api_settings.DEFAULT_THROTTLE_RATES["anon"]


@pytest.mark.parametrize("path", ["none/", "runs/999999999999999999999/", "leaderboards/none/", "tasks/none/"])
def test_what_is_not_there_is_404(client, db, path):
    assert client.get(f"/api/v1/{path}").status_code == 404


@pytest.mark.parametrize("path", ["runs/1/", "leaderboards/none/", "tasks/none/"])
def test_a_404_of_the_api_has_the_shape_of_every_refusal(client, db, path):
    assert client.get(f"/api/v1/{path}").json()["error"]["code"] == "not_found"
