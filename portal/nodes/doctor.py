"""Room: portal.nodes. The doctor: can the node be entered, what does it lack, what did runs leave behind there.

Needs the node's key, so it runs in workers and commands; pages ask for it and read what was found.
"""

from collections.abc import Callable

from django.utils import timezone
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from gymnode.errors import HostKeyUnknown, NodeError
from gymnode.transport.ssh import SshTarget, ssh_doctor
from portal.nodes.health import best_level, failure_code
from portal.nodes.links import target_of
from portal.nodes.models import Node
from portal.nodes.services import node_host_key_offered

Examine = Callable[[SshTarget], str]


class _Part(BaseModel):
    """Frozen; what another release adds is left out."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class LevelReport(_Part):
    name: str
    available: bool
    reason: str = ""


class FaultReport(_Part):
    """Something the node lacks, why that matters, and the exact remedy."""

    lacks: str
    why: str = ""
    remedy: str = ""


class DoctorReport(_Part):
    """`code` is `ok`, or what stood in the way (`unreachable`, `host_key_unknown`, `host_key_changed`, `protocol`,
    `unreadable`), then `message` says more and the rest is empty.
    """

    code: str = "ok"
    message: str = ""
    best: str = ""
    python: str = ""
    levels: tuple[LevelReport, ...] = ()
    faults: tuple[FaultReport, ...] = ()
    leftovers: tuple[dict[str, JsonValue], ...] = ()

    @property
    def healthy(self) -> bool:
        """Entered, at the best level, nothing missing, nothing left over."""
        return self.code == "ok" and not self.faults and not self.leftovers


def node_doctor(*, node: Node, examine: Examine = ssh_doctor) -> DoctorReport:
    """Enter the node, examine it, keep the report on its row. A host key that isn't pinned is noted for the trust
    button. Raises VaultClosed in a process without the vault's identity.
    """
    target = target_of(node)
    try:
        report = DoctorReport.model_validate_json(examine(target))
    except HostKeyUnknown as problem:
        if not node.jumps:
            node_host_key_offered(node=node, host_key=problem.presented)
        report = DoctorReport(code=failure_code(problem), message=str(problem))
    except NodeError as problem:
        report = DoctorReport(code=failure_code(problem), message=str(problem))
    except ValidationError:
        report = DoctorReport(code="unreadable", message="the node's answer is no doctor's report")
    levels: JsonValue = [level.model_dump() for level in report.levels]
    node.level = best_level(levels, plain_allowed=node.plain_allowed) or node.level
    node.doctor, node.doctor_at = report.model_dump(mode="json"), timezone.now()
    node.save(update_fields=["level", "doctor", "doctor_at"])
    return report


def doctor_report_of(node: Node) -> DoctorReport | None:
    """What was found last, None before the first time."""
    return DoctorReport.model_validate(node.doctor) if node.doctor else None
