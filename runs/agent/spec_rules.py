"""Room: runs.agent. Rules of an agent config that look at several values, at prices or at the set of actions. Pure.

They run when a config is handed in, not when a stored one is read back: price lists and actions change with releases,
while stored configs must stay readable. Not served by this release, and refused with that sentence: `agent:
external`, `guardrails: warn`, `feedback.efficiency: true`. `hint: on_demand` is accepted: `view_hint` is offered and
the engine answers it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gymnode.actions.registry import ACTIONS, PRESETS, UNAVAILABLE
from runs.agent.addresses import address_fault
from runs.agent.spec_messages import unknown_name
from runs.agent.spec_parts import (
    AgentKind,
    Context,
    Feedback,
    Guardrails,
    HintMode,
    Limits,
    Model,
    Provider,
    pricing_of,
)

Fault = tuple[Sequence[str | int], str]
_REFERENCE = re.compile(r"secret:[A-Za-z][A-Za-z0-9_]{0,63}")
_LOOKS_LIKE_KEY = re.compile(
    r"(sk-|sk_|gsk_|xai-|hf_|ghp_|AIza|Bearer |\b(github_pat_|glpat-|nvapi-|pplx-|r8_|ib_|AKIA))[A-Za-z0-9_\-]{12,}"
    r"|\beyJ[A-Za-z0-9_\-]{12,}\.eyJ"
)
_NAMES_A_KEY = re.compile(r"(x[-_])?(api[-_]?key|authorization|(access|auth)[-_]?token|secret([-_]?key)?|password)")
_RESERVED = {"model", "messages", "tools", "stream", "stream_options", "max_tokens", "max_completion_tokens"}
LITERAL_KEY = (
    "a key must not stand in a config, which is stored and shown; keep it as a secret of your team (Account, Vault) "
    "and name it here: `api_key: secret:NAME`"
)


@dataclass(frozen=True)
class Draft:
    """The parts of a config that have the right shape; rules look at what is there, so one bad part hides no other
    fault.
    """

    agent: AgentKind | None = None
    model: Model | None = None
    context: Context | None = None
    tools: str | tuple[str, ...] | None = None
    hint: HintMode | None = None
    limits: Limits | None = None
    feedback: Feedback | None = None
    guardrails: Guardrails | None = None


def keys_in(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Places of texts that look like a provider's key, wherever they were put."""
    if isinstance(value, str):
        named = bool(path) and _NAMES_A_KEY.fullmatch(str(path[-1]).lower()) is not None
        # `secret:NAME` is read at one place only; anywhere else it would be sent as it stands, which harms nobody.
        if _LOOKS_LIKE_KEY.search(value) or (named and not _REFERENCE.fullmatch(value)):
            yield path
    elif isinstance(value, Mapping | list):
        items = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, item in items:
            yield from keys_in(item, (*path, key))


def rules(draft: Draft) -> Iterator[Fault]:
    if draft.agent is AgentKind.EXTERNAL:
        yield ("agent",), "agents that live elsewhere (`external`) come with a later release; use `react`"
    if draft.guardrails is Guardrails.WARN:
        yield ("guardrails",), "guardrails come with a later release; use `none`"
    if draft.feedback is not None and draft.feedback.efficiency:
        yield ("feedback", "efficiency"), "efficiency feedback comes with a later release; use `false`"
    if draft.model is not None:
        yield from _model_rules(draft.model)
    if draft.model is not None and draft.context is not None:
        yield from _context_rules(draft.model, draft.context)
    if draft.model is not None and draft.limits is not None:
        yield from _price_rules(draft.model, draft.limits)
    if draft.tools is not None:
        yield from _tool_rules(draft.tools, draft.hint)


def _model_rules(model: Model) -> Iterator[Fault]:
    at = "model"
    if model.name != model.name.strip() or " " in model.name:
        yield (at, "name"), f"`model.name` is `{model.name}`; a model id has no spaces"
    if model.provider is Provider.SCRIPTED and model.base_url is not None:
        yield (at, "base_url"), "the scripted model has one address, the site's own; leave `base_url` out"
    if model.provider is not Provider.SCRIPTED and model.base_url is None and model.api_key is None:
        yield (at, "api_key"), f"`model.api_key` is missing; {model.provider} needs one: `api_key: secret:NAME`"
    if model.base_url is not None and (fault := address_fault(model.base_url)):
        yield (at, "base_url"), fault
    for key in sorted(_RESERVED & set(model.extra_body)):
        yield (
            (at, "extra_body", key),
            f"`extra_body` must not set `{key}`, which the engine sets; use the config's own key",
        )
    if model.reasoning.budget_tokens is not None:
        yield (at, "reasoning", "budget_tokens"), "thinking budgets come with a later release; use `reasoning.effort`"
    if model.provider is Provider.ANTHROPIC and (model.temperature or 0) > 1:
        yield (at, "temperature"), f"`model.temperature` is {model.temperature}; anthropic takes at most 1"


def _context_rules(model: Model, context: Context) -> Iterator[Fault]:
    room = context.window_tokens - model.max_output_tokens
    if context.threshold > room:
        given = context.compact_at_tokens is not None
        message = (
            f"compaction at {context.threshold} tokens comes too late: a window of {context.window_tokens} less "
            f"{model.max_output_tokens} of output leaves {max(room, 0)}; "
            "lower `compact_at_tokens` or `max_output_tokens`"
        )
        yield ("context", "compact_at_tokens") if given else ("model", "max_output_tokens"), message


def _price_rules(model: Model, limits: Limits) -> Iterator[Fault]:
    if limits.usd is None or limits.tokens is not None or pricing_of(model).known():
        return
    message = (
        f"a limit of ${limits.usd} can't be kept: no price of `{model.name}` is known (unpriced); "
        "give `model.prices` (per million tokens), or set `limits.tokens` beside it"
    )
    yield ("limits", "usd"), message


def _tool_rules(tools: str | tuple[str, ...], hint: HintMode | None) -> Iterator[Fault]:
    if isinstance(tools, str):
        if tools not in PRESETS:
            yield ("tools",), unknown_name(tools, PRESETS, what="preset") + "; or give a list of actions"
        return
    if not tools:
        yield (
            ("tools",),
            "the list is empty: an agent without actions can do nothing; name a preset such as `innovatorbench`",
        )
    for index, name in enumerate(tools):
        if name in tools[:index]:
            yield ("tools", index), f"`{name}` stands twice; remove it here"
        elif name == "null":
            yield (
                ("tools", index),
                "`null` is the engine's own answer to a reply without a call and is never offered; remove it",
            )
        elif name in UNAVAILABLE:
            yield ("tools", index), f"`{name}` is not available in this release; remove it"
        elif name not in ACTIONS:
            yield ("tools", index), unknown_name(name, ACTIONS, what="action")
        elif name == "view_hint" and hint not in (None, HintMode.ON_DEMAND):
            yield (
                ("tools", index),
                f"`view_hint` is offered only with `hint: on_demand`, here it is `{hint}`; remove one",
            )
