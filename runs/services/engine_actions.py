"""Room: runs. The special actions that the engine carries out itself: eval, finish, sleep, view_hint.

Each may be called again for the same stored intent, by another worker, any time later: what it does is derived from
stored rows, never from memory.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

from django.utils import timezone

from gymnode.actions.base import Action
from gymnode.actions.control import Eval, Finish, Sleep, ViewHint
from gymnode.errors import NoSuchSession, SessionClosed
from gymnode.observations import Observation, Outcome, Woke
from portal.catalog.selectors import hint_open
from runs.agent.events import ActionSent, HintRevealed, Kind
from runs.agent.protocols import LeaseLost, Suspended
from runs.agent.spec_parts import HintMode
from runs.database import connection_give_back
from runs.ledger import Clock
from runs.models.evaluation import By, Evaluation, EvaluationState
from runs.models.log import Event
from runs.models.run import Run
from runs.outputs import outputs_collect
from runs.selectors import evaluations_spent
from runs.services.evaluating import evaluation_request
from runs.services.moves import run_locked, run_wait
from runs.services.session import EngineSession, node_errors
from runs.states import Waiting

# A sleeping run looks at its session now and then by itself: a wake-up that got lost only delays it.
LOOK_EVERY_S = 15.0
NEAR_SHARE, NEAR_MOST_S = 0.05, 300.0


def engine_act(session: EngineSession, action: Action, sent: ActionSent) -> Observation:
    """Carry out one of the engine's own actions. Raises Suspended, LeaseLost, Outage."""
    match action:
        case Eval():
            return _evaluate(session, action, sent)
        case Sleep():
            return _sleep(session, action, sent)
        case Finish():
            message = "The run ends here. The outputs are scored a last time as they are."
            return session.told(action, Outcome.OK, message, summary=action.summary or "")
        case ViewHint():
            return _view_hint(session, action)
        case _:
            return session.told(action, Outcome.REFUSED, f"{action.name} is not carried out by this engine.")


def _view_hint(session: EngineSession, action: ViewHint) -> Observation:
    """The hint, and from then on its price; a second look costs nothing more."""
    held = session.held
    if held.spec.hint is not HintMode.ON_DEMAND:
        return session.told(action, Outcome.REFUSED, "This run gives no hints on demand. Go on without.")
    text = hint_open(held.run.task_version)
    if text is None:
        return session.told(action, Outcome.REFUSED, "This task has no hint; nothing is taken off.")
    penalty = held.manifest.hint.penalty if held.manifest.hint is not None else 0
    if not Event.objects.filter(run=session.run_id, kind=Kind.HINT_REVEALED).exists():
        session.record(Kind.HINT_REVEALED, HintRevealed(text=text, penalty=penalty))
    cost = f"{penalty:g} points off each evaluation from now on"
    return session.told(action, Outcome.OK, f"The hint of this task. It costs {cost}.", output=text, cost=cost)


def _evaluate(session: EngineSession, action: Eval, sent: ActionSent) -> Observation:
    found = Evaluation.objects.filter(run=session.run_id, action_id=sent.action_id).first()
    if found is None:
        run = Run.objects.get(pk=session.run_id)
        used = evaluations_spent(run)
        if used >= run.limit_evaluations:
            message = f"All {run.limit_evaluations} evaluations are used. The last one follows when the run ends."
            return session.told(action, Outcome.REFUSED, message, evaluations_left=0)
        found = _requested(session, sent)
    if found.state == EvaluationState.REQUESTED:
        session.suspend(Waiting.EVALUATION, None, clock=Clock.QUEUE)
    return _told_result(session, action, found)


def _requested(session: EngineSession, sent: ActionSent) -> Evaluation:
    """Collect, store, ask; and wait in the same transaction, so that an answer can't come before the waiting."""
    connection_give_back()
    with node_errors():
        collected = outputs_collect(session.held.environment, session.held.manifest)
    with run_locked(session.run_id, epoch=session.held.claim.epoch) as run:
        evaluation = evaluation_request(
            run=run,
            by=By.AGENT,
            bundle=collected.bundle,
            action_id=sent.action_id,
            step=run.steps,
            problems=collected.problems,
        )
        if evaluation.state == EvaluationState.REQUESTED:
            run_wait(run, Waiting.EVALUATION, None, clock=Clock.QUEUE, wake_at=None)
    if evaluation.state == EvaluationState.REQUESTED:
        raise Suspended(Waiting.EVALUATION.value)
    return evaluation


def _told_result(session: EngineSession, action: Eval, evaluation: Evaluation) -> Observation:
    if evaluation.state == EvaluationState.FAILED:
        message = (
            "The evaluator failed three times and gave up; that is not your fault and the evaluation does not count. "
            "Go on, and evaluate again later."
        )
        return session.told(action, Outcome.BROKEN, message)
    event = Event.objects.filter(
        run=session.run_id, kind=Kind.EVALUATION_SCORED, body__evaluation=evaluation.pk
    ).first()
    body: Mapping[str, object] = event.body if event is not None else {}
    left = body.get("left")
    return session.told(
        action,
        Outcome.OK if evaluation.valid else Outcome.FAILED,
        _result_sentence(evaluation, body),
        output=_result_lines(evaluation, body),
        score=body.get("score") if evaluation.valid else None,
        valid=evaluation.valid,
        metrics=body.get("metrics") or {},
        evaluations_left=left,
    )


def _result_sentence(evaluation: Evaluation, body: Mapping[str, object]) -> str:
    left = f"{body.get('left', 0)} evaluations are left."
    stored = " These very outputs were scored before; the stored result is given." if evaluation.from_store_id else ""
    if not evaluation.valid:
        missing = f" Not collected: {'; '.join(evaluation.problems)}." if evaluation.problems else ""
        return f"The outputs are not valid: {evaluation.message or 'no reason given'}.{missing} Score 0. {left}{stored}"
    taken = f" ({evaluation.penalty:g} points are off for the hint)" if evaluation.penalty else ""
    score = f"Score {body['score']} of 100{taken}. " if body.get("score") is not None else "The outputs are valid. "
    return f"{score}{left}{stored}"


def _result_lines(evaluation: Evaluation, body: Mapping[str, object]) -> str:
    metrics = body.get("metrics")
    lines = [f"{name}: {value}" for name, value in metrics.items()] if isinstance(metrics, Mapping) else []
    if evaluation.valid and evaluation.message:
        lines.append(evaluation.message)
    return "\n".join(lines)


def _sleep(session: EngineSession, action: Sleep, sent: ActionSent) -> Observation:
    """Wake for the earliest of: time over, session idle, deadline near. When it began is the intent's own time."""
    begun = _begun(session.run_id, sent.action_id)
    until = begun + timedelta(seconds=action.seconds)
    now = timezone.now()
    near = _deadline_near(session.run_id, now)
    if begun >= near:
        near = until  # begun when the deadline was near already: the agent knows
    idle, problem = _session_idle(session, action)
    if problem is not None:
        return session.told(action, Outcome.FAILED, problem, session_id=action.until_session_idle)
    woke = Woke.SESSION_FINISHED if idle else Woke.TIME if now >= until else Woke.DEADLINE_NEAR if now >= near else None
    if woke is not None:
        slept = max(0.0, (now - begun).total_seconds())
        message = f"Woke after {slept:.0f} s: {woke.value}."
        return session.told(
            action, Outcome.OK, message, woke=woke, slept_s=round(slept, 3), session_id=action.until_session_idle
        )
    wake_at = min(until, near)
    conditions = {}
    if action.until_session_idle is not None:
        wake_at = min(wake_at, now + timedelta(seconds=LOOK_EVERY_S))
        conditions = {"session": action.until_session_idle}
    session.suspend(Waiting.SLEEP, None, clock=Clock.SLEEP, wake_at=wake_at, conditions=conditions)
    raise LeaseLost


def _begun(run_id: int, action_id: str) -> datetime:
    sent = Event.objects.filter(run=run_id, kind=Kind.ACTION_SENT, body__action_id=action_id).order_by("seq").first()
    return sent.at if sent is not None else timezone.now()


def _deadline_near(run_id: int, now: datetime) -> datetime:
    run = Run.objects.only("limit_s", "charged_s", "clock_kind", "clock_since", "deadline_at").get(pk=run_id)
    margin = timedelta(seconds=min(NEAR_MOST_S, NEAR_SHARE * run.limit_s))
    deadline = run.deadline_at or now + timedelta(seconds=run.limit_s - run.charged_s)
    return deadline - margin


def _session_idle(session: EngineSession, action: Sleep) -> tuple[bool, str | None]:
    """Whether the awaited session is idle; or a sentence when there is no such session."""
    if action.until_session_idle is None:
        return False, None
    connection_give_back()
    with node_errors():
        try:
            return session.held.environment.session_idle(action.until_session_idle, action.node), None
        except (NoSuchSession, SessionClosed) as error:
            return False, f"{error} list_sessions shows which sessions there are."
