"""Each process of the site killed once in mid-run: the trace is the one of an undisturbed run (R1, R2, R4, V3, N9)."""

import json
import os
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from portal.client.client import Client
from tests.e2e.stack import Stack, stack_up, wait_for
from tests.e2e.test_journey import steps_of

TASK = "worked-example-filtering-nano"
CONFIG = """\
name: scripted-reference
agent: react
model: {provider: scripted, name: reference}
tools: innovatorbench
hint: none
"""
VISIBLE = ("task_given", "replied", "action_sent", "observed", "evaluation_scored", "compacted", "message_sent")
VOLATILE = {"at", "started_at", "finished_at", "ended_at", "duration_s", "seconds", "pid", "pids", "port", "mtime"}
VOLATILE |= {"last_output_at", "background_pids", "evaluation", "usage", "tokens_before", "tokens_after"}
STORED = " These very outputs were scored before; the stored result is given."
ENDS_WITHIN_S = 240.0


# Fixtures of the session: a test with a page makes pytest leave the module and come back.
@pytest.fixture(scope="session")
def small_stack() -> Iterator[Stack]:
    """A site of its own: its processes get killed."""
    with stack_up(8600, f"{TASK}=small,grpo-entropy-nano=small") as running:
        yield running


@pytest.fixture(scope="session")
def person(small_stack: Stack) -> Iterator[Client]:
    with small_stack.person() as client:
        yield client


@pytest.fixture(scope="session")
def scored_anew(small_stack: Stack, person: Client) -> list[Any]:
    """The trace of this site's very first run, whose evaluator is killed while it scores (later ones use the store)."""
    (run,) = person.submit(CONFIG, [TASK])
    wait_for(lambda: person.run(run.id)["waiting_reason"] == "evaluation", ENDS_WITHIN_S, "an evaluation begins")
    wait_for(lambda: hidden_part_opened(small_stack), ENDS_WITHIN_S, "the evaluator opens the hidden part")
    small_stack.kill("evaluator")
    assert person.run(run.id)["waiting_reason"] == "evaluation", "scored before the kill"
    wait_for(lambda: state(person, run.id) == "finished", ENDS_WITHIN_S, f"the run ends\n{small_stack.log_tails()}")
    return visible(person, run.id)


def hidden_part_opened(site: Stack) -> bool:
    """Whether its evaluator has a hidden part before it; its folders come and go."""
    walk = os.walk(site.home / "sandboxes")
    return any("evaluation" in folders and "hidden-" in top for top, folders, _names in walk)


@pytest.fixture(scope="session")
def undisturbed(person: Client, scored_anew: list[Any]) -> list[Any]:
    """The agent-visible events of a run that nobody disturbs."""
    (run,) = person.submit(CONFIG, [TASK])
    wait_for(lambda: state(person, run.id) == "finished", ENDS_WITHIN_S, "the undisturbed run ends")
    return visible(person, run.id)


def state(client: Client, run_id: int) -> str:
    """Status of a run; empty while the site doesn't answer."""
    try:
        return str(client.run(run_id)["status"])
    except Exception:  # noqa: BLE001  any way of not answering counts as not answering
        return ""


def visible(client: Client, run_id: int) -> list[Any]:
    """Agent-visible events without what may differ between two runs: times, durations, process ids, run numbers."""
    events = [event for event in client.follow(run_id) if event.kind in VISIBLE]
    return [(event.kind, plain(event.body, run_id)) for event in events]


def plain(value: Any, run_id: int) -> Any:
    if isinstance(value, dict):
        return {key: plain(each, run_id) for key, each in value.items() if key not in VOLATILE}
    if isinstance(value, list):
        return [plain(each, run_id) for each in value]
    if isinstance(value, str):
        without_run = re.sub(rf"\brun-{run_id}\b", "RUN", value)
        return re.sub(r"\b\d+(\.\d+)? ?(s|ms|seconds)\b", "TIME", without_run).replace(STORED, "")
    return value


def half_done(person: Client, half: int) -> int:
    """A run that has done `half` steps and isn't over: the whole takes seconds, so one may be looked at too late."""
    for _try in range(5):
        (run,) = person.submit(CONFIG, [TASK])
        wait_for(lambda run=run: int(person.run(run.id)["steps"]) >= half, ENDS_WITHIN_S, f"step {half}")
        if state(person, run.id) in {"running", "waiting"}:
            return int(run.id)
    raise AssertionError("over too soon, five times")


@pytest.mark.parametrize("victim", ["worker", "collector", "web", "valkey", "node"])
def test_a_run_survives_the_death_of(victim: str, small_stack: Stack, person: Client, undisturbed: list[Any]) -> None:
    """`node` is the SSH server of the node: its death cuts every connection while gymd and its jobs live on."""
    steps = len([kind for kind, _body in undisturbed if kind == "replied"])
    run_id = half_done(person, max(2, steps // 2))
    old = small_stack.kill(victim)
    wait_for(lambda: small_stack.pids()[victim] != old, 60, f"{victim} is started again")
    wait_for(lambda: state(person, run_id) == "finished", ENDS_WITHIN_S, f"the run ends\n{small_stack.log_tails()}")
    seen = visible(person, run_id)
    assert json.dumps(seen, indent=1) == json.dumps(undisturbed, indent=1)
    time.sleep(0.5)


def test_a_page_that_watches_misses_nothing_when_web_and_broker_die(
    page: Page, small_stack: Stack, person: Client, undisturbed: list[Any]
) -> None:
    """V2, V3: the page comes back by itself with the last seq it saw; every step once, in order."""
    (run,) = person.submit(CONFIG, [TASK], visibility="public")
    page.goto(f"{small_stack.url}/runs/{run.id}/")
    page.evaluate("window.untouched = true")
    for victim in ("web", "valkey"):
        before = len(steps_of(page))
        wait_for(lambda before=before: len(steps_of(page)) > before, ENDS_WITHIN_S, "a further step")
        old = small_stack.kill(victim)
        wait_for(lambda victim=victim, old=old: small_stack.pids()[victim] != old, 60, f"{victim} is started again")
    expect(page.locator("#run-state")).to_contain_text("finished", timeout=ENDS_WITHIN_S * 1000)
    steps = len([kind for kind, _body in undisturbed if kind == "replied"])
    wait_for(lambda: steps_of(page)[-1] == steps, 60, "the last step is shown")
    assert [number for number in steps_of(page) if number] == list(range(1, steps + 1))
    assert page.evaluate("window.untouched")


def test_a_run_survives_the_death_of_the_evaluator(scored_anew: list[Any], undisturbed: list[Any]) -> None:
    """An evaluator killed while it scores: the request is scored by the next one, never a 0."""
    assert json.dumps(scored_anew, indent=1) == json.dumps(undisturbed, indent=1)
