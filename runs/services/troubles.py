"""Room: runs. What the failure table says, done: wait and try again, fail for good, or note a fault of our own.

Called at the top of a slice, under its claim. A run that can't wait (it is finishing, or over) keeps its state and is
looked at again later.
"""

import logging
import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from runs.agent.llm.backoff import Backoff
from runs.agent.llm.factory import secret_host
from runs.agent.protocols import ModelError, ModelRefused
from runs.agent.spec import AgentSpec
from runs.agent.spec_parts import OnNodeLoss
from runs.eventlog import Change, event_append
from runs.failures import Code, Outage, RunFailed, failure_of
from runs.ledger import Clock
from runs.models.run import Run
from runs.services.claims import Claim, claim_release
from runs.services.moves import Fact, run_end, run_end_begin, run_locked, run_wait
from runs.states import TERMINAL, End, Status, Waiting

OUTAGE_LIMIT_S = 6 * 3600
LOSS_LIMIT_S = 60.0  # of a run whose config says `on_node_loss: fail`
ENGINE_TRIES = 3
REASONS = {
    Code.NODE_UNREACHABLE: Waiting.NODE_LOST,
    Code.NODE_FULL: Waiting.NODE_LOST,
    Code.NODE_KEY_CHANGED: Waiting.NODE_LOST,
    Code.NODE_KEY_UNKNOWN: Waiting.NODE_LOST,
    Code.RATE_LIMITED: Waiting.MODEL,
    Code.PROVIDER_DOWN: Waiting.MODEL,
    Code.STORE_DOWN: Waiting.STORE,
}
LAST_CODES = {
    Code.NODE_UNREACHABLE: Code.NODE_LOST,
    Code.NODE_FULL: Code.NODE_LOST,
    Code.NODE_KEY_CHANGED: Code.NODE_LOST,
    Code.NODE_KEY_UNKNOWN: Code.NODE_LOST,
    Code.RATE_LIMITED: Code.PROVIDER_GONE,
    Code.PROVIDER_DOWN: Code.PROVIDER_GONE,
    Code.STORE_DOWN: Code.ENGINE_ERROR,
}
MODEL_CODES = {
    "wrong_key": Code.WRONG_KEY,
    "no_credit": Code.WRONG_KEY,
    "secret_missing": Code.SECRET_MISSING,
    "secret_bound_elsewhere": Code.SECRET_MISSING,
    "unknown_model": Code.UNKNOWN_MODEL,
    "no_scripted_model": Code.UNKNOWN_MODEL,
    "content_refused": Code.CONTENT_REFUSED,
    "address_refused": Code.ADDRESS_REFUSED,
    "address_moved": Code.ADDRESS_MOVED,
    "address_broken": Code.ADDRESS_BROKEN,
    "request_unsendable": Code.REQUEST_UNSENDABLE,
}
OUTAGE_OVER: Mapping[str, Any] = {"outage_since": None, "outage_tries": 0, "failure_code": "", "failure_args": {}}
log = logging.getLogger(__name__)


def outage_note(claim: Claim, outage: Outage) -> None:
    """Let the run wait for what doesn't answer, charged to nobody; end it when that lasts beyond the limit."""
    cause = outage.__cause__
    # A provider's own words may hold the key that it was sent.
    said = type(cause).__name__ if isinstance(cause, ModelError) else f"{type(cause).__name__}: {cause}"
    log.warning("run %s: %s (%s)", claim.run_id, outage.code, said)
    with run_locked(claim.run_id, epoch=claim.epoch) as run:
        now = timezone.now()
        since = run.outage_since or now
        if (now - since).total_seconds() > _patience(run, outage.code):
            _give_up(run, outage)
            return
        tries = run.outage_tries + 1
        wake_at = now + timedelta(seconds=Backoff().delay_s(tries, outage.after_s))
        columns: dict[str, Any] = {"outage_since": since, "outage_tries": tries}
        if run.status in TERMINAL or run.status == Status.FINISHING:
            Run.objects.filter(pk=run.pk).update(**columns)
            claim_release(claim, wake_at=wake_at)
            return
        arguments = {**outage.arguments, "tries": tries}
        columns |= {"failure_code": outage.code, "failure_args": arguments}
        first = run.outage_since is None
        kind = "node_lost" if REASONS[outage.code] is Waiting.NODE_LOST else "suspended"
        fact = Fact(kind, {"code": outage.code.value, **outage.arguments}) if first else None
        run_wait(run, REASONS[outage.code], fact, clock=Clock.INFRASTRUCTURE, wake_at=wake_at, **columns)


def _patience(run: Run, code: Code) -> float:
    fails = AgentSpec.model_validate(run.config.spec).on_node_loss is OnNodeLoss.FAIL
    return LOSS_LIMIT_S if fails and REASONS[code] is Waiting.NODE_LOST else OUTAGE_LIMIT_S


def _give_up(run: Run, outage: Outage) -> None:
    if run.status in TERMINAL:
        Run.objects.filter(pk=run.pk).update(wake_at=None)
        return
    arguments = {**outage.arguments, **away_for(run), "reference": "-"}
    failure_end(run, RunFailed(LAST_CODES[outage.code], **arguments))


def away_for(run: Run) -> dict[str, int]:
    """How long what the run waits for has been away, as an argument of a sentence; nothing where it isn't known."""
    if run.outage_since is None:
        return {}
    return {"seconds": round((timezone.now() - run.outage_since).total_seconds())}


def failure_end(run: Run, failure: RunFailed) -> None:
    """End a locked run for good; no evaluation follows and no score stands."""
    arguments = dict(failure.arguments)
    body = {"reason": End.INFRASTRUCTURE.value, "status": Status.FAILED.value, "code": failure.code.value}
    run_end(
        run,
        Status.FAILED,
        Fact("run_ended", body),
        end_reason=End.INFRASTRUCTURE,
        failure_code=failure.code,
        failure_args=arguments,
    )


def failure_note(claim: Claim, failure: RunFailed) -> None:
    """End the run the slice works on; a run that is over already stays as it is."""
    with run_locked(claim.run_id, epoch=claim.epoch) as run:
        if run.status not in TERMINAL:
            failure_end(run, failure)
    claim_release(claim, wake_at=timezone.now())


def refusal_note(claim: Claim, refused: ModelRefused, spec: AgentSpec) -> None:
    """The provider said no for good. Before the first reply nothing has happened: the run just fails. Later the agent
    has worked, so its outputs are evaluated: taking a key away must not make a bad run uncounted.
    """
    code = MODEL_CODES.get(refused.code, Code.REQUEST_REFUSED)
    secret = (spec.model.api_key or "").removeprefix("secret:") or "–"
    arguments = {"secret": secret, "host": secret_host(spec.model), "model": spec.model.name, "reason": refused.code}
    arguments |= refused.facts
    with run_locked(claim.run_id, epoch=claim.epoch) as run:
        if run.steps == 0:
            failure_end(run, RunFailed(code, **arguments))
        else:
            fact = Fact("model_refused", {"code": code.value})
            run_end_begin(run, End.AGENT_ERROR, fact, failure_code=code, failure_args=arguments)
    claim_release(claim, wake_at=timezone.now())


def fault_note(claim: Claim) -> None:
    """Something we didn't foresee: logged under a reference, tried again a few times, then final."""
    reference = secrets.token_hex(4)
    log.exception("run %s: the engine failed, reference %s", claim.run_id, reference)
    with run_locked(claim.run_id, epoch=claim.epoch) as run:
        run.engine_faults += 1
        run.save(update_fields=["engine_faults"])
        final = run.engine_faults >= ENGINE_TRIES and run.status not in TERMINAL
        if final:
            failure_end(run, RunFailed(Code.ENGINE_ERROR, reference=reference))
        wake_at = _later(run.engine_faults) if not final else timezone.now()
    claim_release(claim, wake_at=wake_at)


def _later(tries: int) -> datetime:
    return timezone.now() + timedelta(seconds=min(60.0, 2.0**tries))


def outage_over(run: Run, epoch: int) -> None:
    """What didn't answer does again: the charged clock goes on, and the page says so."""
    held = Run.objects.filter(pk=run.pk, epoch=epoch, outage_since__isnull=False)
    if held.update(**OUTAGE_OVER):
        body = {"code": failure_of(run.failure_code).code.value}
        event_append(run.pk, "resumed", body, epoch=epoch, change=Change())
