"""Room: runs. `EngineSession`: one run as the agent's loop sees it, held by this worker under the epoch of its claim.

It stores every phase before the next begins, keeps the clock, masks secrets, and sends actions to the nodes. What the
engine itself carries out (eval, finish, sleep, view_hint) is in engine_actions.py.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from django.utils import timezone

from evaluator.manifest import Manifest
from gymnode.actions.base import Action
from gymnode.actions.registry import action_parse
from gymnode.errors import (
    CallRefused,
    EpochTooLow,
    HostKeyChanged,
    HostKeyUnknown,
    NodeError,
    NoSuchRun,
    RequestBroken,
    StorageFull,
)
from gymnode.observations import FileCursor, Observation, Outcome
from runs import bell
from runs.agent.events import ActionSent, Body, Call, Compacted, Event, Kind, Observed, Replied
from runs.agent.protocols import (
    LanguageModel,
    LeaseLost,
    ModelRequest,
    ProviderDown,
    RateLimited,
    RunningJob,
    RunStatus,
    Suspended,
)
from runs.agent.spec import AgentSpec
from runs.database import connection_give_back
from runs.environment import Environment, Opening
from runs.eventlog import Change, agent_events, clock_switch, event_append
from runs.failures import Code, Outage
from runs.ledger import Clock
from runs.masks import Masks
from runs.models.log import Event as EventRow
from runs.models.run import Run
from runs.selectors import evaluations_spent, run_budgets
from runs.services.claims import Claim
from runs.services.moves import WANTS_PAUSE, Fact, run_locked, run_pause_now, run_wait
from runs.states import Waiting

DELTA_EVERY_S = 0.1


@dataclass(frozen=True)
class Held:
    """What a slice knows of the run it works on. `run` is as it was at the claim; counters are read anew."""

    claim: Claim
    run: Run
    spec: AgentSpec
    manifest: Manifest
    environment: Environment
    opening: Opening
    allowed: frozenset[str]
    masks: Masks


EngineActs = Callable[["EngineSession", Action, ActionSent], Observation]


class EngineSession:
    """`RunSession` of runs.agent.protocols. Of one slice and one thread."""

    def __init__(self, held: Held, acts: EngineActs, *, cursor: Mapping[str, Any] | None, last_action: str) -> None:
        self.held = held
        self._acts = acts
        self._cursor = FileCursor.model_validate(cursor) if cursor else None
        self._last_action = last_action
        self._unsent, self._sent_at = "", 0.0
        self._steps = held.run.steps

    @property
    def run_id(self) -> int:
        return self.held.claim.run_id

    def status(self) -> RunStatus:
        """What is left and what runs. Raises Outage while a node doesn't answer, LeaseLost."""
        jobs = self._jobs()
        run = Run.objects.get(pk=self.run_id)
        budgets = run_budgets(run)
        usd_left = budgets.usd.left
        return RunStatus(
            now=timezone.now(),
            remaining_s=float(budgets.time_s.left or 0),
            steps_left=int(budgets.steps.left or 0),
            evaluations_left=max(0, run.limit_evaluations - evaluations_spent(run)),
            usd_left=None if usd_left is None else Decimal(usd_left),
            tokens_left=None if budgets.tokens.left is None else int(budgets.tokens.left),
            jobs=jobs,
        )

    def _jobs(self) -> tuple[RunningJob, ...]:
        now = time.time()
        with node_errors():
            sessions = self.held.environment.sessions()
        busy = [(each, each.job) for each in sessions if each.job is not None and each.state == "busy"]
        return tuple(
            RunningJob(each.id, each.node or "", job.command or "", max(0.0, now - (job.started_at or now)))
            for each, job in busy
        )

    def record(self, kind: Kind, body: Body) -> Event:
        """Append one event with what it does to clock and counters. Raises LeaseLost; Suspended when a pause is due."""
        change = _change(body)
        if isinstance(body, Replied):  # the name is the provider's word, and shown beside the score
            change = replace(change, model_returned=self.held.masks.apply(body.model)[:160])
        return self._append(kind, body, change)

    def _append(self, kind: Kind, body: Body, change: Change) -> Event:
        stored = self.held.masks.over(body.stored())
        appended = event_append(self.run_id, kind, stored, epoch=self.held.claim.epoch, change=change)
        if appended is None:
            raise LeaseLost
        self._steps = appended.steps
        self._unsent = ""  # an event stands in for the live text before it
        if appended.wanted == WANTS_PAUSE:
            self.suspend(Waiting.PAUSED, None, clock=Clock.PAUSED)
        return Event(seq=appended.seq, at=appended.at, kind=kind, body=stored)

    def clock(self, kind: Clock, *, close_as: Clock | None = None) -> None:
        """Begin another kind of time. Raises LeaseLost."""
        if clock_switch(self.run_id, kind, epoch=self.held.claim.epoch, close_as=close_as) is None:
            raise LeaseLost

    def suspend(self, reason: Waiting, fact: Fact | None, *, clock: Clock, **columns: Any) -> None:
        """Let the run wait and the claim go. Always raises: Suspended, or LeaseLost."""
        wake_at = columns.pop("wake_at", None)
        with run_locked(self.run_id, epoch=self.held.claim.epoch) as run:
            if run.wanted == WANTS_PAUSE:
                run_pause_now(run)
            else:
                run_wait(run, reason, fact, clock=clock, wake_at=wake_at, **columns)
        raise Suspended(run.waiting_reason)

    def act(self, call: Call, *, sent: ActionSent | None) -> Event:
        """Carry out one call; see the protocol. A stored intent goes out again under its old id."""
        name, arguments = (call.name, call.arguments) if sent is None else (sent.name, json.dumps(dict(sent.arguments)))
        try:
            action = action_parse(name, arguments, allowed=self.held.allowed, refused=call.refused)
        except CallRefused as refused:
            return self._observed(call.id, None, call.name, refused.observation)
        resend = sent is not None
        if sent is None:
            sent = self._intend(call, action)
        if action.engine:
            observation = self._acts(self, action, sent)
        elif not action.repeatable and self._last_action == action.name:
            observation = self.told(action, Outcome.REFUSED, f"{action.name} is refused twice in a row; act now.")
        else:
            observation = self._perform(action, sent.action_id, resend=resend)
        self._last_action = action.name
        self._cursor = observation.cursor or self._cursor
        return self._observed(call.id, sent.action_id, action.name, observation)

    def _intend(self, call: Call, action: Action) -> ActionSent:
        sent = ActionSent(
            call_id=call.id,
            # By step and place in the reply: the same whatever else was written into the log meanwhile.
            action_id=f"{self.held.run.key}.{self._steps}.{call.index}",
            name=action.name,
            arguments=action.arguments(),
            node=getattr(action, "node", None),
        )
        self._append(Kind.ACTION_SENT, sent, Change(clock=Clock.ENGINE if action.engine else Clock.ACTION))
        return sent

    def _perform(self, action: Action, action_id: str, *, resend: bool) -> Observation:
        connection_give_back()
        environment = self.held.environment
        with node_errors():
            try:
                return action.perform(environment.bench(action_id, resend=resend, cursor=self._cursor))
            except NoSuchRun:
                # The node forgot the run (its gymd was replaced): open it again; the journal tells what was done.
                environment.open(self.held.opening)
                return action.perform(environment.bench(action_id, resend=True, cursor=self._cursor))

    def told(self, action: Action, outcome: Outcome, message: str, **fields: Any) -> Observation:
        """An observation of the engine's own, made now."""
        now = timezone.now()
        kind = action.observation
        return kind(outcome=outcome, message=message, started_at=now, finished_at=now, **fields)

    def _observed(self, call_id: str, action_id: str | None, name: str, observation: Observation) -> Event:
        cursor = observation.cursor
        body = Observed(
            call_id=call_id,
            action_id=action_id,
            name=name,
            outcome=observation.outcome,
            message=observation.message,
            text=observation.text(),
            observation=observation.body(),
            cursor=None if cursor is None else cursor.model_dump(mode="json"),
        )
        return self._append(Kind.OBSERVED, body, Change(clock=Clock.ENGINE))

    def events_after(self, seq: int) -> Sequence[Event]:
        """Stored events with a greater seq, whole."""
        return agent_events(EventRow.objects.filter(run=self.run_id, seq__gt=seq).order_by("seq"))

    def delta(self, text: str) -> None:
        """Text of a reply under way, for viewers: gathered for a tenth of a second, masked, then sent."""
        self._unsent += text
        now = time.monotonic()
        if now - self._sent_at >= DELTA_EVERY_S:
            shown, self._unsent = self.held.masks.ready(self._unsent)
            self._sent_at = now
            if shown:
                bell.delta(self.run_id, shown)


class node_errors:  # noqa: N801  reads as the statement it is: `with node_errors():`
    """Turns what a node or the way to it does into what it means for the run."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, EpochTooLow):
            raise LeaseLost from error
        if isinstance(error, (NoSuchRun, RequestBroken)):
            # Opening it again, at the start of the next slice, mends the first; time may mend the second.
            raise Outage(Code.NODE_UNREACHABLE, node="") from error
        if isinstance(error, StorageFull):
            raise Outage(Code.NODE_FULL) from error
        if isinstance(error, NodeError):
            raise Outage(_code_of(error), node=error.node) from error


def _code_of(error: NodeError) -> Code:
    kinds = ((HostKeyChanged, Code.NODE_KEY_CHANGED), (HostKeyUnknown, Code.NODE_KEY_UNKNOWN))
    return next((code for kind, code in kinds if isinstance(error, kind)), Code.NODE_UNREACHABLE)


class ClockedModel:
    """A language model whose time is kept: charged while it answers, nobody's when it was refused or broke."""

    def __init__(self, model: LanguageModel, session: EngineSession) -> None:
        self._model = model
        self._session = session

    def complete(self, request: ModelRequest, on_delta: Callable[[str], None]) -> Replied:
        """As the model's own; the connection to the database is given back meanwhile. Raises ModelError, LeaseLost."""
        self._session.clock(Clock.MODEL)
        connection_give_back()
        try:
            return self._model.complete(request, on_delta)
        except (RateLimited, ProviderDown):
            self._session.clock(Clock.ENGINE, close_as=Clock.INFRASTRUCTURE)
            raise


def _change(body: Body) -> Change:
    if isinstance(body, Replied):
        return Change(
            clock=Clock.ENGINE,
            steps=1,
            usd=body.usd or Decimal(0),
            unpriced=body.usd is None,
            tokens=body.usage.total,
            cached_tokens=body.usage.cached,
        )
    if isinstance(body, Compacted):
        return Change(
            clock=Clock.ENGINE,
            usd=body.usd or Decimal(0),
            unpriced=body.usd is None,
            tokens=body.usage.total,
            cached_tokens=body.usage.cached,
        )
    return Change(clock=Clock.ENGINE)
