"""Room: portal.nodes. Which machines a run needs and which free ones can serve it: pure, no database."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class NodeNeed:
    """One role of a task: `count` machines, each with at least this much. Memory in GB."""

    role: str = "main"
    count: int = 1
    gpus: int = 0
    gpu_memory_gb: float = 0
    memory_gb: float = 0
    cpus: int = 0
    labels: tuple[str, ...] = ()
    internet: bool = False


@dataclass(frozen=True)
class Offer:
    """What one machine has free at the moment."""

    node: int
    slots: tuple[int, ...]
    gpus: tuple[int, ...]
    gpu_memory_gb: int
    memory_gb: int
    cpus: int
    labels: frozenset[str] = frozenset()
    internet: bool = False
    own: bool = False

    def serves(self, need: NodeNeed) -> bool:
        """Whether one machine of `need` fits here."""
        return (
            bool(self.slots)
            and len(self.gpus) >= need.gpus
            and (need.gpus == 0 or self.gpu_memory_gb >= need.gpu_memory_gb)
            and self.memory_gb >= need.memory_gb
            and self.cpus >= need.cpus
            and self.labels.issuperset(need.labels)
            and (self.internet or not need.internet)
        )


@dataclass(frozen=True)
class Place:
    """One machine of a run: which node, in which of its slots, with which devices."""

    node: int
    need: NodeNeed
    slot: int
    gpus: tuple[int, ...]


def wide(needs: Sequence[NodeNeed]) -> bool:
    """Whether small runs could starve this one: several machines or several GPUs at once."""
    return sum(need.count for need in needs) > 1 or any(need.gpus > 1 for need in needs)


def places_find(needs: Sequence[NodeNeed], offers: Sequence[Offer]) -> tuple[Place, ...] | None:
    """A machine of its own for every need, in the order of the needs; None when not all can be had together.

    A team's own machines first, then those with the least to spare, so that big ones stay free for big needs.
    """
    wanted = [need for need in needs for _ in range(need.count)]
    ordered = sorted(offers, key=lambda o: (not o.own, len(o.gpus), o.internet, o.memory_gb, o.cpus, o.node))
    taken: dict[int, int] = {}  # place of the offer in `ordered` -> place of the need in `wanted`
    for index in range(len(wanted)):
        if not _placed(index, wanted, ordered, taken, set()):
            return None
    by_need = {need: ordered[offer] for offer, need in taken.items()}
    return tuple(
        Place(node=by_need[i].node, need=need, slot=by_need[i].slots[0], gpus=by_need[i].gpus[: need.gpus])
        for i, need in enumerate(wanted)
    )


def _placed(
    index: int, wanted: Sequence[NodeNeed], offers: Sequence[Offer], taken: dict[int, int], seen: set[int]
) -> bool:
    """Find an offer for need `index`: a free one, else one whose need can move elsewhere (augmenting paths)."""
    fitting = [number for number, offer in enumerate(offers) if offer.serves(wanted[index])]
    for number in sorted(fitting, key=lambda number: number in taken):
        if number in seen:
            continue
        seen.add(number)
        if number not in taken or _placed(taken[number], wanted, offers, taken, seen):
            taken[number] = index
            return True
    return False
