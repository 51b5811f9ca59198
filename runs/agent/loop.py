"""Room: runs.agent. The loop, on one screen: prompt, model, calls. Touches the world through `RunSession` and
`LanguageModel` only.

Every phase is stored before the next begins, and a step starts from the stored state. So a worker that dies anywhere
leaves a state from which the next one goes on: the model isn't asked again for a stored reply, and a sent action goes
out again under its old id.
"""

from datetime import datetime

from gymnode.observations import Outcome
from runs.agent.compaction import compact
from runs.agent.context import compaction_due
from runs.agent.events import Event, Kind, Observed
from runs.agent.prompt import request
from runs.agent.protocols import ContextOverflow, LanguageModel, RunEnded, RunSession, RunStatus, StopReason
from runs.agent.replay import AgentState, replay
from runs.agent.spec import AgentSpec
from runs.agent.stops import check_faults, check_limits
from runs.agent.system_prompt import SILENT_MESSAGE


class ReActAgent:
    """Thought, action, observation. Holds no state of a run: one agent may step many runs, on many threads."""

    def __init__(self, spec: AgentSpec, model: LanguageModel) -> None:
        self.spec = spec
        self.model = model

    def step(self, state: AgentState, session: RunSession) -> AgentState:
        """One turn. Returns the state after it.

        Raises `Suspended`, `LeaseLost`, `RunEnded` (`AgentError` among them) and `ModelError`; what was stored before
        stays stored, so the caller folds the events after its own state and calls again when it may.
        """
        if state.finished:
            raise RunEnded(StopReason.FINISH, "the agent called finish")
        if state.pending or state.silent:
            return self._settle(state, session)
        check_faults(state)
        status = session.status()
        check_limits(state, status)
        if compaction_due(state, self.spec):
            return self._compact(state, session, status)
        try:
            reply = self.model.complete(request(state, status, self.spec), session.delta)
        except ContextOverflow:
            return self._compact(state, session, status)
        state = _taken(state, session.record(Kind.REPLIED, reply), session)
        return self._settle(state, session)

    def _settle(self, state: AgentState, session: RunSession) -> AgentState:
        """Carry out what the newest reply called for and has no observation yet; tell a reply without a call that it
        had none.
        """
        if state.silent:
            state = _taken(state, session.record(Kind.OBSERVED, _nothing_called(session.status().now)), session)
        for call in state.pending:
            state = _taken(state, session.act(call, sent=state.sent.get(call.id)), session)
        check_faults(state)
        return state

    def _compact(self, state: AgentState, session: RunSession, status: RunStatus) -> AgentState:
        return _taken(state, session.record(Kind.COMPACTED, compact(state, self.spec, self.model, status)), session)


def _taken(state: AgentState, event: Event, session: RunSession) -> AgentState:
    """The state with the event, and with what the session or others wrote before it."""
    if event.seq == state.last_seq + 1:
        return state.apply(event)
    return replay(session.events_after(state.last_seq), state)


def _nothing_called(now: datetime) -> Observed:
    moment = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    observation = {
        "observation_type": "null",
        "started_at": moment,
        "finished_at": moment,
        "outcome": Outcome.REFUSED.value,
    }
    return Observed(
        call_id="",
        name="null",
        outcome=Outcome.REFUSED,
        message=SILENT_MESSAGE,
        text=SILENT_MESSAGE,
        observation=observation,
    )
