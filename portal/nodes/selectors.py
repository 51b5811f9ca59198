"""Room: portal.nodes. What pages and the API show of machines, their leases and their load."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Prefetch, Q, QuerySet
from django.http import Http404
from django.utils import timezone

from portal.accounts.models import User
from portal.accounts.permits import Person, demand, may
from portal.accounts.roles import Thing, Verb
from portal.accounts.selectors import team_ids_of
from portal.nodes.holders import Hold, holds_for
from portal.nodes.keys import fingerprint
from portal.nodes.models import Lease, MachineSample, Node, NodeState

# Older readings say nothing of now, and looking through a month of them for the newest is slow.
FRESH = timedelta(hours=1)


@dataclass(frozen=True)
class NodeRow:
    """One machine on the nodes page. `leases` are live and only counted, `holds` is what the reader may see of them,
    `sample` is the newest reading of the last hour, `manages` says whether the reader may change it (then address, keys
    and fingerprints may be shown too).
    """

    node: Node
    leases: tuple[Lease, ...]
    holds: tuple[Hold, ...]
    sample: MachineSample | None
    manages: bool
    host_key_fingerprint: str
    offered_fingerprint: str

    @property
    def gpus_free(self) -> int:
        return self.node.gpus - sum(len(lease.gpus) for lease in self.leases)

    @property
    def slots_free(self) -> int:
        return self.node.capacity - len(self.leases)


@dataclass(frozen=True)
class Availability:
    """Over the machines that a team may use and that are online."""

    nodes: int
    slots: int
    slots_free: int
    gpus: int
    gpus_free: int


def nodes_list_for(user: Person) -> QuerySet[Node]:
    """The site's machines (for whoever is signed in), those of one's teams, all for staff; teams' owners loaded."""
    nodes = Node.objects.select_related("owner").order_by("name")
    if not isinstance(user, User) or not user.is_active:
        return nodes.none()
    return nodes if user.is_staff else nodes.filter(Q(owner=None) | Q(owner__in=team_ids_of(user)))


def node_rows_for(user: Person) -> tuple[NodeRow, ...]:
    """Everything the nodes page shows; three queries and two for rights, however many machines."""
    live = Lease.objects.filter(released_at=None).order_by("slot")
    nodes = list(nodes_list_for(user).prefetch_related(Prefetch("leases", queryset=live, to_attr="live")))
    newest = MachineSample.objects.filter(node__in=nodes, at__gt=timezone.now() - FRESH)
    samples = {sample.node_id: sample for sample in newest.order_by("node_id", "-at").distinct("node_id")}
    owned = _owned_by(user)
    holds = holds_for(user, [lease for node in nodes for lease in vars(node)["live"]])
    return tuple(_row(node, samples.get(node.pk), owned, user, holds) for node in nodes)


def node_row_for(user: Person, name: str) -> NodeRow:
    """One machine. Raises Http404 where `user` may not see it."""
    node = node_get_for(user, name)
    live = tuple(Lease.objects.filter(node=node, released_at=None).order_by("slot"))
    sample = MachineSample.objects.filter(node=node, at__gt=timezone.now() - FRESH).order_by("-at").first()
    return NodeRow(
        node=node,
        leases=live,
        holds=tuple(holds_for(user, live).values()),
        sample=sample,
        manages=may(user, node.owner, _thing(node), Verb.MANAGE),
        host_key_fingerprint=fingerprint(node.host_key),
        offered_fingerprint=fingerprint(node.offered_host_key),
    )


def node_get_for(user: Person, name: str, *, need: Verb = Verb.READ) -> Node:
    """The machine `name`. Raises Http404 to whoever may not see it, PermissionDenied to whoever may only see it."""
    node = Node.objects.select_related("owner").filter(name=name).first()
    if node is None:
        raise Http404
    demand(user, node.owner, _thing(node), need)
    return node


def samples_of(node: Node, *, since: datetime, most: int = 400) -> Sequence[MachineSample]:
    """Readings of `node` after `since`, thinned evenly to about `most`, oldest first."""
    rows = list(MachineSample.objects.filter(node=node, at__gt=since).order_by("at"))
    return rows[:: max(1, -(-len(rows) // most))]


def holds_history_for(user: Person, node: Node, *, most: int = 50) -> Sequence[Hold]:
    """Who held `node`, newest first. Of runs that `user` may not know of only those that hold it now are told."""
    newest = Lease.objects.filter(node=node).order_by("-id")[: most * 10]
    holds = holds_for(user, newest).values()
    return [hold for hold in holds if hold.run_key or hold.live][:most]


def availability_for(team_id: int | None) -> Availability:
    """What is free now of the site's machines and those of one team: "expected wait" on the submit page."""
    whose = Q(owner=None) if team_id is None else Q(owner=None) | Q(owner=team_id)
    nodes = {node.pk: node for node in Node.objects.filter(whose, state=NodeState.ONLINE)}
    leases = list(Lease.objects.filter(node__in=nodes, released_at=None))
    slots, gpus = sum(n.capacity for n in nodes.values()), sum(n.gpus for n in nodes.values())
    held = sum(len(lease.gpus) for lease in leases)
    return Availability(len(nodes), slots, slots - len(leases), gpus, gpus - held)


def _thing(node: Node) -> Thing:
    return Thing.SITE_NODE if node.owner_id is None else Thing.TEAM_NODE


def _owned_by(user: Person) -> frozenset[int]:
    """Teams that `user` owns, in one query for the whole page."""
    if not isinstance(user, User):
        return frozenset()
    return frozenset(user.memberships.filter(role="owner").values_list("team_id", flat=True))


def _row(
    node: Node, sample: MachineSample | None, owned: frozenset[int], user: Person, holds: Mapping[int, Hold]
) -> NodeRow:
    staff = isinstance(user, User) and user.is_staff
    live: list[Lease] = vars(node)["live"]
    return NodeRow(
        node=node,
        leases=tuple(live),
        holds=tuple(holds[lease.pk] for lease in live),
        sample=sample,
        manages=staff or node.owner_id in owned,
        host_key_fingerprint=fingerprint(node.host_key),
        offered_fingerprint=fingerprint(node.offered_host_key),
    )
