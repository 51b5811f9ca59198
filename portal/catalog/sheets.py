"""Room: portal.catalog. What a task page says, the same whether a version was brought or only facts were published."""

from dataclasses import dataclass

from evaluator.manifest import Manifest, ScoreRule
from portal.catalog.models import Task, TaskVersion
from portal.catalog.published import PublishedTask, published_tasks


@dataclass(frozen=True)
class MachineFact:
    """One role of the task's nodes. Memory in GB; None where nobody published it."""

    role: str
    count: int
    gpus: int
    gpu_memory_gb: float
    cpus: int | None
    memory_gb: float | None
    internet: bool


@dataclass(frozen=True)
class OutputFact:
    """One file that is scored."""

    path: str
    max_mb: float
    required: bool


@dataclass(frozen=True)
class TaskSheet:
    """Facts of a task. Limits of a run in hours and steps; `score` is None for tasks without a version; `anchors` are
    raw metric values as published.
    """

    deliverable: str
    hours: float
    steps: int
    disk_gb: float | None
    machines: tuple[MachineFact, ...]
    evaluations_by_agent: int
    evaluations_final: int
    feedback: str
    metric: str
    score: ScoreRule | None
    anchors: tuple[tuple[str, float], ...]
    outputs: tuple[OutputFact, ...]
    has_hint: bool
    hint_penalty: float | None
    source: str
    source_url: str
    licence: str
    blocked: tuple[str, ...]
    note: str

    @property
    def gpus(self) -> int:
        """Over all machines."""
        return sum(machine.gpus * machine.count for machine in self.machines)

    @property
    def internet(self) -> bool:
        return any(machine.internet for machine in self.machines)


def sheet_of_version(version: TaskVersion, score: ScoreRule) -> TaskSheet:
    """From the manifest of a version, with the scoring that holds now."""
    manifest = Manifest.model_validate(version.manifest)
    return TaskSheet(
        deliverable=", ".join(output.path for output in manifest.outputs),
        hours=manifest.limits.hours,
        steps=manifest.limits.steps,
        disk_gb=manifest.limits.disk_gb,
        machines=_machines(manifest),
        evaluations_by_agent=manifest.evaluations.by_agent,
        evaluations_final=manifest.evaluations.final,
        feedback=manifest.evaluations.feedback.value,
        metric=", ".join(score.metrics),
        score=score,
        anchors=(),
        outputs=tuple(OutputFact(o.path, o.max_mb, o.required) for o in manifest.outputs),
        has_hint=version.has_hint,
        hint_penalty=manifest.hint.penalty if manifest.hint else None,
        source=manifest.source.paper,
        source_url=manifest.source.url or "",
        licence=manifest.source.licence,
        blocked=manifest.block.domains,
        note=version.task.contamination_note,
    )


def sheet_of_published(task: Task) -> TaskSheet:
    """From what the authors published of a task whose data nobody brought yet."""
    facts = PublishedTask.model_validate(task.facts)
    common = published_tasks()
    gpus, size = (facts.gpus_80gb, 80) if facts.gpus_80gb else (facts.gpus_24gb, 24 if facts.gpus_24gb else 0)
    # Eight GPUs are one server; sixteen are two.
    servers = max(1, -(-gpus // 8))
    machine = MachineFact("main", servers, gpus // servers, size, None, None, facts.internet)
    return TaskSheet(
        deliverable=facts.deliverable,
        hours=facts.hours_config,
        steps=common.max_steps,
        disk_gb=None,
        machines=(machine,),
        evaluations_by_agent=common.evaluations.by_agent,
        evaluations_final=common.evaluations.final,
        feedback="metrics",
        metric=facts.metric or "",
        score=None,
        anchors=tuple(facts.anchors.items()),
        outputs=(),
        has_hint=facts.has_hint,
        hint_penalty=None,
        source=facts.source,
        source_url="",
        licence="",
        blocked=(),
        note=common.notes.get(str(facts.id), ""),
    )


def _machines(manifest: Manifest) -> tuple[MachineFact, ...]:
    return tuple(
        MachineFact(n.role, n.count, n.gpus, n.gpu_memory_gb, n.cpus, n.memory_gb, n.internet) for n in manifest.nodes
    )
