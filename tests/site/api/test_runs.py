"""Runs over the API: pages, the trace, what of it is hidden from whom, cancelling."""

import json

import pytest

from runs.eventlog import event_append
from runs.models.run import Run
from runs.wire import HIDDEN
from tests.site.leaderboard.world import ended, evaluation_made, run_made

HINT = "Look at the shortest answers first."


@pytest.fixture
def run(team, alice, version) -> Run:
    return run_made(team, alice, version)


def hinted(run: Run) -> None:
    """Every event in which the engine may store a hint."""
    task = f"Task: x\n\n## Limits\n- 1\n\n## Hint\n1.\n\n## More\n{HINT}"
    event_append(run.pk, "task_given", {"task": task, "system": "s"}, epoch=None)
    event_append(run.pk, "hint_revealed", {"text": HINT, "penalty": 10}, epoch=None)
    seen = {"name": "view_hint", "outcome": "ok", "text": HINT, "message": HINT, "observation": {"hint": HINT}}
    event_append(run.pk, "observed", seen, epoch=None)
    long = "padding " * 10_000
    event_append(run.pk, "task_given", {"task": f"{long}\n\n## Hint\n{HINT}"}, epoch=None)


def test_the_trace_comes_in_order_and_in_pages(client, run):
    for number in range(1, 6):
        event_append(run.pk, "noted", {"n": number}, epoch=None)
    address = f"/api/v1/runs/{run.pk}/events/"
    first = client.get(f"{address}?limit=2").json()
    assert ([event["body"]["n"] for event in first["events"]], first["last"]) == ([1, 2], 2)
    rest = client.get(f"{address}?after=2").json()
    assert [event["seq"] for event in rest["events"]] == [3, 4, 5]
    assert client.get(f"{address}?after=5").json() == {"events": [], "last": None}


def test_no_page_of_a_trace_is_endless(client, run):
    """V1: no response above a megabyte or so, and nothing is left out."""
    for number in range(40):
        event_append(run.pk, "noted", {"n": number, "text": "x" * 60_000}, epoch=None)
    after, seen = 0, []
    while True:
        answer = client.get(f"/api/v1/runs/{run.pk}/events/?after={after}")
        assert len(answer.content) < 1_300_000
        page = answer.json()
        if page["last"] is None:
            break
        seen += [event["body"]["n"] for event in page["events"]]
        after = page["last"]
    assert seen == list(range(40))


def test_hints_are_told_to_nobody(client, token, run, bob, charlie, dora):
    """A1"""
    hinted(run)
    for reader in (client, token(charlie), token(bob), token(dora)):
        text = reader.get(f"/api/v1/runs/{run.pk}/events/").content.decode()
        assert HINT not in text
        assert text.count(HIDDEN) >= 3


def test_hostile_texts_of_a_trace_are_plain_json(client, run):
    """T7 and T1"""
    event_append(run.pk, "replied", {"text": "<img onerror=1></script>\0\ud800", "usd": float("nan")}, epoch=None)
    answer = client.get(f"/api/v1/runs/{run.pk}/events/")
    assert answer["Content-Type"] == "application/json"
    json.loads(answer.content, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))


def test_a_run_tells_its_state_budgets_and_score(client, run):
    found = client.get(f"/api/v1/runs/{run.pk}/").json()
    assert (found["status"], found["score"], found["evaluations_used"], found["evaluations_total"]) == (
        "queued",
        None,
        0,
        3,
    )
    ended(run, "79.996")
    found = client.get(f"/api/v1/runs/{run.pk}/").json()
    assert (found["status"], found["score"], found["score_exact"]) == ("finished", "80.00", "79.996")
    assert found["end_reason"] == "finish"


def test_a_failed_run_says_why_in_code_and_sentence(client, run):
    """R16"""
    ended(
        run,
        None,
        end="infrastructure",
        status="failed",
        failure_code="node_lost",
        failure_args={"node": "a", "hours": "6"},
    )
    found = client.get(f"/api/v1/runs/{run.pk}/").json()
    assert (found["failure"], found["score"]) == ("node_lost", None)
    assert found["reason"]


def test_evaluations_tell_metrics_and_never_the_log(client, run):
    made = evaluation_made(run, 50, by="agent")
    type(made).objects.filter(pk=made.pk).update(log_tail="secret log", metrics={"accuracy": 0.6}, envelope="signed")
    answer = client.get(f"/api/v1/runs/{run.pk}/evaluations/")
    (row,) = answer.json()["evaluations"]
    assert (row["score"], row["metrics"], row["sandbox_level"]) == ("50.00", {"accuracy": 0.6}, 1)
    assert "secret log" not in answer.content.decode()


def test_runs_come_newest_first_in_pages(client, team, alice, version):
    made = [run_made(team, alice, version).pk for _ in range(53)]
    first = client.get("/api/v1/runs/").json()
    second = client.get(f"/api/v1/runs/?before={first['next']}").json()
    assert [row["id"] for row in (*first["runs"], *second["runs"])] == made[::-1]
    assert second["next"] is None


def test_lists_of_runs_take_the_same_queries_for_few_and_many(client, team, alice, version, django_assert_num_queries):
    """S10"""
    run_made(team, alice, version)
    with django_assert_num_queries(1):
        client.get("/api/v1/runs/")
    for _ in range(20):
        run_made(team, alice, version)
    with django_assert_num_queries(1):
        client.get("/api/v1/runs/")


@pytest.mark.parametrize(
    "query", ["?status=%00", "?task=%00x", "?before=-1", "?before=99999999999999999999", "?status=none"]
)
def test_a_nonsensical_filter_is_no_500(client, db, query):
    assert client.get(f"/api/v1/runs/{query}").status_code == 200


def test_a_member_cancels_and_an_ended_run_stays_as_it_is(token, bob, run):
    """R6"""
    mine = token(bob)
    assert mine.post(f"/api/v1/runs/{run.pk}/cancel/").json()["status"] == "cancelled"
    again = mine.post(f"/api/v1/runs/{run.pk}/cancel/")
    assert (again.status_code, again.json()["error"]["code"]) == (409, "move_refused")


def test_strangers_can_t_cancel_a_public_run(token, charlie, client, run):
    assert token(charlie).post(f"/api/v1/runs/{run.pk}/cancel/").status_code == 403
    assert client.post(f"/api/v1/runs/{run.pk}/cancel/").status_code == 401
    run.refresh_from_db()
    assert run.status == "queued"
