"""Room: runs.agent. Makes room in the context: one structured summary, or cutting. Touches the model only through its
port.

Three levels, taken in turn until the provider accepts the request: the older half gives way to a summary by the
model; only the last turn is kept, its messages cut at `CAPS[1]` characters; the same at `CAPS[2]`. An empty or
failing summary is tried once more, then replaced by an outline. Facts that must not get lost (sessions, limits, best
result, outputs) are added by the engine, not left to the model.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from runs.agent.context import context_tokens, cut_seq, estimate, fixed_tokens, message_tokens
from runs.agent.events import Compacted, CompactedBy, Replied, Usage
from runs.agent.marks import SUMMARY_MARK
from runs.agent.prompt import conversation, in_mode, status_text
from runs.agent.protocols import (
    AgentError,
    ChatMessage,
    ContentRefused,
    ContextOverflow,
    LanguageModel,
    Role,
    RunStatus,
)
from runs.agent.replay import AgentState, Message, capped
from runs.agent.spec import AgentSpec

CAPS = (None, 20_000, 2_000)
SUMMARY_TRIES = 2
SUMMARY_MIN_CHARS = 40
SUMMARY_MAX_CHARS = 40_000
OUTLINE_TURNS = 30
FACTS = "## Facts added by the engine"

INSTRUCTION = (
    f"{SUMMARY_MARK} The conversation is about to outgrow your context. Write a summary that replaces everything above "
    "but the task: whoever goes on has only your summary and the newest messages. Don't call a tool. Use "
    "these headings:\n"
    "\n"
    "## Goal and plan\n"
    "## What is known\n"
    "## Best result and how it was made\n"
    "## Files (what lies where, and what it is for)\n"
    "## Sessions and jobs (every live session and what its job does)\n"
    "## Tried and failed\n"
    "## Next\n"
    "\n"
    "Be concrete: numbers, paths, commands, settings. Leave out what no longer matters."
)


@dataclass(frozen=True)
class Spent:
    """What the tries of a summary cost. Paid replies count, used or not."""

    usage: Usage = field(default_factory=Usage)
    usd: Decimal | None = Decimal(0)

    def plus(self, reply: Replied) -> "Spent":
        """With one more reply."""
        usd = None if self.usd is None or reply.usd is None else self.usd + reply.usd
        return Spent(self.usage.plus(reply.usage), usd)


def compact(state: AgentState, spec: AgentSpec, model: LanguageModel, status: RunStatus) -> Compacted:
    """The next level of compaction. Raises `AgentError` when none is left, and the model's errors but for a content
    refusal.
    """
    level = state.compactions_in_row
    before = context_tokens(state)
    if level >= len(CAPS):
        raise AgentError(
            "context_too_small",
            f"the provider refuses about {before} tokens as too long, after {level} compactions; the config says "
            f"{spec.context.window_tokens} tokens of window and {spec.model.max_output_tokens} of output: "
            "set them to what the model has",
        )
    cut = cut_seq(state, spec.context.keep_recent if level == 0 else 0.0)
    older = [message for message in state.messages if message.seq < cut]
    summary, spent = _by_model(state, older, spec, model) if level == 0 else ("", Spent())
    text = f"{summary or _outline(state, older, CAPS[level])}\n\n{engine_facts(state, status)}"
    kept = [capped(message, CAPS[level]) for message in state.messages if message.seq >= cut]
    return Compacted(
        summary=text,
        kept_from_seq=cut,
        tokens_before=before,
        tokens_after=fixed_tokens(state) + estimate(text) + sum(map(message_tokens, kept)),
        by=CompactedBy.MODEL if summary else CompactedBy.TRIM,
        text_cap=CAPS[level],
        usage=spent.usage,
        usd=spent.usd,
    )


def _by_model(state: AgentState, older: Sequence[Message], spec: AgentSpec, model: LanguageModel) -> tuple[str, Spent]:
    """A summary by the model, or "" when it gives none."""
    spent, cap = Spent(), None
    for _ in range(SUMMARY_TRIES):
        messages = [*conversation(state, [capped(m, cap) for m in older]), ChatMessage(Role.USER, INSTRUCTION)]
        try:
            reply = model.complete(in_mode(messages, state, spec), _unseen)
        except ContextOverflow:
            cap = CAPS[-1]
            continue
        except ContentRefused:
            break
        spent = spent.plus(reply)
        if len(reply.text.strip()) >= SUMMARY_MIN_CHARS and not reply.calls:
            return reply.text.strip()[:SUMMARY_MAX_CHARS], spent
    return "", spent


def _unseen(text: str) -> None:
    """A summary isn't a thought: viewers see it as an event."""


def _outline(state: AgentState, older: Sequence[Message], cap: int | None) -> str:
    """The mechanical replacement: the summary before, and the first line of each of the newest thoughts that go."""
    lines = [f"- {message.text.strip().splitlines()[0][:300]}" for message in older if _is_thought(message)]
    before = state.summary.partition(FACTS)[0].strip()[: cap or SUMMARY_MAX_CHARS]
    parts = ["The older part of the conversation was cut without a summary; this is its outline."]
    if before:
        parts.append(before)
    if lines:
        parts.append("## Thoughts, oldest first\n" + "\n".join(lines[-OUTLINE_TURNS:]))
    return "\n\n".join(parts)


def _is_thought(message: Message) -> bool:
    return message.role is Role.ASSISTANT and bool(message.text.strip())


def engine_facts(state: AgentState, status: RunStatus) -> str:
    """What the engine knows for certain and a summary may have lost."""
    outputs = ", ".join(state.given.outputs) if state.given and state.given.outputs else "none declared"
    lines = [
        FACTS,
        f"Output files that are evaluated: {outputs}",
        f"Evaluations used: {state.evaluations_used}; last score: {_or_none(state.last_score)}",
        f"Best score: {_or_none(state.best_score)}",
        f"Steps made: {state.steps}; open file: {_or_none((state.cursor or {}).get('path'))}",
        f"Idle sessions: {', '.join(status.idle_sessions) or 'none known'}",
        status_text(status, state).partition(" ")[2],
    ]
    return "\n".join(lines)


def _or_none(value: object) -> str:
    return "none" if value is None else str(value)
