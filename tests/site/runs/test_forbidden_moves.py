"""Every move that the state machine doesn't hold, by service, pages and API: refused, unchanged."""

from itertools import product
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone

from runs.ledger import Clock
from runs.models.run import Run
from runs.services.moves import Fact, run_locked, run_move
from runs.states import MOVES, TERMINAL, End, MoveRefused, Status, Waiting, move_check
from tests.site.runs.driving import kinds

FORBIDDEN = [(old, new) for old, new in product(Status, Status) if new not in MOVES[old]]
# What a door of the site makes of a run.
DOORS = {"run_cancel": Status.CANCELLED, "run_pause": Status.WAITING, "run_resume": Status.RUNNING}


def put(run: Run, status: Status) -> dict[str, Any]:
    """The run in `status`, as the database takes it; returns its row."""
    facts: dict[str, Any] = {"status": status, "waiting_reason": "", "end_reason": "", "failure_code": ""}
    facts |= {"waiting_reason": Waiting.SLEEP} if status == Status.WAITING else {}
    facts |= {"end_reason": End.FINISH, "ended_at": timezone.now()} if status in TERMINAL else {"ended_at": None}
    facts |= {"failure_code": "node_lost"} if status == Status.FAILED else {}
    Run.objects.filter(pk=run.pk).update(**facts)
    return row(run)


def row(run: Run) -> dict[str, Any]:
    return Run.objects.filter(pk=run.pk).values().get()


def test_the_service_refuses_every_forbidden_move(queue) -> None:
    """R6"""
    run = queue()
    assert len(FORBIDDEN) > len(Status) * 3
    for old, new in FORBIDDEN:
        before, events = put(run, old), len(kinds(run))
        with pytest.raises(MoveRefused), run_locked(run.pk) as locked:
            run_move(locked, new, Fact("noted"), clock=Clock.ENGINE)
        assert (row(run), len(kinds(run))) == (before, events), (old, new)


def test_the_doors_refuse_every_forbidden_move(queue, alice, client) -> None:
    """R6: a page says so and shows the run; neither row nor trace has changed."""
    run = queue()
    client.force_login(alice)
    for (door, to), old in product(DOORS.items(), Status):
        if to in MOVES[old] and door != "run_resume":
            continue
        before, events = put(run, old), len(kinds(run))
        answer = client.post(reverse(door, args=[run.pk]))
        assert answer.status_code in (302, 409), (door, old)
        assert (row(run), len(kinds(run))) == (before, events), (door, old)


def test_the_api_refuses_to_cancel_what_is_over(queue, alice, client) -> None:
    """R6"""
    run = queue()
    client.force_login(alice)
    for old in sorted(TERMINAL):
        before = put(run, old)
        answer = client.post(reverse("api-run-cancel", args=[run.pk]))
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "move_refused")
        assert row(run) == before


@pytest.mark.parametrize("bad", ["", "running ", "RUNNING", "gone", "\0"])
def test_a_state_of_no_table_is_refused(bad: str) -> None:
    """R6"""
    with pytest.raises(ValueError, match="is not a valid Status"):
        move_check(1, Status.RUNNING, bad)
