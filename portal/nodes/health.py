"""Room: portal.nodes. What contact with a node, or its absence, does to its row; and who is told."""

import contextlib
from collections.abc import Mapping, Sequence
from datetime import timedelta

from django.db import transaction
from django.utils import timezone
from pydantic import JsonValue

from gymnode.errors import HostKeyChanged, HostKeyUnknown, NodeError, ProtocolMismatch
from portal.accounts.notices import notice_send_to_staff
from portal.nodes.models import Level, Node, NodeState
from portal.nodes.sinks import Change, change_put
from portal.nodes.states import NodeStateRefused, node_state_move

SEEN_EVERY = timedelta(seconds=10)
BEFORE = "before"


def failure_code(problem: NodeError) -> str:
    """The machine's name of what stands between us and the node."""
    kinds = ((HostKeyChanged, "host_key_changed"), (HostKeyUnknown, "host_key_unknown"), (ProtocolMismatch, "protocol"))
    return next((code for kind, code in kinds if isinstance(problem, kind)), "unreachable")


def node_lost(*, node: Node, code: str) -> bool:
    """`node` is lost as far as we can tell; False when it isn't in service, or is lost already. Those who run the site
    are told, and the sinks, so that runs on it say so too.
    """
    if node.state not in {NodeState.ONLINE, NodeState.DRAINING}:
        return False
    try:
        with transaction.atomic():
            node_state_move(node=node, to=NodeState.LOST, code=code, facts={BEFORE: str(node.state)})
            notice_send_to_staff(code="node_lost", facts={"node": node.name}, address="/nodes/")
            # In the transaction: a sink that fails undoes the move, and the loss is noticed again.
            change_put(Change("node_lost", node.pk, "", "", timezone.now()))
    except NodeStateRefused:
        return False
    return True


def node_answered(*, node: Node) -> None:
    """`node` answered just now: a lost one is back in the state it was lost from, and the sinks are told."""
    if node.state != NodeState.LOST:
        if node.last_seen_at is None or timezone.now() - node.last_seen_at > SEEN_EVERY:
            node.last_seen_at = timezone.now()
            node.save(update_fields=["last_seen_at"])
        return
    before = node.state_facts.get(BEFORE)
    to = NodeState.DRAINING if before == NodeState.DRAINING else NodeState.ONLINE
    with contextlib.suppress(NodeStateRefused), transaction.atomic():
        node_state_move(node=node, to=to, seen=True)
        change_put(Change("node_back", node.pk, "", "", timezone.now()))


def node_greeted(*, node: Node, hello: Mapping[str, JsonValue]) -> None:
    """Keep what the node says of itself; its level is the best that is available and allowed there."""
    node.hello = dict(hello)
    node.boot_id = str(hello.get("boot_id", ""))[:80]
    node.level = best_level(hello.get("levels"), plain_allowed=node.plain_allowed)
    node.save(update_fields=["hello", "boot_id", "level"])


def best_level(levels: JsonValue, *, plain_allowed: bool) -> str:
    """The best isolation level of gymd's list; empty when a run may not be opened there at all."""
    rows: Sequence[JsonValue] = levels if isinstance(levels, list) else []
    available = {str(row["name"]) for row in rows if isinstance(row, dict) and row.get("available")}
    allowed = [level for level in Level if level != Level.PLAIN or plain_allowed]
    return next((level.value for level in allowed if level.value in available), "")
