"""Room: evaluator (pure, visible outside). `task.yaml`: reading it with every fault in one list, and computing scores.

May import: pydantic, PyYAML, `evaluator.{yamlcore,formula,fields}`. No secrets, no files, no clock.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError
from pydantic_core import ErrorDetails

from evaluator.fields import (
    SLUG,
    Asset,
    Author,
    Block,
    Build,
    Direction,
    Env,
    EnvKind,
    Evaluations,
    Flags,
    Hint,
    Limits,
    Name,
    NodeNeed,
    Output,
    Part,
    RelPath,
    SandboxRule,
    ScoreRule,
    Service,
    Size,
    Slug,
    SnapshotRule,
    Solvers,
    Source,
    Text,
    said,
)
from evaluator.formula import FormulaError, curve_value, formula_names, formula_value
from evaluator.yamlcore import Document, Fault, Faults, Where, dotted, read_yaml

SERVICES = ("model", "vision", "audio", "search", "browse")
GATEWAY_MISSING = (
    "this task asks for {what} through the portal's metered gateway, which comes in a later release; "
    "until then a task that asks for one is refused"
)
LATER = "this task asks for {what}, which comes in a later release; until then a task that asks for it is refused"
_STEP = Decimal("0.000001")


class Manifest(Part):
    """One task version's manifest, as evaluation.md of the design describes it."""

    schema_: Annotated[int, Field(alias="schema", ge=1, le=1), said("The version of this format.")]
    id: Annotated[
        str,
        Field(pattern=rf"^({SLUG}/)?{SLUG}$", max_length=120),
        said("What stands in addresses; an owner's name and a slash may stand before it."),
    ]
    title: Annotated[Text, said("As boards and pages show it.")]
    domain: Annotated[Slug, said("One of the catalog's domains, as in loss-design.")]
    authors: Annotated[tuple[Author, ...], Field(min_length=1, strict=False), said("Who made the task.")]
    source: Annotated[Source, said("The work the task was made from.")]
    nodes: Annotated[
        tuple[NodeNeed, ...],
        Field(min_length=1, strict=False),
        said("The machines that a run gets; the scheduler honours each figure."),
    ] = (NodeNeed(),)
    storage: Annotated[
        Literal["shared", "per_node"],
        said("Whether several nodes share one workspace (refused in this release) or have one each."),
    ] = "per_node"
    assets: tuple[Asset, ...] = Field(
        default=(),
        strict=False,
        description="Large files beside the package, mounted read-only; refused in this release.",
    )
    env: Annotated[Env, said("The Python environment of the workspace; only `system` in this release.")] = Env()
    services: dict[str, Service] = Field(
        default_factory=dict,
        description="What a run may call through the portal, with a budget; refused in this release.",
    )
    secrets: tuple[Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")], ...] = Field(
        default=(), strict=False, description="Names that whoever runs the task must provide; refused in this release."
    )
    limits: Annotated[Limits, said("What a run may use; a config may only lower it.")] = Limits()
    snapshot: Annotated[SnapshotRule, said("What snapshots of the workspace leave out, and how large they may be.")] = (
        SnapshotRule()
    )
    evaluations: Annotated[Evaluations, said("How often outputs are scored, and what the agent is told.")] = (
        Evaluations()
    )
    outputs: Annotated[
        tuple[Output, ...],
        Field(min_length=1, max_length=200, strict=False),
        said("The files that are collected and scored, and nothing else."),
    ]
    score: ScoreRule
    hint: Annotated[Hint | None, said("What the hint costs; only with a hint.md.")] = None
    sandbox: SandboxRule = SandboxRule()
    solvers: Annotated[
        Solvers | None, said("Submitted code, each world in a sandbox of its own beside the scoring one.")
    ] = None
    block: Annotated[Block, said("What a run may not read.")] = Block()
    flags: Annotated[Flags, said("What boards must say of the task.")] = Flags()
    size: Annotated[Size, Field(strict=False), said("A small build is for tests and never ranked.")] = Size.FULL
    canary: Annotated[
        Annotated[str, Field(min_length=16, max_length=200)] | None,
        said("A random string in each hidden program, by which a leak is recognised."),
    ] = None
    build: Build = Build()

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, no blanks."""
        data = self.model_dump(mode="json", by_alias=True)
        return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    @property
    def metric_names(self) -> tuple[str, ...]:
        """Every metric that a valid result must have: no more, no less."""
        return tuple(self.score.metrics)


def manifest_parse(text: str) -> Manifest:
    """Read `task.yaml`. Raises `Faults`: every fault at once, each with its line, field, and what to do."""
    document = read_yaml(text)
    if not isinstance(document.data, dict):
        raise Faults([Fault("a manifest is a mapping of fields, one a line", "", 1)])
    faults: list[Fault] = []
    manifest: Manifest | None = None
    try:
        manifest = Manifest.model_validate(document.data)
    except ValidationError as error:
        details = error.errors(include_url=False)
        faults = [_fault(one, document) for one in details if not _follows(one, details)]
    faults += _cross_faults(manifest, document) if manifest else _raw_formula_faults(document)
    if faults or manifest is None:
        raise Faults(sorted(faults, key=lambda fault: fault.line))
    return manifest


def manifest_from_json(text: str | bytes) -> Manifest:
    """Read what `Manifest.to_json` wrote. Raises `Faults`."""
    try:
        return Manifest.model_validate(json.loads(text))
    except (ValidationError, ValueError, RecursionError) as error:
        raise Faults([Fault(f"not a manifest of this release: {error}", "", 0, "manifest.json")]) from error


def manifest_refusals(manifest: Manifest) -> list[Fault]:
    """What this release can't run though the manifest is well formed: nothing it asks for is left out in silence."""
    several = sum(need.count for need in manifest.nodes) > 1
    asked = [
        ("a judge", "sandbox.judge", GATEWAY_MISSING, bool(manifest.sandbox.judge)),
        *((f"the service {name!r}", f"services.{name}", GATEWAY_MISSING, True) for name in manifest.services),
        ("assets beside the package", "assets", LATER, bool(manifest.assets)),
        ("secrets of the runner", "secrets", LATER, bool(manifest.secrets)),
        (f"an environment of kind {manifest.env.kind}", "env.kind", LATER, manifest.env.kind is not EnvKind.SYSTEM),
        ("one workspace for several nodes", "storage", LATER, several and manifest.storage == "shared"),
        *(("the internet", f"nodes[{at}].internet", LATER, need.internet) for at, need in enumerate(manifest.nodes)),
    ]
    return [Fault(sentence.format(what=what), where, 0, "task.yaml") for what, where, sentence, is_so in asked if is_so]


def _follows(one: ErrorDetails, others: list[ErrorDetails]) -> bool:
    """Whether a "too short" only says again that the items below it have faults."""
    place = one["loc"]
    return one["type"] == "too_short" and any(other["loc"][: len(place)] == place != other["loc"] for other in others)


def _fault(details: ErrorDetails, document: Document) -> Fault:
    where: Where = tuple(part for part in details["loc"] if part != "[key]")
    kind = details["type"]
    if kind == "extra_forbidden":
        message = f"unknown key; known here: {', '.join(_known(where[:-1])) or 'none'}"
    elif kind == "missing":
        message = "missing; add it"
    else:
        message = details["msg"].removeprefix("Value error, ")
        shown = repr(details["input"])
        message += (
            f", not {shown[:80]}" if not isinstance(details["input"], dict | list) and shown not in message else ""
        )
    return Fault(message, dotted(where), document.line(where), "task.yaml")


def _known(where: Where) -> list[str]:
    """The field names a mapping at `where` may have."""
    schema = Manifest.model_json_schema(by_alias=True)
    node = schema
    for part in where:
        node = _resolve(node, schema)
        if isinstance(part, int):
            node = node.get("items", {})
        else:
            node = node.get("properties", {}).get(part) or node.get("additionalProperties") or {}
    return sorted(_resolve(node, schema).get("properties", {}))


def _resolve(node: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    while True:
        options = node.get("anyOf")
        if isinstance(options, list):
            node = next((option for option in options if option.get("type") != "null"), {})
        reference = node.get("$ref")
        if not isinstance(reference, str):
            return node
        node = schema["$defs"][reference.rsplit("/", 1)[-1]]


def _cross_faults(manifest: Manifest, document: Document) -> list[Fault]:
    found: list[tuple[Where, str]] = []
    found += _twice("outputs", "path", [output.path for output in manifest.outputs])
    found += _twice("nodes", "role", [node.role for node in manifest.nodes])
    found += _twice("assets", "name", [asset.name for asset in manifest.assets])
    for name in manifest.services:
        if name not in SERVICES:
            found.append((("services", name), f"unknown service; known: {', '.join(SERVICES)}"))
    if manifest.env.kind is EnvKind.CONDA and manifest.env.asset not in {asset.name for asset in manifest.assets}:
        found.append((("env",), "kind conda needs `asset:`, the name of one of the assets"))
    if manifest.env.kind is EnvKind.LOCK and manifest.env.lock is None:
        found.append((("env",), "kind lock needs `lock:`, the path of a requirements file in the workspace"))
    if manifest.solvers and manifest.solvers.entry not in {output.path for output in manifest.outputs}:
        found.append((("solvers", "entry"), f"{manifest.solvers.entry} isn't among the outputs; declare it there"))
    found += _score_faults(manifest.score)
    return [Fault(message, dotted(where), document.line(where), "task.yaml") for where, message in found]


def _twice(field: str, key: str, values: list[str]) -> list[tuple[Where, str]]:
    folded = [value.casefold() for value in values]
    return [
        ((field, index, key), f"{values[index]!r} stands twice; each {key} must be its own")
        for index in range(len(values))
        if folded[index] in folded[:index]
    ]


def _score_faults(score: ScoreRule) -> list[tuple[Where, str]]:
    found: list[tuple[Where, str]] = []
    for name, curve in score.curves.items():
        where: Where = ("score", "curves", name, "metric")
        if name in score.metrics:
            found.append((("score", "curves", name), "a curve and a metric can't have the same name; rename the curve"))
        if curve.metric not in score.metrics:
            found.append((where, f"{curve.metric!r} isn't declared under metrics: {', '.join(score.metrics)}"))
    try:
        used = formula_names(score.formula, {*score.metrics, *score.curves})
    except FormulaError as error:
        return [*found, (("score", "formula"), str(error))]
    scored = used | {curve.metric for name, curve in score.curves.items() if name in used}
    found += [
        (("score", "formula"), f"{name} has direction none (shown, never scored) but the score uses it")
        for name, metric in score.metrics.items()
        if metric.direction is Direction.NONE and name in scored
    ]
    found += [
        (("score", "curves", name), "the formula doesn't use this curve; use it or take it out")
        for name in score.curves
        if name not in used
    ]
    return found


def _raw_formula_faults(document: Document) -> list[Fault]:
    """The formula's own faults, though another field kept the manifest from being built."""
    score = document.data.get("score")
    try:
        rule = ScoreRule.model_validate(score)
    except ValidationError:
        return []
    return [Fault(text, dotted(where), document.line(where), "task.yaml") for where, text in _score_faults(rule)]


def score_compute(score: ScoreRule, metrics: Mapping[str, float]) -> Decimal:
    """The score of valid metrics: formula clamped to 0..100, squeezed above `format_credit`, 6 decimals.

    Raises `FormulaError` where a declared metric is missing or the formula has no value.
    """
    missing = [name for name in score.metrics if name not in metrics]
    if missing:
        raise FormulaError(f"metrics missing: {', '.join(missing)}")
    values = {name: Decimal(repr(float(metrics[name]))) for name in score.metrics}
    for name, curve in score.curves.items():
        points = [(Decimal(repr(x)), Decimal(repr(y))) for x, y in curve.points]
        values[name] = curve_value(points, values[curve.metric])
    raw = min(max(formula_value(score.formula, values), Decimal(0)), Decimal(100))
    credit = Decimal(repr(score.format_credit))
    return (credit + raw * (100 - credit) / 100).quantize(_STEP, ROUND_HALF_EVEN)


__all__ = [
    "Fault",
    "Faults",
    "FormulaError",
    "Manifest",
    "Name",
    "RelPath",
    "ScoreRule",
    "manifest_from_json",
    "manifest_parse",
    "manifest_refusals",
    "score_compute",
]
