"""Room: runs. What a result means: the evaluation's row, the event, the clock, the run's next state, news for others.

Everything here happens in one transaction with the run's and the evaluation's rows locked. Three outcomes: `valid` is
scored, `invalid` is a 0 that counts, `crashed` is ours: tried again, and after the last try it counts nowhere.
"""

import secrets
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.utils import timezone

from evaluator.contract import Outcome, ScoreResult
from evaluator.manifest import FormulaError, ScoreRule, score_compute
from portal.catalog.models import ScoringRevision
from portal.core.secrets import VaultClosed
from runs.agent.events import EvaluationScored, Kind, ScoredBy
from runs.eventlog import Change, clock_switch, event_append
from runs.failures import Code
from runs.ledger import Clock
from runs.masks import Masks
from runs.models.evaluation import By, Evaluation, EvaluationState
from runs.models.run import Run
from runs.outbox import outbox_put
from runs.services.masking import masks_for
from runs.services.moves import Fact, run_end, run_move
from runs.services.queueing import manifest_of
from runs.states import TERMINAL, End, Status, Waiting

MAX_TRIES = 3
# `evaluations.feedback` of a manifest: with anything else the agent learns that it counted, and no figure.
TELLS_METRICS, TELLS_SCORE = "metrics", "score"


def result_settle(run: Run, evaluation: Evaluation, result: ScoreResult, envelope: str) -> bool:
    """Store a verified result; True when the evaluation must be sent again."""
    row = _masked(run, _row_of(evaluation, result, envelope))
    if result.outcome == Outcome.VALID:
        row |= _computed(evaluation, dict(result.metrics))
    elif result.outcome == Outcome.INVALID:
        row |= {"state": EvaluationState.SCORED, "valid": False, "score": Decimal(0), "metrics": {}}
    if row.get("state") == EvaluationState.SCORED:
        _write(evaluation, row | {"scored_at": timezone.now()})
        _scored(run, evaluation)
        return False
    return _crashed(run, evaluation, row)


def store_answer(evaluation: Evaluation, stored: Evaluation) -> None:
    """Answer from the store: the same bytes under the same task version were scored before. It counts all the same."""
    names = ("metrics", "valid", "message", "score", "revision_id", "sandbox_level", "facts", "envelope")
    row = {name: getattr(stored, name) for name in names}
    row |= _computed(evaluation, stored.metrics) if stored.valid else {"state": EvaluationState.SCORED}
    row = _masked(evaluation.run, row)
    _write(evaluation, row | {"from_store": stored, "seconds": 0.0, "scored_at": timezone.now()})
    _scored(evaluation.run, evaluation)


def _row_of(evaluation: Evaluation, result: ScoreResult, envelope: str) -> dict[str, Any]:
    # Of a failure of ours pages say what became of it, by the evaluation's state; the reason is for curators.
    return {
        "message": "" if result.outcome == Outcome.CRASHED else result.message,
        "seconds": result.seconds,
        "sandbox_level": result.sandbox_level,
        "facts": dict(result.facts),
        "log_tail": result.log_tail,
        "envelope": envelope,
    }


def _masked(run: Run, row: dict[str, Any]) -> dict[str, Any]:
    """A scorer quotes what was handed in, and a run may hand in the key that it was sent."""
    try:
        masks: Masks | None = masks_for(run.pk) or Masks()
    except VaultClosed:
        masks = None
    texts = {name: masks.apply(row[name]) if masks else "" for name in ("message", "log_tail") if name in row}
    # The envelope holds the same texts, signed: it can't be kept either.
    return row | texts | ({"envelope": ""} if any(texts[name] != row[name] for name in texts) else {})


def _computed(evaluation: Evaluation, metrics: dict[str, float]) -> dict[str, Any]:
    """Score of valid metrics; metrics that don't fit the task are the evaluator's fault and store nothing."""
    revision = ScoringRevision.objects.filter(task_version=evaluation.run.task_version_id).order_by("-number").first()
    if revision is None:
        return {"message": "", "log_tail": "the task version has no scoring revision"}
    rule = ScoreRule.model_validate(revision.score)
    if set(metrics) != set(rule.metrics):
        expected, got = ", ".join(sorted(rule.metrics)), ", ".join(sorted(metrics)) or "none"
        return {"message": "", "log_tail": f"metrics refused: expected {expected}; got {got}"}
    try:
        score = max(Decimal(0), score_compute(rule, metrics) - evaluation.penalty)
    except FormulaError as problem:
        got = ", ".join(f"{name} = {value:g}" for name, value in sorted(metrics.items()))
        return {"message": "", "log_tail": f"metrics refused: {problem}; got {got}"}
    return {
        "state": EvaluationState.SCORED,
        "valid": True,
        "metrics": metrics,
        "score": score,
        "revision_id": revision.pk,
    }


def _write(evaluation: Evaluation, row: dict[str, Any]) -> None:
    for name, value in row.items():
        setattr(evaluation, name, value)
    evaluation.save(update_fields=[name.removesuffix("_id") for name in row])


def _crashed(run: Run, evaluation: Evaluation, row: dict[str, Any]) -> bool:
    if evaluation.try_no < MAX_TRIES:
        retry = {"try_no": evaluation.try_no + 1, "nonce": secrets.token_urlsafe(24), "sent_at": None, "ticket": ""}
        _write(evaluation, {"log_tail": row["log_tail"], "message": row["message"]} | retry)
        return True
    _write(evaluation, row | {"state": EvaluationState.FAILED, "valid": None})
    body = {"evaluation": evaluation.pk, "ordinal": evaluation.ordinal, "by": evaluation.by, "tries": evaluation.try_no}
    event_append(run.pk, "evaluation_failed", body, epoch=None)
    outbox_put("evaluation_failed", body | {"run": run.pk})
    _go_on(run, evaluation)
    return False


def _scored(run: Run, evaluation: Evaluation) -> None:
    """The event, the run's scores, the news, and the run's next state."""
    own = evaluation.by == By.AGENT
    if run.status == Status.CANCELLED or (run.status in TERMINAL and own):
        return  # late: nobody is told, nothing of the run changes
    _clock_sandbox(run, evaluation)
    body = _event_body(run, evaluation)
    event_append(run.pk, Kind.EVALUATION_SCORED, body.stored(), epoch=None, change=Change(evaluations=1 if own else 0))
    best = [run.best] if run.best is not None else []
    best += [evaluation.score] if evaluation.valid and evaluation.score is not None else []
    values: dict[str, Any] = {"best": max(best, default=None), "result_at": timezone.now()}
    if not own:
        values["score"] = evaluation.score
        if run.failure_code == Code.EVALUATION_FAILED:
            values |= {"failure_code": "", "failure_args": {}}
    for name, value in values.items():
        setattr(run, name, value)
    run.save(update_fields=list(values))
    outbox_put("evaluation_scored", {"run": run.pk, "evaluation": evaluation.pk, "by": evaluation.by})
    _go_on(run, evaluation)


def _event_body(run: Run, evaluation: Evaluation) -> EvaluationScored:
    """What the agent may know of it: as the manifest's `feedback` says. The rest stays in the evaluation's row."""
    feedback = manifest_of(run.task_version).evaluations.feedback
    tells_score = feedback in {TELLS_METRICS, TELLS_SCORE}
    used = run.evaluations_used + (evaluation.by == By.AGENT)
    return EvaluationScored(
        evaluation=evaluation.pk,
        ordinal=evaluation.ordinal,
        by=ScoredBy(evaluation.by),
        valid=bool(evaluation.valid),
        score=f"{evaluation.score:.2f}" if tells_score and evaluation.score is not None else None,
        metrics=evaluation.metrics if feedback == TELLS_METRICS else {},
        message=evaluation.message,
        left=max(0, run.limit_evaluations - used),
    )


def _clock_sandbox(run: Run, evaluation: Evaluation) -> None:
    """The last `seconds` of the waiting were the sandbox's: charged as evaluation; what came before was our queue."""
    run.refresh_from_db(fields=["clock_kind", "clock_since"])
    if run.clock_kind != Clock.QUEUE or run.clock_since is None or not evaluation.seconds:
        return
    begun = max(run.clock_since, timezone.now() - timedelta(seconds=evaluation.seconds))
    clock_switch(run.pk, Clock.EVALUATION, epoch=None, at=begun)


def _go_on(run: Run, evaluation: Evaluation) -> None:
    if evaluation.by == By.FINAL:
        if run.status == Status.FINISHING:
            _ended(run, evaluation)
    elif run.status == Status.WAITING and run.waiting_reason == Waiting.EVALUATION:
        now = timezone.now()
        fact = Fact("resumed", {"reason": Waiting.EVALUATION.value})
        run_move(run, Status.RUNNING, fact, clock=Clock.ENGINE, wake_at=now, conditions={})


def _ended(run: Run, evaluation: Evaluation) -> None:
    """After the final evaluation: failed when the agent broke down, else finished; the score may still be pending."""
    failed = run.failure_code != "" and run.end_reason == End.AGENT_ERROR
    to = Status.FAILED if failed else Status.FINISHED
    pending = evaluation.state == EvaluationState.FAILED
    body = {"reason": run.end_reason, "status": to.value, "code": run.failure_code, "score_pending": pending}
    columns: dict[str, Any] = {}
    if pending and not failed:
        columns = {"failure_code": Code.EVALUATION_FAILED, "failure_args": {"tries": evaluation.try_no}}
    run_end(run, to, Fact("run_ended", body), **columns)
