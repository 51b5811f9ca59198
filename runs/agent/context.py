"""Room: runs.agent. How full the context is and where to cut it. Pure.

Tokens: what the provider counted at the newest reply, plus an estimate of what came since.
"""

import json

from runs.agent.protocols import Role
from runs.agent.replay import AgentState, Message
from runs.agent.spec import AgentSpec


def estimate(text: str) -> int:
    """Tokens of a text, on the high side: about 3.6 characters of ASCII each, one for any other character."""
    plain = len(text.encode("ascii", "ignore"))
    return int(plain / 3.6) + (len(text) - plain) + 1


def message_tokens(message: Message) -> int:
    """Estimated tokens of one message with its calls."""
    return 4 + estimate(message.text) + sum(10 + estimate(call.arguments) for call in message.calls)


def context_tokens(state: AgentState) -> int:
    """Tokens of the next request, without the status."""
    if state.measured:
        return state.measured + sum(message_tokens(m) for m in state.messages if m.seq > state.measured_seq)
    return fixed_tokens(state) + estimate(state.summary) + sum(map(message_tokens, state.messages))


def fixed_tokens(state: AgentState) -> int:
    """Estimated tokens of what never changes: system, task and tools."""
    if state.given is None:
        return 0
    tools = json.dumps([dict(tool.parameters) | {"d": tool.description} for tool in state.given.tools])
    return estimate(state.given.system) + estimate(state.given.task) + estimate(tools)


def compaction_due(state: AgentState, spec: AgentSpec) -> bool:
    """Past the threshold; just after a compaction only when the request still can't fit."""
    if len(state.messages) < 2 or state.compactions_in_row > 1:
        return False
    room = spec.context.window_tokens - spec.model.max_output_tokens
    return context_tokens(state) > (room if state.compactions_in_row else spec.context.threshold)


def cut_seq(state: AgentState, share: float) -> int:
    """The seq from which on messages are kept: whole turns, about `share` of the tokens, at least the last turn."""
    starts = [m.seq for m in state.messages if m.role is Role.ASSISTANT]
    if not starts:
        return state.last_seq + 1
    budget = share * sum(map(message_tokens, state.messages))
    kept = 0
    cut = starts[-1]
    for message in reversed(state.messages):
        kept += message_tokens(message)
        if kept > budget:
            break
        if message.role is Role.ASSISTANT:
            cut = message.seq
    # Everything fits in the share only when one turn holds most of it; the first turn then goes all the same.
    return starts[1] if cut == starts[0] and len(starts) > 1 else cut
