"""Room: runs.agent. When the agent must stop. Pure: limits as exceptions that carry their sentence (the engine
enforces them as well).
"""

from runs.agent.protocols import AgentError, RunEnded, RunStatus, StopReason
from runs.agent.replay import AgentState

FAULT_LIMIT = 10


def check_faults(state: AgentState) -> None:
    """Raises `AgentError` after ten replies in a row of which nothing could be carried out."""
    if state.faults_in_row >= FAULT_LIMIT:
        raise AgentError(
            "fault_streak",
            f"{state.faults_in_row} replies in a row held no call that could be carried out (limit {FAULT_LIMIT}); "
            "see the refused calls for what was wrong, and try `tool_mode: text` if the model has no tool calls",
        )


def check_limits(state: AgentState, status: RunStatus) -> None:
    """Raises `RunEnded` when a budget is used up."""
    if status.remaining_s is not None and status.remaining_s <= 0:
        raise RunEnded(StopReason.DEADLINE, "the working time is used up")
    if status.steps_left is not None and status.steps_left <= 0:
        raise RunEnded(StopReason.STEP_LIMIT, f"all steps are used up, {state.steps} were made")
    if status.usd_left is not None and status.usd_left <= 0:
        raise RunEnded(StopReason.COST_LIMIT, f"the money for model calls is used up, ${state.usd or 0:.2f} were spent")
    if status.tokens_left is not None and status.tokens_left <= 0:
        raise RunEnded(StopReason.TOKEN_LIMIT, f"all tokens are used up, {state.usage.total} were spent")
