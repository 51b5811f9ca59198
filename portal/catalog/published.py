"""Room: portal.catalog. What the authors of InnovatorBench published, read from this room's data files. Pure.

Shown everywhere as reported by the paper, single run, not verified here.
"""

from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field

DATA = Path(__file__).resolve().parent / "data"


class Fact(BaseModel):
    """Base: frozen, nothing unknown; null stands for what was not published."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class PublishedEvaluations(Fact):
    by_agent: int
    final: int


class PublishedTask(Fact):
    """Public facts on one of the 20 tasks. Hours are limits of a run; anchors are raw metric values."""

    id: int
    domain: str
    short: str
    title: str
    source: str
    deliverable: str
    metric: str | None
    anchors: dict[str, float]
    hours_paper: float
    hours_config: float
    gpus_80gb: int
    gpus_24gb: int = 0
    internet: bool
    has_hint: bool

    @property
    def slug(self) -> str:
        return f"innovatorbench-{self.id:02}"


class PublishedTasks(Fact):
    about: str
    board: str
    evaluations: PublishedEvaluations
    max_steps: int
    tasks: tuple[PublishedTask, ...]
    notes: dict[str, str]


class PublishedDomain(Fact):
    id: str
    name: str
    short: str
    tasks: tuple[int, ...]


class PublishedResult(Fact):
    """One cell of the paper's tables. Score 0 to 100, wall-clock hours, US dollars."""

    task: int
    final: Decimal
    best: Decimal
    hours: Decimal
    usd: Decimal


class PublishedMean(Fact):
    """As printed by the source, not as computed."""

    final: Decimal
    best: Decimal
    hours: Decimal | None = None
    usd: Decimal | None = None


class PublishedEntry(Fact):
    agent: str
    model: str
    hint: str
    source: str
    results: tuple[PublishedResult, ...]
    published_mean: PublishedMean
    note: str = ""


class PublishedCurves(Fact):
    """Per task [hours, score or null] of each evaluation of one entry."""

    entry: str
    unit: str
    tasks: dict[int, tuple[tuple[Decimal, Decimal | None], ...]]
    all_zero: tuple[int, ...]
    missing: tuple[int, ...]
    note: str


class PublishedSaturation(Fact):
    hours_to_best_paper: str
    paperbench_hours: float
    ratio_stated: float


class PublishedResults(Fact):
    about: str
    venue: str
    links: tuple[str, ...]
    board: str
    domains: tuple[PublishedDomain, ...]
    columns: dict[str, str]
    entries: tuple[PublishedEntry, ...]
    submission_curves: PublishedCurves
    known_inconsistencies: tuple[str, ...]
    remarks: dict[str, str] = Field(default_factory=dict)
    saturation: PublishedSaturation


Data = TypeVar("Data", PublishedTasks, PublishedResults)


@cache
def published_tasks() -> PublishedTasks:
    """The 20 tasks."""
    return _read(PublishedTasks, "innovatorbench_tasks.json")


@cache
def published_results() -> PublishedResults:
    """The rows of the paper's tables, exact as decimals."""
    return _read(PublishedResults, "innovatorbench_published.json")


def _read(kind: type[Data], name: str) -> Data:
    return kind.model_validate_json((DATA / name).read_text())
