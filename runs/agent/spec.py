"""Room: runs.agent. The agent config: one model, its JSON schema, and `parse_spec`, which tells all faults. Pure.

What a spec means is data: versioned, immutable, shown beside every result.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError
from pydantic_core import PydanticUndefined

from gymnode.actions.registry import PRESETS
from gymnode.rendering import storable
from runs.agent.spec_messages import sentence, shown
from runs.agent.spec_parts import (
    AgentKind,
    Context,
    Feedback,
    Guardrails,
    HintMode,
    Limits,
    Model,
    OnNodeLoss,
    Part,
    Prompt,
    Snapshot,
    preset_or_list,
)
from runs.agent.spec_rules import LITERAL_KEY, Draft, Fault, keys_in, rules
from runs.agent.yaml_core import Document, SourceError, SourceErrors, dotted, read_document


class SpecErrors(SourceErrors):
    """All faults of a config, each with line, column, path and a sentence."""


class AgentSpec(Part):
    """One agent config."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$")
    agent: AgentKind = AgentKind.REACT
    model: Model
    context: Context = Context()
    snapshot: Snapshot = Snapshot()
    tools: Annotated[str | tuple[str, ...], BeforeValidator(preset_or_list)] = "innovatorbench"
    hint: HintMode = HintMode.NONE
    limits: Limits = Limits()
    on_node_loss: OnNodeLoss = OnNodeLoss.RESTORE
    feedback: Feedback = Feedback()
    guardrails: Guardrails = Guardrails.NONE
    prompt: Prompt = Prompt()

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """The JSON schema of a config, as it is served and as the form uses it."""
        return cls.model_json_schema()


def parse_spec(text: str) -> AgentSpec:
    """Read a config (YAML 1.2 or JSON). Raises `SpecErrors` with every fault."""
    try:
        document = read_document(text)
    except SourceErrors as error:
        raise SpecErrors(error.errors) from error
    value = storable(document.value)
    if not isinstance(value, dict):
        said = "is empty" if value is None else f"is {shown(value)}"
        raise SpecErrors([SourceError(1, 1, "", f"the config {said}; it must be a mapping such as `name: my-agent`")])
    spec: AgentSpec | None = None
    faults: list[Fault] = [(path, LITERAL_KEY) for path in keys_in(value)]
    try:
        spec = AgentSpec.model_validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        faults += [(fault["loc"], sentence(AgentSpec, fault)) for fault in error.errors()]
    faults += rules(_draft(_without(value, [path for path, _ in faults])))
    if faults or spec is None:
        raise SpecErrors([_located(document, path, message) for path, message in dict.fromkeys(faults)])
    return spec


def _located(document: Document, path: Sequence[str | int], message: str) -> SourceError:
    place, known = document.place(path)
    return SourceError(place.line, place.column, dotted(known), message)


def _without(value: dict[str, Any], paths: Sequence[Sequence[str | int]]) -> dict[str, Any]:
    """A copy in which the values with faults have given way to their defaults, so that one fault hides no other."""
    copy: dict[str, Any] = json.loads(json.dumps(value))
    for path in paths:
        holder: Any = copy
        for part in path[:-1]:
            holder = holder.get(part) if isinstance(holder, dict) else None
        if isinstance(holder, dict) and path and holder.pop(path[-1], None) is not None and path[-1] == "api_key":
            holder["api_key"] = "secret:GIVEN"
    return copy


def _draft(value: Mapping[str, Any]) -> Draft:
    parts: dict[str, Any] = {}
    for part in fields(Draft):
        info = AgentSpec.model_fields[part.name]
        adapter: TypeAdapter[Any] = TypeAdapter(info.annotation)  # type: ignore[arg-type]  # an annotation is a type
        try:
            parts[part.name] = adapter.validate_python(value[part.name]) if part.name in value else info.default
        except ValidationError:
            parts[part.name] = None
    return Draft(**{name: part for name, part in parts.items() if part is not PydanticUndefined})


def spec_digest(spec: AgentSpec) -> str:
    """SHA-256 (hex) of the canonical JSON: what a result refers to. Two texts that mean the same have one digest."""
    canonical = json.dumps(spec.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def offered_tools(spec: AgentSpec) -> tuple[str, ...]:
    """The names offered to the model, which are also the only ones that are carried out."""
    if not isinstance(spec.tools, str):
        return spec.tools
    more = ("view_hint",) if spec.hint is HintMode.ON_DEMAND else ()
    return (*PRESETS[spec.tools], *more)
