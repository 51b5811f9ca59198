"""A1: a machine's pages and its line in the API tell of runs only what the reader may know of them."""

from datetime import UTC, datetime

import pytest
from django.urls import reverse

from portal.nodes.models import Lease, Node
from runs.models.run import Run
from tests.site.access.world import PEOPLE, World

OLD, NEW = datetime(2031, 3, 4, 11, 22, 33, tzinfo=UTC), datetime(2031, 5, 6, 7, 48, 59, tzinfo=UTC)
INSIDERS = ("owner", "mate", "staff")


@pytest.fixture
def held(world: World) -> Run:
    """The private run held the site's machine once, and holds it now."""
    run, node = Run.objects.get(pk=world.ids["private"]), Node.objects.get(name=world.ids["node_site"])
    for slot, (since, until) in enumerate([(OLD, NEW), (NEW, None)]):
        made = Lease.objects.create(node=node, team=run.team, run_key=run.key, slot=slot, role="r", released_at=until)
        Lease.objects.filter(pk=made.pk).update(created_at=since)
    return run


def texts(world: World, person: str) -> list[str]:
    """All that is told of the machine: list, page, API."""
    addresses = [reverse("nodes"), reverse("node", args=[world.ids["node_site"]]), reverse("api-nodes")]
    return [world.clients[person].get(address).content.decode() for address in addresses]


@pytest.mark.parametrize("person", [person for person in PEOPLE if person != "nobody"])
def test_a_private_run_is_named_to_insiders_alone(world, held, person):
    """A1: neither which run it was, nor when."""
    listed, page, api = texts(world, person)
    inside = person in INSIDERS
    assert (f">{held.key}<" in listed, f">{held.key}<" in page) == (inside, inside)
    assert ("a private run" in listed, "a private run" in page) == (not inside, not inside)
    assert [time in listed + page + api for time in ("03-04 11:22:33", "05-06 07:48:59")] == [inside, inside]
    assert held.key not in api


@pytest.mark.parametrize("person", ["stranger", *INSIDERS])
def test_a_public_run_is_named_to_everybody(world, person):
    """A1"""
    _listed, page, _api = texts(world, person)
    assert f">run-{world.ids['public']}<" in page


def test_a_private_run_that_gave_the_machine_back_leaves_no_trace_for_strangers(world, held):
    """A1"""
    Lease.objects.filter(run_key=held.key).update(released_at=NEW)
    assert not any("a private run" in text for text in texts(world, "stranger"))
