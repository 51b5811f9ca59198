"""An in-memory `RunSession` that speaks the whole protocol: events in a list, calls parsed by the real registry.

`kill_before=n` ends the worker before its n-th append, as SIGKILL would: what is stored stays, nothing else does.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from gymnode.actions.registry import action_parse
from gymnode.errors import CallRefused
from gymnode.observations import Outcome
from runs.agent.events import ActionSent, Body, Call, Event, Kind, Observed
from runs.agent.loop import ReActAgent
from runs.agent.prompt import first_prompt
from runs.agent.protocols import LanguageModel, RunEnded, RunStatus, StopReason, Suspended
from runs.agent.replay import AgentState, replay
from runs.agent.spec import AgentSpec, offered_tools, parse_spec
from runs.agent.taskbrief import TaskBrief

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SPEC = parse_spec("name: test\nmodel: {provider: scripted, name: reference}")
BRIEF = TaskBrief(
    task_id="demo",
    task_version=1,
    description="Make a file. Beat the reference result by whatever method.",
    engine_version="test",
    outputs=("data/outputs/a.csv",),
    hours=1,
    steps=300,
    evaluations_by_agent=3,
)


class WorkerKilled(BaseException):
    """Stands for SIGKILL: nothing in the code under test may catch it."""


Doing = Callable[[Mapping[str, Any]], tuple[Outcome, str]]


@dataclass
class MemorySession:
    """A run held by one worker. `log` is shared between workers, as a database would be."""

    log: list[Event]
    allowed: frozenset[str]
    doings: Mapping[str, Doing] = field(default_factory=dict)
    now: RunStatus = field(default_factory=lambda: RunStatus(now=NOW))
    kill_before: int | None = None
    performed: list[str] = field(default_factory=list)
    deltas: list[str] = field(default_factory=list)
    appended: int = 0

    def status(self) -> RunStatus:
        return self.now

    def record(self, kind: Kind, body: Body) -> Event:
        if self.kill_before is not None and self.appended >= self.kill_before:
            raise WorkerKilled
        self.appended += 1
        event = Event(seq=len(self.log) + 1, at=NOW, kind=kind, body=body.stored())
        self.log.append(event)
        return event

    def act(self, call: Call, *, sent: ActionSent | None) -> Event:
        try:
            action = action_parse(call.name, call.arguments, allowed=self.allowed, refused=call.refused)
        except CallRefused as refused:
            seen = refused.observation
            return self._observed(call, None, seen.outcome, seen.text())
        if sent is None:
            arguments = action.arguments()
            sent = ActionSent(call_id=call.id, action_id=f"r1.{call.place}", name=call.name, arguments=arguments)
            self.record(Kind.ACTION_SENT, sent)
        outcome, text = self.doings.get(call.name, _echo)(sent.arguments)
        if sent.action_id not in self.performed:
            self.performed.append(sent.action_id)
        return self._observed(call, sent.action_id, outcome, text)

    def _observed(self, call: Call, action_id: str | None, outcome: Outcome, text: str) -> Event:
        body = Observed(call_id=call.id, action_id=action_id, name=call.name, outcome=outcome, message=text, text=text)
        return self.record(Kind.OBSERVED, body)

    def events_after(self, seq: int) -> Sequence[Event]:
        return self.log[seq:]

    def delta(self, text: str) -> None:
        self.deltas.append(text)


def _echo(arguments: Mapping[str, Any]) -> tuple[Outcome, str]:
    return Outcome.OK, f"did {sorted(arguments)}"


def suspend_once() -> Doing:
    """A doing that suspends the run the first time and answers the second."""
    calls: list[int] = []

    def doing(arguments: Mapping[str, Any]) -> tuple[Outcome, str]:
        calls.append(1)
        if len(calls) == 1:
            raise Suspended("sleep")
        return Outcome.OK, "Woke: time."

    return doing


def opened(spec: AgentSpec = SPEC, brief: TaskBrief = BRIEF, **more: Any) -> MemorySession:
    """A session with its first event."""
    session = MemorySession(log=[], allowed=frozenset(offered_tools(spec)))
    session.record(Kind.TASK_GIVEN, first_prompt(brief, spec))
    return replace(session, appended=0, **more)


def next_worker(session: MemorySession, *, kill_before: int | None = None) -> MemorySession:
    """Another worker takes the run over; the node still knows what it did."""
    return replace(session, kill_before=kill_before, appended=0)


def played_out(model: LanguageModel, session: MemorySession, spec: AgentSpec = SPEC, steps: int = 60) -> StopReason:
    """Steps until the run ends; folds from the log at each step, as a worker after a restart does."""
    agent = ReActAgent(spec, model)
    for _ in range(steps):
        state = AgentState.from_json(replay(session.log).to_json())
        try:
            agent.step(state, session)
        except Suspended:
            continue
        except RunEnded as ended:
            return ended.reason
    raise AssertionError("the run didn't end")


def kinds(session: MemorySession) -> list[str]:
    """The kinds of the log, short."""
    return [str(event.kind) for event in session.log]
