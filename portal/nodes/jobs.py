"""Room: portal.nodes. Background jobs: doors like views, a line or two each."""

from celery import shared_task

from portal.nodes.doctor import node_doctor
from portal.nodes.models import Node


@shared_task(name="portal.nodes.jobs.node_doctor_job")
def node_doctor_job(node_id: int) -> None:
    """Examine one node."""
    node = Node.objects.filter(pk=node_id).first()
    if node is not None:
        node_doctor(node=node)
