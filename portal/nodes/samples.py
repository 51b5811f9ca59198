"""Room: portal.nodes. Machine samples: what gymd says of its machine, as rows of a series by node and time."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from django.utils import timezone
from pydantic import BaseModel, ConfigDict, JsonValue

from portal.nodes.models import MachineSample, Node

KEPT = timedelta(days=30)


class _Status(BaseModel):
    """The part of `GET /v1/status` that is kept. Whatever another release adds is left out."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    cpu: dict[str, float] = {}
    memory: dict[str, int] = {}
    disk: dict[str, int] = {}
    load: tuple[float, ...] = ()
    gpus: tuple[dict[str, JsonValue], ...] = ()


def sample_store(*, node: Node, status: Mapping[str, JsonValue], at: datetime | None = None) -> None:
    """Keep one reading; a second one of the same moment is dropped. `at` is our own clock: nodes' clocks may be off."""
    read = _Status.model_validate(status)
    memory, disk = read.memory, read.disk
    sample = MachineSample(
        node=node,
        at=at or timezone.now(),
        cpu_percent=read.cpu.get("utilisation"),
        load1=read.load[0] if read.load else None,
        memory_used_mb=_used(memory.get("total_mb"), memory.get("available_mb")),
        memory_total_mb=memory.get("total_mb"),
        disk_used_gb=_gb(_used(disk.get("total_mb"), disk.get("free_mb"))),
        disk_total_gb=_gb(disk.get("total_mb")),
        gpus=list(read.gpus),
    )
    MachineSample.objects.bulk_create([sample], ignore_conflicts=True)


def samples_prune() -> int:
    """Forget samples older than a month; returns how many."""
    deleted, _by_model = MachineSample.objects.filter(at__lt=timezone.now() - KEPT).delete()
    return deleted


def _used(total: int | None, free: int | None) -> int | None:
    return None if total is None or free is None else max(0, total - free)


def _gb(megabytes: int | None) -> float | None:
    return None if megabytes is None else round(megabytes / 1024, 2)
