"""Room: evaluator (pure). The fields of `task.yaml` as frozen values. May import: pydantic, `evaluator.formula`.

Strict types (no string becomes a number, no number a string) and no unknown keys. What concerns several fields at
once (formula names, duplicate outputs) is checked in `evaluator.manifest`.
"""

from __future__ import annotations

import re
from enum import StrEnum
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

SLUG = r"[a-z0-9]+(-[a-z0-9]+)*"
_WINDOWS = re.compile(r"[<>:\"|?*\\\x00-\x1f\x7f]")


class Part(BaseModel):
    """Base of all parts: frozen, strict, nothing unknown."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def _relative(path: str) -> str:
    parts = path.split("/")
    if path.startswith("/") or any(part in {"", ".", ".."} for part in parts):
        raise ValueError(f"{path!r} must be a path inside the package: no leading /, no .. and no empty part")
    if _WINDOWS.search(path) or any(len(part.encode()) > 200 for part in parts) or len(parts) > 12:
        raise ValueError(f"{path!r} holds a character, a depth or a length that not every file system can keep")
    return path


def _https(url: str) -> str:
    if not url.startswith(("https://", "http://")):
        raise ValueError(f"{url!r} must begin with https://")
    return url


RelPath = Annotated[str, AfterValidator(_relative)]
Slug = Annotated[str, Field(pattern=rf"^{SLUG}$", max_length=80)]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=60)]
Text = Annotated[str, Field(min_length=1, max_length=2000)]
Percent = Annotated[float, Field(ge=0, le=100)]
Positive = Annotated[float, Field(gt=0)]


def said(text: str) -> Any:
    """What the docs say of a field."""
    return Field(description=text)


class Author(Part):
    name: Text
    orcid: Annotated[str, Field(pattern=r"^\d{4}-\d{4}-\d{4}-\d{3}[\dX]$")] | None = None


class Source(Part):
    paper: Annotated[Text, said("Its name.")]
    url: Annotated[str, AfterValidator(_https)] | None = None
    licence: Annotated[str, said("Under which its code and data stand.")] = ""
    bibtex: str = ""


class NodeNeed(Part):
    """What one node of the lease must have. Memory in GB, GPU memory in GB per GPU."""

    role: Annotated[Slug, said("How the agent names the node.")] = "main"
    count: Annotated[int, Field(ge=1, le=64), said("How many of this kind.")] = 1
    gpus: Annotated[int, Field(ge=0, le=64)] = 0
    gpu_memory_gb: Annotated[float, Field(ge=0), said("Of each GPU, at least.")] = 0
    memory_gb: Positive = 2
    cpus: Annotated[int, Field(ge=1, le=1024)] = 1
    labels: tuple[Slug, ...] = Field(default=(), strict=False, description="What the node must be labelled with.")
    internet: Annotated[bool, said("Whether the run must reach the internet; refused in this release.")] = False


class Asset(Part):
    name: Slug
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    bytes: Annotated[int, Field(ge=0)]
    source: Annotated[Text, said("Where it can be had from.")]
    mount: Annotated[RelPath, said("Its path in the workspace.")]


class EnvKind(StrEnum):
    SYSTEM = "system"
    LOCK = "lock"
    CONDA = "conda"


class Env(Part):
    kind: Annotated[
        EnvKind,
        Field(strict=False),
        said("The node's own Python, a locked requirements file, or a conda archive among the assets."),
    ] = EnvKind.SYSTEM
    lock: Annotated[RelPath | None, said("The requirements file, by its path in the workspace.")] = None
    asset: Annotated[Slug | None, said("The asset that holds the conda archive.")] = None


class Service(Part):
    """A service that a run may call through the portal, with its budget."""

    usd: Annotated[float, Field(ge=0)] | None = None
    calls: Annotated[int, Field(ge=0)] | None = None
    pinned: str | None = None


class Limits(Part):
    hours: Annotated[float, Field(gt=0, le=24 * 14), said("Working time; waiting for us is not charged.")] = 1
    steps: Annotated[int, Field(ge=1, le=100_000), said("Replies of the model.")] = 300
    disk_gb: Annotated[Positive, said("Of the workspace.")] = 2


class SnapshotRule(Part):
    exclude: tuple[str, ...] = Field(default=(), strict=False)
    max_gb: Positive = 2


class Feedback(StrEnum):
    METRICS = "metrics"
    SCORE = "score"
    PUBLIC_SPLIT = "public_split"
    NONE = "none"


class Evaluations(Part):
    by_agent: Annotated[int, Field(ge=0, le=1000), said("How many the agent may ask for.")] = 3
    final: Annotated[int, Field(ge=0, le=1), said("Whether the outputs are scored when the run ends.")] = 1
    feedback: Annotated[
        Feedback,
        Field(strict=False),
        said("Score and raw metrics, the score alone, those of a public split, or nothing."),
    ] = Feedback.METRICS


class Output(Part):
    """One declared file, by its path in the workspace. Only regular files of at most `max_mb` are collected."""

    path: Annotated[RelPath, said("In the workspace; a regular file.")]
    role: Annotated[Slug, said("The node it is taken from.")] = "main"
    max_mb: Annotated[float, Field(gt=0, le=10_240)] = 10
    required: Annotated[bool, said("Without it the submission is invalid.")] = True


class Direction(StrEnum):
    UP = "up"
    DOWN = "down"
    NONE = "none"


class Metric(Part):
    """`none` = shown, never scored."""

    direction: Annotated[Direction, Field(strict=False)]
    decimals: Annotated[int, Field(ge=0, le=12), said("How many are shown.")] = 4


Point = Annotated[tuple[float, float], Field(strict=False)]


def _rising(points: tuple[tuple[float, float], ...]) -> tuple[tuple[float, float], ...]:
    for (left, _), (right, _) in pairwise(points):
        if right <= left:
            raise ValueError(f"the first number of each point must rise: {left:g} is followed by {right:g}")
    if not all(0 <= share <= 1 for _, share in points):
        raise ValueError("the second number of each point is a share from 0 to 1")
    return points


class Curve(Part):
    metric: Name
    points: Annotated[
        tuple[Point, ...],
        Field(min_length=2, max_length=100, strict=False),
        AfterValidator(_rising),
        said("Pairs of a metric's value and a share from 0 to 1, in rising order; straight lines between."),
    ]


class ScoreRule(Part):
    """How metrics become a score from 0 to 100. `baseline` and `reference` are the scores calibration expects."""

    metrics: Annotated[
        dict[Name, Metric],
        Field(min_length=1, max_length=100),
        said("Every metric the evaluator gives; `none` is shown and never scored."),
    ]
    formula: Annotated[
        str, Field(min_length=1, max_length=1000), said("Of metrics and curves; its value is held to 0 to 100.")
    ]
    curves: dict[Name, Curve] = Field(default_factory=dict, description="A metric's value as a share from 0 to 1.")
    format_credit: Annotated[Percent, said("Points for valid outputs; the rest of the scale is squeezed above it.")] = 0
    baseline: Percent = 0
    reference: Percent = 80
    tolerance: Annotated[Percent, said("How far calibration may be off.")] = 3


class Hint(Part):
    penalty: Annotated[Percent, said("Points off each evaluation after it was seen.")] = 10


class SandboxRule(Part):
    """Limits of the scoring sandbox: memory in MB per process, wall seconds, processes that compute at once."""

    memory_mb: Annotated[int, Field(ge=64, le=1024 * 1024)] = 2048
    seconds: Annotated[int, Field(ge=1, le=24 * 3600)] = 300
    cpus: Annotated[int, Field(ge=1, le=256)] = 1
    scratch_mb: Annotated[int, Field(ge=1, le=64 * 1024), said("What the scoring may write.")] = 256
    network: Literal["none"] = "none"
    judge: Annotated[str | None, said("A pinned model that judges; refused in this release.")] = None


class Solvers(Part):
    """Submitted code, each world in a sandbox of its own beside the scoring one."""

    entry: Annotated[RelPath, said("The output that is run.")]
    runner: Annotated[RelPath, said("The program of the hidden part that runs it, as in evaluation/runner.py.")]
    count: Annotated[int, Field(ge=1, le=64), said("How many worlds at most.")] = 1
    seconds: Annotated[int, Field(ge=1, le=3600), said("Of each world, by the clock.")] = 30
    memory_mb: Annotated[int, Field(ge=32, le=65_536), said("Of each world.")] = 512


class Block(Part):
    domains: tuple[Annotated[str, Field(min_length=3, max_length=300)], ...] = Field(
        default=(), strict=False, description="Addresses that must not be opened: the paper, its code, its answers."
    )


class Flags(Part):
    contaminated: Annotated[bool, said("The answers are known to be in public; every row says so.")] = False


class Size(StrEnum):
    FULL = "full"
    SMALL = "small"


class Build(Part):
    """What a recipe notes about a build: whether its seed is public, the counter of the draw, measured spreads."""

    seed: Annotated[Literal["public", "secret"], said("With a public seed anyone can make the hidden part again.")] = (
        "public"
    )
    counter: Annotated[int, Field(ge=0), said("Which draw it was.")] = 0
    recipe: Annotated[str, said("The program that built it.")] = ""
    notes: tuple[str, ...] = Field(default=(), strict=False)
    spreads: dict[str, float] = Field(default_factory=dict)
    measured: dict[str, Any] = Field(default_factory=dict)
