"""Providers that refuse, nodes that vanish, workers that die, rows left behind: each settles, none is scored 0."""

import html
import json
import time
from typing import Any

import pytest
from django.db import IntegrityError
from django.utils import timezone

from gymnode.errors import NodeUnreachable
from gymnode.transport.base import NodeLink, Reply
from portal.nodes import links
from portal.nodes.sinks import Change
from runs.models.run import Run
from runs.presenters import reason_text
from runs.selectors import run_clock
from runs.services import troubles
from runs.services.claims import claim_take
from runs.services.controls import run_pause
from runs.services.queueing import queue_start
from runs.services.ticking import claims_free_lost, tick
from runs.services.watching import change_took
from runs.workers import LifeLock, Worker, this_worker
from tests.site.runs.driving import CONFIG, drive, file_below, kinds

FINISH = "task: example-task\nsteps:\n  - call: {finish: {}}\n"


def faulty(status: int, times: int, extra: str = "") -> str:
    fault = f"{{status: {status}, times: {times}{extra}}}"
    return f"task: example-task\nsteps:\n  - fault: {fault}\n    call: {{finish: {{}}}}\n"


def test_rate_limits_are_waited_out_and_charged_to_nobody(queue, node, playbook, scorer) -> None:
    """R10: several 429 with Retry-After; the working time does not see them."""
    playbook(faulty(429, 3, ", retry_after: 1"))
    run = queue()
    Run.objects.filter(pk=run.pk).update(limit_s=5)
    begun = time.monotonic()
    drive(run)
    assert time.monotonic() - begun >= 3
    assert (run.status, run.end_reason, run.failure_code) == ("finished", "finish", "")
    assert run.charged_s < 3
    assert run_clock(run).by_kind["infrastructure"] >= 3
    assert kinds(run).count("suspended") == kinds(run).count("resumed") == 1


def test_a_provider_that_stays_away_ends_the_run_as_infrastructure(queue, node, playbook, scorer, monkeypatch) -> None:
    """R11, R16: never a score of 0; a code and a sentence without host names."""
    monkeypatch.setattr(troubles, "OUTAGE_LIMIT_S", 0.5)
    playbook(faulty(503, 50))
    run = drive(queue())
    assert (run.status, run.end_reason, run.failure_code) == ("failed", "infrastructure", "provider_gone")
    assert (run.score, run.evaluations.count(), run.leased) == (None, 0, False)


@pytest.mark.parametrize(("status", "code"), [(401, "wrong_key"), (404, "unknown_model")])
def test_a_provider_that_says_no_at_once_fails_the_run(queue, node, playbook, scorer, status: int, code: str) -> None:
    playbook(faulty(status, 50))
    run = drive(queue())
    assert (run.status, run.failure_code, run.score) == ("failed", code, None)


def test_a_key_taken_away_later_does_not_make_the_run_uncounted(queue, node, playbook, scorer) -> None:
    text = "task: example-task\nsteps:\n  - call: {think: {thought: first}}\n"
    playbook(text + "  - fault: {status: 401, times: 50}\n    call: {finish: {}}\n")
    run = drive(queue())
    assert (run.status, run.end_reason, run.failure_code) == ("failed", "agent_error", "wrong_key")
    assert run.score is not None


def test_a_missing_secret_is_named(queue, node, scorer) -> None:
    facts = "provider: openai, name: m, base_url: 'https://api.example.org/v1', api_key: 'secret:MY_KEY'"
    model = f"{{{facts}, prices: {{input: 1, output: 1}}}}"
    run = drive(queue(CONFIG.replace("{provider: scripted, name: reference}", model)))
    assert (run.status, run.failure_code) == ("failed", "secret_missing")
    assert (run.failure_args["secret"], run.failure_args["host"]) == ("MY_KEY", "api.example.org")


def test_ten_malformed_replies_end_the_run_and_its_outputs_are_scored(queue, node, playbook, scorer) -> None:
    """R12, R13: each bad call gets a paired refusal; the streak ends the run; what it made is evaluated."""
    broken = ['{"a":', "null", "[]", "{}{}", '{"command": "x"}"']
    bad = "\n".join(f"  - call: {{run_command: '{text}'}}" for text in broken * 2)
    playbook(f"task: example-task\nsteps:\n{bad}\n")
    run = drive(queue())
    assert (run.status, run.end_reason, run.failure_code) == ("failed", "agent_error", "fault_streak")
    assert run.score is not None
    assert kinds(run).count("observed") == 10
    assert "action_sent" not in kinds(run)


class Cut:
    """A link that is cut until it is mended; `full`: what the node has no room for, by operation or path."""

    def __init__(self, inner: NodeLink) -> None:
        self.name, self.inner, self.cut, self.full = inner.name, inner, False, ""

    def request(self, method, path, body=None, *, payload=b"", timeout_s=30.0):
        if self.cut:
            raise NodeUnreachable(self.name, "cut")
        if self.full and self.full in (path.rsplit("/", 1)[-1], (body or {}).get("op")):
            return Reply(507, {"code": "storage_full", "message": "no space left on device"})
        return self.inner.request(method, path, body, payload=payload, timeout_s=timeout_s)

    def close(self) -> None:
        """The inner link is somebody else's."""


@pytest.fixture
def cut(node, gymd: NodeLink, monkeypatch) -> Cut:
    link = Cut(gymd)
    monkeypatch.setattr(links, "_cache", links.LinkCache(lambda _node: link))
    return link


SLEEPER = "task: example-task\nsteps:\n  - call: {sleep: {seconds: 600}}\n  - call: {finish: {}}\n"


def test_a_lost_node_is_said_and_the_run_goes_on_when_it_is_back(queue, cut, playbook, scorer) -> None:
    """N6: node unreachable, not failed; later re-attached."""
    playbook(FINISH)
    run = queue()
    queue_start()
    cut.cut = True
    drive(run, until=lambda each: each.waiting_reason == "node_lost")
    assert (run.status, run.clock_kind, run.failure_code) == ("waiting", "infrastructure", "node_unreachable")
    cut.cut = False
    assert drive(run).status == "finished"


@pytest.mark.parametrize("where", ["open", "tree", "session.list"])
def test_a_node_whose_disk_is_full_is_waited_for(queue, cut, playbook, scorer, where: str) -> None:
    """N7, R11: neither the task's fault nor ours; it goes on when there is room."""
    playbook(FINISH)
    run = queue()
    queue_start()
    cut.full = where
    drive(run, until=lambda each: each.waiting_reason == "node_lost")
    assert (run.status, run.clock_kind, run.failure_code) == ("waiting", "infrastructure", "node_full")
    cut.full = ""
    assert drive(run).status == "finished"


def test_a_node_that_dies_while_a_run_is_paused_shows_as_lost(queue, cut, node, playbook, scorer, alice) -> None:
    """N9"""
    playbook(SLEEPER)
    run = queue()
    drive(run, until=lambda each: each.waiting_reason == "sleep")
    run_pause(run=run, by=alice)
    drive(run, until=lambda each: each.waiting_reason == "paused" and each.wake_at is None)
    cut.cut = True
    change_took(Change(kind="node_lost", node=node.pk, run="", session="", at=timezone.now()))
    run.refresh_from_db()
    assert run.waiting_reason == "node_lost"
    cut.cut = False
    change_took(Change(kind="node_back", node=node.pk, run="", session="", at=timezone.now()))
    drive(run, until=lambda each: each.waiting_reason == "paused" and each.wake_at is None)


def test_a_node_that_never_comes_back_is_infrastructure(queue, cut, playbook, scorer, monkeypatch) -> None:
    """R11"""
    monkeypatch.setattr(troubles, "OUTAGE_LIMIT_S", 0.5)
    playbook(FINISH)
    run = queue()
    queue_start()
    cut.cut = True
    drive(run, until=lambda each: each.status == "failed", seconds=120)
    assert (run.end_reason, run.failure_code, run.score) == ("infrastructure", "node_lost", None)
    assert run.failure_args["node"] == "box"


def ended_on(gymd: NodeLink, run: Run) -> None:
    """Wait until the node has seen the end of a job of `run`."""
    ends = time.monotonic() + 60
    while True:
        changes: Any = gymd.request("GET", "/v1/watch?after=0&wait_s=0").body["changes"]
        if any((one["kind"], one["run"]) == ("job_ended", run.key) for one in changes):
            return
        assert time.monotonic() < ends
        time.sleep(0.05)


def test_a_job_that_ends_wakes_the_sleeper(queue, node, gymd_home, gymd: NodeLink, playbook, scorer) -> None:
    held = "echo x > asleep; until [ -e go ]; do sleep 0.1; done"
    text = f"{{run_command: {{command: '{held}', session_id: train, wait_for_completion: false}}}}"
    wait = "{sleep: {seconds: 600, until_session_idle: train}}"
    made = "{create_session: {session_id: train}}"
    calls = "\n".join(f"  - call: {call}" for call in (made, text, wait, "{finish: {}}"))
    playbook(f"task: example-task\nsteps:\n{calls}\n")
    run = queue()
    drive(run, until=lambda each: each.waiting_reason == "sleep")
    file_below(gymd_home, "asleep").with_name("go").touch()
    ended_on(gymd, run)
    change_took(Change(kind="job_ended", node=node.pk, run=run.key, session="train", at=timezone.now()))
    drive(run)
    woke = [event.body["observation"]["woke"] for event in run.events.filter(kind="observed", body__name="sleep")]
    assert woke == ["session finished"]


def test_a_dead_workers_claim_is_free_at_once(queue, node) -> None:
    """R1: the advisory lock goes with the process; nobody waits for the claim to run out."""
    run = queue()
    queue_start()
    other = Worker("other:1:aa", 4242424242)
    life = LifeLock(other)
    life.ensure()
    assert claim_take(run.pk, other) is not None
    assert claims_free_lost() == []
    life.drop()
    ends = time.monotonic() + 60
    while not claims_free_lost():
        assert time.monotonic() < ends
        time.sleep(0.02)
    assert claim_take(run.pk, this_worker()) is not None


def test_a_bug_of_ours_is_tried_again_and_then_final(queue, node, playbook, scorer, monkeypatch) -> None:
    """R16: a reference instead of a traceback."""
    playbook(FINISH)
    monkeypatch.setattr("runs.services.stepping.ReActAgent.step", lambda *_: 1 / 0)
    monkeypatch.setattr(troubles, "_later", lambda tries: timezone.now())
    run = drive(queue())
    assert (run.status, run.failure_code, run.engine_faults) == ("failed", "engine_error", 3)
    assert "ZeroDivision" not in json.dumps(run.failure_args)
    tick()


def test_a_job_that_runs_while_the_provider_is_away_is_charged(queue, node, playbook, scorer) -> None:
    """Nobody trains for free: the wait is ours, the job's time is theirs."""
    calls = ["{create_session: {session_id: train}}"]
    calls += ["{run_command: {command: 'sleep 30', session_id: train, wait_for_completion: false}}"]
    lines = "\n".join(f"  - call: {call}" for call in calls)
    fault = "  - fault: {status: 429, retry_after: 2}\n    call: {finish: {}}\n"
    playbook(f"task: example-task\nsteps:\n{lines}\n{fault}")
    run = drive(queue())
    sums = run_clock(run)
    assert sums.by_kind["infrastructure"] >= 2
    assert sums.by_kind["action"] >= 2
    assert abs(sums.charged_s - run.charged_s) < 0.01


def test_a_failed_run_has_a_code_and_leads_to_its_log(
    queue, node, playbook, scorer, monkeypatch, client, alice
) -> None:
    """R16: no failure without a code; its sentence names no host and no stack; the page links its log."""
    monkeypatch.setattr(troubles, "OUTAGE_LIMIT_S", 0.5)
    playbook(faulty(503, 50))
    run = drive(queue())
    with pytest.raises(IntegrityError, match="run_failure_has_a_code"):
        Run.objects.filter(pk=run.pk).update(failure_code="")
    sentence = reason_text(run)
    assert sentence
    for word in ("127.0.0.1", "localhost", node.host, "Traceback", "http"):
        assert word not in sentence
    client.force_login(alice)
    page = client.get(run.get_absolute_url()).content.decode()
    assert html.unescape(page).count(sentence) == 1
    assert '<a href="#events">Its log</a>' in page
    assert 'id="events"' in page
