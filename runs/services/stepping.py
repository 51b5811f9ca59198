"""Room: runs. A slice: claim a run, bring it on for a bounded time, store, hand over. The heart of the engine.

A worker holds nothing that matters: whatever happens to it, the next one starts from the stored events. Everything a
slice writes is fenced by the epoch of its claim, on the nodes too.
"""

import logging
import threading
import time
from datetime import datetime

import psycopg
from django.conf import settings
from django.db import DatabaseError, InterfaceError, OperationalError, connection
from django.utils import timezone
from pydantic import ValidationError

from gymnode.sessions import Session
from portal.accounts.vault import SecretBoundElsewhere, SecretMissing, secret_open
from runs.agent.events import Kind
from runs.agent.llm.factory import ModelSite, model_for, model_url, secret_host
from runs.agent.llm.network import BoundSecret
from runs.agent.loop import ReActAgent
from runs.agent.protocols import (
    AgentError,
    LeaseLost,
    ModelClient,
    ModelRefused,
    ProviderDown,
    RateLimited,
    RunEnded,
    StopReason,
    Suspended,
    WrongKey,
)
from runs.agent.replay import AgentState, replay
from runs.agent.spec import AgentSpec
from runs.agent.spec_parts import Provider
from runs.environment import Environment
from runs.eventlog import agent_events
from runs.failures import Code, Outage, RunFailed
from runs.ledger import Clock
from runs.masks import Masks
from runs.models.log import Event
from runs.models.run import Run
from runs.services import troubles
from runs.services.charging import jobs_charge
from runs.services.claims import Claim, claim_release, claim_take, heart
from runs.services.engine_actions import engine_act
from runs.services.finishing import run_clean, run_finish
from runs.services.masking import masks_for
from runs.services.moves import Fact, run_end_begin, run_locked, run_move, run_wait
from runs.services.preparing import environment_of, environment_open, opening_of, run_prepare, tools_of
from runs.services.queueing import manifest_of
from runs.services.session import ClockedModel, EngineSession, Held, node_errors
from runs.services.ticking import tick_if_late
from runs.states import TERMINAL, End, MoveRefused, Status, Waiting
from runs.workers import this_worker

# The database is away or let go of us. What it refuses to store (DataError, IntegrityError) is a fault of ours instead.
AWAY = (OperationalError, InterfaceError, psycopg.OperationalError, psycopg.InterfaceError)
log = logging.getLogger(__name__)


def run_advance(*, run_id: int) -> bool:
    """Work one slice on a run that is due; False when it isn't, or somebody else has it. Never raises for the run's
    own troubles: they become its state.
    """
    try:
        heart().life.ensure()
        heart().pulse = tick_if_late
        claim = claim_take(run_id, this_worker())
    except (DatabaseError, InterfaceError, psycopg.Error) as problem:
        log.warning("run %s was not claimed: %s", run_id, type(problem).__name__)
        return False
    if claim is None:
        return False
    with heart().keeping(claim, _taken_away):
        _slice(claim)
    return True


def _taken_away(claim: Claim) -> None:
    """Our claim was taken: a cancel, a deadline. Look after the run from a thread of our own, since the worker's other
    threads may all be busy and what still runs on the node has to end within seconds.
    """
    threading.Thread(target=_look_after, args=(claim.run_id,), name=f"look-after-{claim.run_id}", daemon=True).start()


def _look_after(run_id: int) -> None:
    try:
        run_advance(run_id=run_id)
    finally:
        connection.close()


def _slice(claim: Claim) -> None:
    try:
        try:
            claim_release(claim, wake_at=_phases(claim))
        except Outage as outage:
            troubles.outage_note(claim, outage)
        except RunFailed as failure:
            troubles.failure_note(claim, failure)
    except (LeaseLost, MoveRefused):
        log.info("run %s is somebody else's now (epoch %s was ours)", claim.run_id, claim.epoch)
    except Suspended as wait:
        log.info("run %s waits: %s", claim.run_id, wait.reason)
    except AWAY as problem:
        # Nothing can be stored now; the claim lapses, and the next slice starts from what was stored.
        log.warning("run %s: the database went away (%s)", claim.run_id, type(problem).__name__)
        connection.close()
    except Exception:  # noqa: BLE001  the top of a slice: whatever it is, it becomes the run's state
        _unforeseen(claim)


def _unforeseen(claim: Claim) -> None:
    try:
        troubles.fault_note(claim)
    except (LeaseLost, MoveRefused, DatabaseError, InterfaceError) as problem:
        log.warning("run %s: the fault was not noted (%s)", claim.run_id, type(problem).__name__)


def _phases(claim: Claim) -> datetime | None:
    """Do what the run's status asks for; returns when somebody has to look at it again (None: nobody has to)."""
    run = Run.objects.select_related("config", "task_version__task", "team").get(pk=claim.run_id)
    if run.status in TERMINAL:
        return run_clean(claim, run)
    if run.status == Status.FINISHING:
        return run_finish(claim, run)
    environment = environment_of(claim, run)
    if run.status == Status.WAITING:
        _woken(claim, run, environment)
    if run.status == Status.PREPARING:
        run_prepare(claim, run, environment)
    else:
        environment_open(environment, opening_of(manifest_of(run.task_version)))
        if run.conditions.get("thaw"):
            with node_errors():
                environment.thaw()
    _steps(claim, run, environment)
    return timezone.now()


def _woken(claim: Claim, run: Run, environment: Environment) -> None:
    """Waiting -> running or preparing; a paused run stays paused, with its processes frozen. Raises Suspended."""
    if run.conditions.get("paused"):
        _kept_paused(claim, run, environment)
    outage = run.outage_since is not None
    to = Status.RUNNING if run.prepared_at else Status.PREPARING
    sessions: tuple[Session, ...] = ()
    if outage and run.prepared_at:
        environment_open(environment, opening_of(manifest_of(run.task_version)))
        with node_errors():
            sessions = environment.sessions()
    with run_locked(claim.run_id, epoch=claim.epoch) as locked:
        jobs_charge(locked, sessions)
        run_move(locked, to, None, clock=Clock.INFRASTRUCTURE if outage else Clock.ENGINE)
    run.status = to


def _kept_paused(claim: Claim, run: Run, environment: Environment) -> None:
    if run.prepared_at:
        environment_open(environment, opening_of(manifest_of(run.task_version)))
        with node_errors():
            environment.freeze()
    with run_locked(claim.run_id, epoch=claim.epoch) as locked:
        run_wait(locked, Waiting.PAUSED, None, clock=Clock.PAUSED, wake_at=None, **troubles.OUTAGE_OVER)
    raise Suspended(Waiting.PAUSED.value)


def _steps(claim: Claim, run: Run, environment: Environment) -> None:
    """Step until the slice is over or the run is. Raises what ends or suspends it."""
    spec = AgentSpec.model_validate(run.config.spec)
    state = _state(run)
    try:
        model, masks = _model(run, spec)
        try:
            held = _held(claim, run, spec, environment, masks)
            session = EngineSession(held, engine_act, cursor=state.cursor, last_action=_last_action(run.pk))
            if run.outage_since is None:
                session.clock(Clock.ENGINE)
            agent = ReActAgent(spec, ClockedModel(model, session))
            ends = time.monotonic() + settings.SLICE_SECONDS
            while time.monotonic() < ends:
                state = agent.step(state, session)
                if run.outage_since is not None:
                    run.outage_since = None
                    troubles.outage_over(run, claim.epoch)
        finally:
            model.close()
    except RateLimited as limited:
        raise Outage(Code.RATE_LIMITED, limited.retry_after_s) from limited
    except ProviderDown as down:
        raise Outage(Code.PROVIDER_DOWN, down.retry_after_s) from down
    except ModelRefused as refused:
        troubles.refusal_note(claim, refused, spec)
    except RunEnded as ended:
        _ended(claim, ended)
    finally:
        _state_store(claim, run, state)


def _held(claim: Claim, run: Run, spec: AgentSpec, environment: Environment, masks: Masks) -> Held:
    manifest = manifest_of(run.task_version)
    return Held(claim, run, spec, manifest, environment, opening_of(manifest), tools_of(spec), masks)


def _ended(claim: Claim, ended: RunEnded) -> None:
    """The agent stops: by itself, at a limit, or because it can't go on. The final evaluation follows in each case."""
    columns = {}
    fact = Fact("budget_reached", {"budget": ended.reason.value})
    if isinstance(ended, AgentError):
        fact = Fact("agent_failed", {"code": ended.code, "message": ended.message})
        columns = {"failure_code": ended.code, "failure_args": {}}
    elif ended.reason is StopReason.FINISH:
        fact = Fact("agent_finished")
    with run_locked(claim.run_id, epoch=claim.epoch) as run:
        run_end_begin(run, End(ended.reason.value), fact, **columns)


def _state(run: Run) -> AgentState:
    """The stored fold with what came after it; from the first event where a release can't read an older fold."""
    state = AgentState()
    if run.fold is not None:
        try:
            state = AgentState.from_json(run.fold)
        except ValidationError:
            log.info("run %s: the stored fold is of another release, replaying", run.pk)
    return replay(agent_events(Event.objects.filter(run=run, seq__gt=state.last_seq).order_by("seq")), state)


def _state_store(claim: Claim, run: Run, state: AgentState) -> None:
    if state.last_seq > run.fold_seq:
        held = Run.objects.filter(pk=claim.run_id, epoch=claim.epoch, fold_seq__lt=state.last_seq)
        held.update(fold=state.to_json(), fold_seq=state.last_seq)


def _last_action(run_id: int) -> str:
    """Name of the last action that has its observation."""
    names = Event.objects.filter(run=run_id, kind=Kind.OBSERVED).order_by("-seq").values_list("body__name", flat=True)
    return names.first() or ""


def _model(run: Run, spec: AgentSpec) -> tuple[ModelClient, Masks]:
    """The model's client, and its key as what must never be stored. Raises ModelRefused, RunFailed."""
    site = ModelSite(settings.MODEL_ALLOWED_HOSTS, settings.SCRIPTED_URL)
    if spec.model.provider is Provider.SCRIPTED or spec.model.api_key is None:
        return model_for(spec.model, site, client_id=run.key), Masks()
    name, url = spec.model.api_key.removeprefix("secret:"), model_url(spec.model)
    try:
        key = secret_open(team=run.team, name=name, url=url).reveal()
    except SecretMissing as missing:
        raise WrongKey(missing.code, missing.code) from missing
    except SecretBoundElsewhere as bound:
        raise WrongKey(bound.code, bound.code) from bound
    secret = BoundSecret(key, secret_host(spec.model))
    return model_for(spec.model, site, secret=secret, client_id=run.key), masks_for(run.pk) or Masks()
