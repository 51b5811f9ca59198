"""Room: portal.nodes. What the page of one machine shows beside its row: load over the last day, leases, the doctor."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from portal.accounts.permits import Person
from portal.core import charts
from portal.nodes.doctor import DoctorReport, doctor_report_of
from portal.nodes.holders import Hold
from portal.nodes.models import MachineSample
from portal.nodes.selectors import NodeRow, holds_history_for, samples_of

SHOWN = timedelta(hours=24)


@dataclass(frozen=True)
class LoadLine:
    """One measure over the last day; `top` is the highest value of its axis."""

    name: str
    unit: str
    top: str
    path: str


@dataclass(frozen=True)
class NodePage:
    """One machine."""

    row: NodeRow
    loads: tuple[LoadLine, ...]
    history: Sequence[Hold]
    doctor: DoctorReport | None


def node_page(row: NodeRow, user: Person) -> NodePage:
    """The page of the machine of `row`, for `user`."""
    since = timezone.now() - SHOWN
    samples = samples_of(row.node, since=since)
    return NodePage(row, _loads(samples, since), holds_history_for(user, row.node), doctor_report_of(row.node))


def _loads(samples: Sequence[MachineSample], since: datetime) -> tuple[LoadLine, ...]:
    if not samples:
        return ()
    memory_top = max((s.memory_total_mb or 0) / 1024 for s in samples) or 1.0
    kinds = (
        ("CPU", "%", 100.0, [(s.at, s.cpu_percent) for s in samples]),
        ("memory", "GB", memory_top, [(s.at, (s.memory_used_mb or 0) / 1024) for s in samples]),
    )
    return tuple(LoadLine(name, unit, f"{top:.3g}", _path(points, since, top)) for name, unit, top, points in kinds)


def _path(points: Sequence[tuple[datetime, float | None]], since: datetime, top: float) -> str:
    span = SHOWN.total_seconds()
    return charts.polyline(
        (charts.place((at - since).total_seconds(), 0, span), 100 - charts.place(value, 0, top))
        for at, value in points
        if value is not None
    )
