"""POST /api/v1/submissions/: once per key, all or none, every refusal in one shape."""

import pytest

from portal.accounts.services import member_remove
from portal.submissions.models import Submission
from runs.models.run import Run
from tests.site.leaderboard.world import CONFIG

ADDRESS = "/api/v1/submissions/"


def body(**facts) -> dict:
    return {"config": CONFIG, "tasks": ["example-task"], "repeats": 1, "visibility": "private", "board": None, **facts}


def post(client, data, key: str = ""):
    headers = {"Idempotency-Key": key} if key else {}
    return client.post(ADDRESS, data, content_type="application/json", headers=headers)


@pytest.fixture
def mine(token, bob):
    return token(bob)


def refusal(answer, status: int, code: str) -> dict:
    assert answer.status_code == status, answer.content
    error = answer.json()["error"]
    assert error["code"] == code
    assert error["message"]
    return error


def test_a_submission_answers_with_its_runs(mine, version, team):
    answer = post(mine, body(team=team.slug, repeats=2))
    assert answer.status_code == 201
    made = answer.json()
    assert [(run["task"], run["repeat"], run["attempt"]) for run in made["runs"]] == [
        ("example-task", 1, 1),
        ("example-task", 2, 1),
    ]
    assert mine.get(f"{ADDRESS}{made['id']}/").json() == made
    assert mine.get(ADDRESS).json()["submissions"] == [made]
    assert {run["url"] for run in made["runs"]} == {run.get_absolute_url() for run in Run.objects.all()}


def test_the_same_key_and_body_act_once_and_get_the_same_answer(mine, version):
    """S12"""
    first, second = post(mine, body(), "k1"), post(mine, body(), "k1")
    assert first.status_code == second.status_code == 201
    assert first.json() == second.json()
    assert Run.objects.count() == 1


def test_who_left_the_team_is_not_told_its_answer_again(mine, version, team, alice, bob):
    """A1, S12: with the key as without it there is no such team."""
    wanted = body(team=team.slug)
    assert post(mine, wanted, "k1").status_code == 201
    member_remove(team=team, user_id=bob.pk, by=alice)
    for key in ("k1", "k2", ""):
        answer = post(mine, wanted, key)
        assert "runs" not in answer.json()
        refusal(answer, 404, "not_found")
    assert Run.objects.count() == 1


def test_the_same_key_with_another_body_is_a_conflict(mine, version):
    """S12"""
    post(mine, body(), "k1")
    refusal(post(mine, body(repeats=2), "k1"), 409, "idempotency_key_reused")
    assert Run.objects.count() == 1


def test_a_key_belongs_to_its_user(mine, token, alice, version):
    """S12"""
    post(mine, body(), "k1")
    assert post(token(alice), body(), "k1").status_code == 201
    assert Submission.objects.count() == 2


def test_a_refused_request_leaves_its_key_free(mine, version):
    """S12"""
    refusal(post(mine, body(tasks=["none"]), "k1"), 400, "field_fault")
    assert post(mine, body(), "k1").status_code == 201


def test_an_endless_key_is_refused(mine, version):
    refusal(post(mine, body(), "k" * 201), 400, "field_fault")


def test_every_fault_of_a_config_comes_with_its_line(mine, version):
    error = refusal(post(mine, body(config=CONFIG + "nonsense: 1\nlimits: {steps: -1}\n")), 400, "config_invalid")
    assert {fault["line"] for fault in error["errors"]} == {5, 6}
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("facts", "path"),
    [
        ({"tasks": []}, "tasks"),
        ({"tasks": ["example-task", "example-task"]}, "tasks"),
        ({"tasks": ["none-such"]}, "tasks"),
        ({"repeats": 11}, "repeats"),
        ({"repeats": "x"}, "repeats"),
        ({"visibility": "secret"}, "visibility"),
        ({"board": "none-such"}, "board"),
        ({"config": "a\u0000b"}, "config"),
        ({"config": None}, "config"),
    ],
)
def test_a_refusal_names_its_field(mine, version, facts, path):
    answer = post(mine, body(**facts))
    assert answer.status_code == 400
    assert path in {fault["path"] for fault in answer.json()["error"]["errors"]}


@pytest.mark.parametrize(
    "raw", [b"{", b"[]", b"null", b"\xff", b'"text"', b'{"config": "\\ud800", "tasks": ["a"]}', b"NaN"]
)
def test_a_body_that_is_no_request_is_refused_and_never_a_500(mine, version, raw):
    answer = mine.post(ADDRESS, raw, content_type="application/json")
    assert answer.status_code == 400
    assert answer.json()["error"]["code"]


def test_a_used_up_quota_is_429_and_says_when(mine, version, settings):
    """S11"""
    settings.TEAM_RUNS_PER_DAY = 1
    post(mine, body())
    answer = post(mine, body())
    refusal(answer, 429, "quota_used_up")
    assert 86_000 < int(answer.headers["Retry-After"]) <= 86_400


def test_runs_for_a_board_are_public(mine, board):
    answer = post(mine, body(board="nano-public"))
    assert (answer.json()["board"], answer.json()["visibility"]) == ("nano-public", "public")
    assert mine.get("/api/v1/runs/?status=queued").json()["runs"][0]["visibility"] == "public"


def test_a_team_one_is_not_in_is_not_found(token, charlie, version, team):
    refusal(post(token(charlie), body(team=team.slug)), 404, "not_found")


def test_a_config_is_checked_without_being_stored(mine):
    address = "/api/v1/configs/check/"
    good = mine.post(address, {"config": CONFIG}, content_type="application/json").json()
    assert (good["valid"], good["summary"]["name"], good["summary"]["provider"]) == (True, "reasoner", "scripted")
    bad = mine.post(address, {"config": "name: x\nmodel: 1\n"}, content_type="application/json").json()
    assert (bad["valid"], bad["summary"]) == (False, None)
    assert all(fault["line"] and fault["message"] for fault in bad["errors"])
    assert mine.get("/api/v1/configs/").json()["configs"] == []


def test_a_stored_config_is_a_version_of_its_name(mine):
    made = [
        mine.post("/api/v1/configs/", {"config": text}, content_type="application/json").json()["version"]
        for text in (CONFIG, CONFIG, CONFIG + "hint: upfront\n")
    ]
    assert made == [1, 1, 2]
