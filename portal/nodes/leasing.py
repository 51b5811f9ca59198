"""Room: portal.nodes. Leases: all machines of a run, or none. No locks: conditional updates and constraints."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.db.models import F, Q
from django.utils import timezone

from portal.accounts.models import Team
from portal.nodes.models import Lease, LeaseGpu, Node, NodeState, Reservation
from portal.nodes.needs import NodeNeed, Offer, Place, places_find, wide

TRIES = 5
RESERVATION_LIVES = timedelta(seconds=60)


class _Raced(Exception):
    """Another lease changed one of the nodes between looking and taking."""


@dataclass(frozen=True)
class Outlook:
    """Why a run waits: `fits_ever` is false when no machine that the team may use could serve it even when idle."""

    fits_now: bool
    fits_ever: bool


def nodes_lease(
    *, run_key: str, team: Team, needs: Sequence[NodeNeed], site_only: bool = False
) -> tuple[Lease, ...] | None:
    """Lease a node for every need at once, in the order of the needs; None when they can't all be had now.

    Asking again with the same `run_key` returns the leases it holds. `site_only` leaves the team's own machines out
    (boards that rank). A run that needs several machines or GPUs and gets none reserves the ones it waits for; the
    reservation lapses after a minute unless the run asks again.
    """
    for _ in range(TRIES):
        try:
            with transaction.atomic():
                return _lease_once(run_key, team, needs, site_only)
        except (_Raced, IntegrityError):
            continue
    return None


def lease_release(*, run_key: str) -> int:
    """Give back whatever the run holds or has reserved; returns how many leases were live. Twice is no fault."""
    with transaction.atomic():
        Reservation.objects.filter(run_key=run_key).delete()
        LeaseGpu.objects.filter(lease__run_key=run_key).delete()
        return Lease.objects.filter(run_key=run_key, released_at=None).update(released_at=timezone.now())


def leases_of(*, run_key: str) -> tuple[Lease, ...]:
    """The live leases of a run in the order of its needs, nodes loaded."""
    return tuple(Lease.objects.filter(run_key=run_key, released_at=None).select_related("node").order_by("position"))


def needs_outlook(*, team: Team, needs: Sequence[NodeNeed], site_only: bool = False) -> Outlook:
    """Whether these needs can be met now, and whether they ever can; changes nothing."""
    nodes = list(_usable(team, site_only))
    online = [node for node in nodes if node.state == NodeState.ONLINE]
    return Outlook(
        fits_now=places_find(needs, _offers(online, team, idle=False)) is not None,
        fits_ever=places_find(needs, _offers(nodes, team, idle=True)) is not None,
    )


def _lease_once(run_key: str, team: Team, needs: Sequence[NodeNeed], site_only: bool) -> tuple[Lease, ...] | None:
    held = leases_of(run_key=run_key)
    if held:
        return held
    nodes = {node.pk: node for node in _usable(team, site_only) if node.state == NodeState.ONLINE}
    kept = _kept_for_others(run_key)
    free = [node for node in nodes.values() if node.pk not in kept]
    places = places_find(needs, _offers(free, team, idle=False))
    if places is None:
        _reserve(run_key, needs, _offers(free, team, idle=True))
        return None
    # In the order of the keys, so that two runs that want the same nodes never wait for each other in a ring.
    for node in sorted((nodes[place.node] for place in places), key=lambda n: n.pk):
        same = Node.objects.filter(pk=node.pk, lease_version=node.lease_version, state=NodeState.ONLINE)
        if same.update(lease_version=F("lease_version") + 1) != 1:
            raise _Raced
    leases = tuple(_written(run_key, team, nodes[place.node], place, i) for i, place in enumerate(places))
    Reservation.objects.filter(run_key=run_key).delete()
    return leases


def _written(run_key: str, team: Team, node: Node, place: Place, position: int) -> Lease:
    lease = Lease.objects.create(
        node=node,
        team=team,
        run_key=run_key,
        role=place.need.role,
        position=position,
        slot=place.slot,
        gpus=list(place.gpus),
        cpus=place.need.cpus,
        memory_gb=round(place.need.memory_gb),
    )
    LeaseGpu.objects.bulk_create(LeaseGpu(lease=lease, node=node, index=index) for index in place.gpus)
    return lease


def _usable(team: Team, site_only: bool) -> Iterable[Node]:
    """The site's machines and the team's own."""
    whose = Q(owner=None) if site_only else Q(owner=None) | Q(owner=team)
    return Node.objects.filter(whose).order_by("pk")


def _offers(nodes: Iterable[Node], team: Team, *, idle: bool) -> list[Offer]:
    """What each node has free; with `idle`, what it would have if nobody held it."""
    live: dict[int, list[Lease]] = {}
    by_id = {node.pk: node for node in nodes}
    if not idle:
        for lease in Lease.objects.filter(node__in=by_id, released_at=None):
            live.setdefault(lease.node_id, []).append(lease)
    return [_offer(node, live.get(node.pk, []), own=node.owner_id == team.pk) for node in by_id.values()]


def _offer(node: Node, leases: Sequence[Lease], *, own: bool) -> Offer:
    used_slots = {lease.slot for lease in leases}
    used_gpus = {index for lease in leases for index in lease.gpus}
    return Offer(
        node=node.pk,
        slots=tuple(slot for slot in range(node.capacity) if slot not in used_slots),
        gpus=tuple(index for index in range(node.gpus) if index not in used_gpus),
        gpu_memory_gb=node.gpu_memory_gb,
        memory_gb=node.memory_gb - sum(lease.memory_gb for lease in leases),
        cpus=node.cpus - sum(lease.cpus for lease in leases),
        labels=frozenset(node.labels),
        internet=node.internet,
        own=own,
    )


def _kept_for_others(run_key: str) -> set[int]:
    """Nodes reserved by runs that have waited longer than this one."""
    live = Reservation.objects.filter(renewed_at__gt=timezone.now() - RESERVATION_LIVES).order_by("created_at", "id")
    kept: set[int] = set()
    for reservation in live:
        if reservation.run_key == run_key:
            break
        kept.update(reservation.nodes)
    return kept


def _reserve(run_key: str, needs: Sequence[NodeNeed], idle: Sequence[Offer]) -> None:
    places = places_find(needs, idle) if wide(needs) else None
    if places is None:
        return
    now = timezone.now()
    chosen = [place.node for place in places]
    Reservation.objects.filter(renewed_at__lte=now - RESERVATION_LIVES).delete()
    Reservation.objects.update_or_create(run_key=run_key, defaults={"nodes": chosen, "renewed_at": now})
