"""The machine itself as a node of the site: its row, its pinned host key, its key from the instance's own files."""

import os
from pathlib import Path

from django.conf import settings

from portal.core.secrets import Secret
from portal.nodes.models import Node, NodeState
from portal.nodes.services import NodeFacts, node_add, node_state_set
from portal.settings import env

NAME = "local"


def local_node_ensure(keys: Path) -> Node:
    """The node `local`, online, at the port this start of the site chose."""
    port = env.integer("NODE_PORT")
    node = Node.objects.filter(name=NAME).first()
    if node is None:
        node = _add(keys, port)
    if node.port != port:
        Node.objects.filter(pk=node.pk).update(port=port)
        node.port = port
    if node.state != NodeState.ONLINE:
        node_state_set(node=node, to=NodeState.ONLINE, by=None)
    return node


def _add(keys: Path, port: int) -> Node:
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    cpus = os.cpu_count() or 1
    facts = NodeFacts(
        name=NAME,
        host="127.0.0.1",
        user="innovatorbench",
        port=port,
        task_env=str(settings.TASK_ENV),
        cpus=cpus,
        memory_gb=max(1, pages * size // 2**30),
        capacity=max(1, cpus),
    )
    key = Secret((keys / "node_client").read_text())
    return node_add(facts=facts, by=None, private_key=key, host_key=(keys / "node_host.pub").read_text())
