"""Room: portal.nodes. What pages may only ask for, because it needs the vault: a worker does it soon."""

from django.db import transaction

from portal.accounts.models import User
from portal.core.audit import audit_write
from portal.nodes.jobs import node_doctor_job
from portal.nodes.models import Node


def node_doctor_ask(*, node: Node, by: User) -> None:
    """Have a worker examine the node; `doctor_report_of(node)` and `node.doctor_at` show it when it is done."""
    with transaction.atomic():
        audit_write(verb="doctor_asked", thing=node, by=by, team_id=node.owner_id)
        transaction.on_commit(lambda: node_doctor_job.delay(node.pk))
