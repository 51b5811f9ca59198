"""Room: runs. What people do to a run: pause, resume, cancel, share. Each is an event with who did it.

None of them waits for the worker that holds the run: raising the epoch fences it out, on the nodes too, and the next
slice (or nobody) goes on. Permission is the caller's business (`run_get_for(..., need="write")`).
"""

from django.utils import timezone

from portal.accounts.models import User
from runs.agent.events import Kind, MessageSent
from runs.enqueue import advance_enqueue
from runs.eventlog import event_append
from runs.ledger import Clock
from runs.models.run import Run
from runs.services.moves import (
    WANTS_PAUSE,
    Fact,
    run_end,
    run_locked,
    run_move,
    run_pause_now,
    run_take_over,
)
from runs.services.people import said_by
from runs.states import TERMINAL, End, MoveRefused, Status, Visibility, Waiting, move_check


def run_cancel(*, run: Run, by: User | None, why: str = "") -> Run:
    """End the run now: no evaluation follows, its processes die within seconds, its nodes are free. Raises MoveRefused
    for a run that is over.
    """
    with run_locked(run.pk) as locked:
        move_check(locked.pk, locked.status, Status.CANCELLED)
        run_take_over(locked)
        fact = Fact("cancelled", {**said_by(by), "why": why})
        run_end(locked, Status.CANCELLED, fact, end_reason=End.CANCELLED)
    return locked


def run_pause(*, run: Run, by: User | None) -> Run:
    """Pause: nothing of the run works or is charged until it is resumed. A reply that the model is writing is waited
    for, because it is paid; anything else stops at once. Raises MoveRefused for a run that isn't under way.
    """
    with run_locked(run.pk) as locked:
        move_check(locked.pk, locked.status, Status.WAITING)
        if locked.conditions.get("paused"):
            return locked
        held = locked.claim_expires_at is not None and locked.claim_expires_at > timezone.now()
        if held and locked.clock_kind == Clock.MODEL:
            locked.wanted = WANTS_PAUSE
            locked.conditions = {**locked.conditions, **said_by(by)}
            locked.save(update_fields=["wanted", "conditions"])
        else:
            run_take_over(locked)
            run_pause_now(locked, by=said_by(by))
    return locked


def run_resume(*, run: Run, by: User | None) -> Run:
    """Let a paused run go on where it stopped. Raises MoveRefused for a run that isn't paused."""
    with run_locked(run.pk) as locked:
        if locked.wanted == WANTS_PAUSE:
            locked.wanted = ""
            locked.save(update_fields=["wanted"])
            return locked
        if locked.status != Status.WAITING or not locked.conditions.get("paused"):
            raise MoveRefused(locked.pk, locked.status, Status.RUNNING)
        run_take_over(locked)
        to = Status.RUNNING if locked.prepared_at else Status.PREPARING
        run_move(
            locked,
            to,
            Fact("resumed", {**said_by(by), "reason": Waiting.PAUSED.value}),
            clock=Clock.INFRASTRUCTURE,
            wake_at=timezone.now(),
            job_sent_at=timezone.now(),
            conditions={"thaw": True},
        )
        advance_enqueue(locked.pk)
    return locked


def run_message(*, run: Run, by: User, text: str) -> Run:
    """Send the agent a message; the run is assisted from then on and never ranks. Raises MoveRefused after its end."""
    with run_locked(run.pk) as locked:
        if locked.status in TERMINAL or locked.status == Status.FINISHING:
            raise MoveRefused(locked.pk, locked.status, Status.RUNNING)
        locked.assisted = True
        locked.save(update_fields=["assisted"])
        said = MessageSent(text=text, by=by.shown_name, person=by.pk)
        event_append(locked.pk, Kind.MESSAGE_SENT, said.stored(), epoch=None)
    return locked


def run_share(*, run: Run, by: User, visibility: Visibility) -> Run:
    """Make a run public or private. A board's run stays public: raises MoveRefused."""
    with run_locked(run.pk) as locked:
        if locked.board and visibility != Visibility.PUBLIC:
            raise MoveRefused(locked.pk, locked.visibility, visibility)
        if locked.visibility != visibility:
            locked.visibility = visibility
            locked.save(update_fields=["visibility"])
            event_append(locked.pk, "shared", {**said_by(by), "visibility": visibility.value}, epoch=None)
    return locked
