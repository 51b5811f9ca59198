"""Room: portal.nodes. How a node's state may move: one table, and the only function that writes it."""

from collections.abc import Mapping

from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from portal.core.errors import Conflict, Plain
from portal.nodes.models import Node, NodeState

MOVES: Mapping[NodeState, frozenset[NodeState]] = {
    NodeState.OFFLINE: frozenset({NodeState.ONLINE}),
    NodeState.ONLINE: frozenset({NodeState.DRAINING, NodeState.OFFLINE, NodeState.LOST}),
    NodeState.DRAINING: frozenset({NodeState.ONLINE, NodeState.OFFLINE, NodeState.LOST}),
    NodeState.LOST: frozenset({NodeState.ONLINE, NodeState.DRAINING, NodeState.OFFLINE}),
}


class NodeStateRefused(Conflict):
    """The table has no such move, or somebody else moved the node first."""

    code = "node_state_refused"
    template = _("Node {node} is {state}; it can't become {wanted} from there.")


def node_state_move(
    *, node: Node, to: NodeState, code: str = "", facts: Mapping[str, Plain] = {}, seen: bool = False
) -> None:
    """Move `node` (row and object) to state `to`, saying why in `code` and `facts`; `seen` notes that it answered.

    Raises NodeStateRefused when the table forbids it or the row has moved meanwhile.
    """
    before = NodeState(node.state)
    now = timezone.now()
    changed = {"state": to, "state_code": code, "state_facts": dict(facts), "state_changed_at": now}
    if seen:
        changed["last_seen_at"] = now
    moved = to in MOVES[before] and Node.objects.filter(pk=node.pk, state=before).update(**changed)
    if not moved:
        raise NodeStateRefused(node=node.name, state=str(before.label), wanted=str(to.label))
    for name, value in changed.items():
        setattr(node, name, value)
