"""Room: runs. The machines of a run over its time: CPU and memory as they were sampled, drawn on one time axis."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from portal.core import charts
from portal.nodes.models import Lease, MachineSample, Node
from runs.models.run import Run

MOST_POINTS = 240


@dataclass(frozen=True)
class Series:
    """One measure over time. `top` is the highest value of its axis."""

    name: str
    unit: str
    top: str
    middle: str
    path: str


@dataclass(frozen=True)
class MachineView:
    """One node of the run's lease."""

    name: str
    cpus: int
    memory_gb: int
    gpus: int
    series: tuple[Series, ...]


def machine_views(run: Run) -> tuple[MachineView, ...]:
    """Every node the run held, with its samples between the run's start and its end."""
    if run.started_at is None:
        return ()
    leases = Lease.objects.filter(run_key=run.key).select_related("node").order_by("position", "id")
    nodes = {lease.node_id: lease.node for lease in leases}
    end = run.ended_at or timezone.now()
    views = (_machine(node, run.started_at, end) for node in nodes.values())
    return tuple(view for view in views if view.series)


def _machine(node: Node, start: datetime, end: datetime) -> MachineView:
    samples = list(MachineSample.objects.filter(node=node, at__gte=start, at__lte=end).order_by("at"))
    thin = samples[:: max(1, len(samples) // MOST_POINTS)]
    memory_top = max((s.memory_total_mb or 0 for s in thin), default=0) / 1024
    kinds = (
        ("CPU", "%", 100.0, [(s.at, s.cpu_percent) for s in thin]),
        ("memory", "GB", memory_top, [(s.at, (s.memory_used_mb or 0) / 1024) for s in thin]),
    )
    series = tuple(_series(name, unit, top, points, start, end) for name, unit, top, points in kinds if points)
    return MachineView(node.name, node.cpus, node.memory_gb, node.gpus, series)


def _series(
    name: str, unit: str, top: float, points: Sequence[tuple[datetime, float | None]], start: datetime, end: datetime
) -> Series:
    span = max(1.0, (end - start).total_seconds())
    placed = [
        (charts.place((at - start).total_seconds(), 0, span), 100 - charts.place(value, 0, top or 1.0))
        for at, value in points
        if value is not None
    ]
    return Series(name, unit, f"{top:.3g}", f"{top / 2:.3g}", charts.polyline(placed))
