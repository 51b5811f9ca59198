"""Which machines serve which needs: all together, each need a machine of its own."""

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from portal.nodes.needs import NodeNeed, Offer, places_find, wide


def offer(node: int, **fields) -> Offer:
    plain = {"slots": (0,), "gpus": (), "gpu_memory_gb": 0, "memory_gb": 8, "cpus": 2}
    return Offer(node=node, **{**plain, **fields})


GPU_NODE = offer(7, gpus=(0, 1, 2, 3), gpu_memory_gb=80, memory_gb=800, cpus=64)


def test_every_need_gets_a_machine_of_its_own_in_the_order_of_the_needs():
    needs = [NodeNeed(role="trainer", gpus=2), NodeNeed(role="server", count=2)]
    places = places_find(needs, [offer(1), offer(2), GPU_NODE])
    assert [(place.node, place.need.role, place.gpus) for place in places] == [
        (7, "trainer", (0, 1)),
        (1, "server", ()),
        (2, "server", ()),
    ]


def test_one_missing_machine_means_none_at_all():
    assert places_find([NodeNeed(count=3)], [offer(1), offer(2)]) is None
    assert places_find([], []) == ()


def test_a_full_machine_serves_nobody():
    assert places_find([NodeNeed()], [offer(1, slots=())]) is None
    assert places_find([NodeNeed(gpus=1)], [offer(1, gpus=())]) is None


def test_each_requirement_counts():
    fit = offer(1, gpus=(0,), gpu_memory_gb=24, labels=frozenset({"fast"}), internet=True)
    good = NodeNeed(gpus=1, gpu_memory_gb=24, memory_gb=8, cpus=2, labels=("fast",), internet=True)
    assert places_find([good], [fit])
    for change in ({"gpus": 2}, {"gpu_memory_gb": 25}, {"memory_gb": 9}, {"cpus": 3}, {"labels": ("fast", "big")}):
        assert places_find([NodeNeed(**{**vars(good), **change})], [fit]) is None, change
    assert places_find([NodeNeed(internet=True)], [offer(1)]) is None


def test_the_smallest_machine_that_fits_is_taken_and_a_teams_own_first():
    assert places_find([NodeNeed()], [GPU_NODE, offer(1)])[0].node == 1
    assert places_find([NodeNeed()], [offer(1), offer(2, memory_gb=900, own=True)])[0].node == 2


def test_a_machine_that_only_one_need_can_use_is_left_to_it():
    either, picky = NodeNeed(role="a"), NodeNeed(role="b", labels=("fast",))
    nodes = [offer(1, labels=frozenset({"fast"})), offer(2)]
    assert [place.node for place in places_find([either, picky], nodes)] == [2, 1]


def test_wide_needs_are_those_that_small_ones_can_starve():
    assert not wide([NodeNeed(gpus=1)])
    assert wide([NodeNeed(count=2)])
    assert wide([NodeNeed(), NodeNeed()])
    assert wide([NodeNeed(gpus=8)])


sizes = st.integers(0, 3)
needs_lists = st.lists(st.builds(NodeNeed, gpus=sizes, cpus=sizes, memory_gb=sizes), max_size=4)
offer_lists = st.lists(st.tuples(sizes, sizes, sizes), max_size=4).map(
    lambda rows: [offer(i, gpus=tuple(range(g)), cpus=c, memory_gb=m) for i, (g, c, m) in enumerate(rows)]
)


@given(needs_lists, offer_lists)
def test_places_are_found_exactly_when_some_assignment_exists(needs: list[NodeNeed], offers: list[Offer]):
    possible = any(
        all(one.serves(need) for one, need in zip(chosen, needs, strict=True))
        for chosen in permutations(offers, len(needs))
    )
    places = places_find(needs, offers)
    assert (places is not None) == possible
    if places is not None:
        by_id = {one.node: one for one in offers}
        assert len({place.node for place in places}) == len(places)
        assert all(by_id[place.node].serves(place.need) for place in places)
        assert all(len(place.gpus) == place.need.gpus for place in places)
