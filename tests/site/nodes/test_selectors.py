"""What people see of machines."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.utils import timezone

from portal.accounts.models import Team, User
from portal.accounts.roles import Verb
from portal.nodes.holders import Hold
from portal.nodes.leasing import lease_release, nodes_lease
from portal.nodes.models import MachineSample, NodeState
from portal.nodes.needs import NodeNeed
from portal.nodes.samples import sample_store
from portal.nodes.selectors import (
    availability_for,
    holds_history_for,
    node_get_for,
    node_row_for,
    node_rows_for,
    nodes_list_for,
    samples_of,
)


@pytest.fixture
def machines(machine, team: Team):
    return [machine("site", gpus=4, capacity=2, memory_gb=64), machine("own", owner=team)]


def test_people_see_the_sites_machines_and_their_own_teams(machines, alice, bob, charlie, dora):
    """A1"""
    seen = {user: [row.node.name for row in node_rows_for(user)] for user in (alice, bob, charlie, dora)}
    assert seen == {alice: ["own", "site"], bob: ["own", "site"], charlie: ["site"], dora: ["own", "site"]}
    assert list(nodes_list_for(AnonymousUser())) == []


def test_only_owners_and_staff_manage(machines, alice: User, bob: User, dora: User):
    """A1"""
    manages = {user: [row.manages for row in node_rows_for(user)] for user in (alice, bob, dora)}
    assert manages == {alice: [True, False], bob: [False, False], dora: [True, True]}
    for user, names in manages.items():
        assert [node_row_for(user, name).manages for name in ("own", "site")] == names


def test_a_machine_is_404_to_strangers_and_403_to_readers(machines, alice: User, bob: User, charlie: User):
    """A1"""
    assert node_get_for(alice, "own", need=Verb.MANAGE) == machines[1]
    for user, name in ((charlie, "own"), (AnonymousUser(), "site"), (alice, "none")):
        with pytest.raises(Http404):
            node_get_for(user, name)
    for user, name in ((bob, "own"), (charlie, "site")):
        with pytest.raises(PermissionDenied):
            node_get_for(user, name, need=Verb.MANAGE)


def test_a_row_shows_leases_load_and_what_is_free(machines, team: Team, alice: User):
    nodes_lease(run_key="run-1", team=team, needs=[NodeNeed(gpus=3)], site_only=True)
    for load in (0.5, 0.7):
        sample_store(node=machines[0], status={"load": [load]})
    row = node_rows_for(alice)[1]
    assert (row.gpus_free, row.slots_free, row.sample.load1) == (1, 1, 0.7)
    assert row == node_row_for(alice, "site")


def test_of_runs_that_nobody_knows_of_it_is_told_that_they_hold_the_machine_now(machines, team: Team, dora: User):
    """A1: no key and no time."""
    nodes_lease(run_key="run-1", team=team, needs=[NodeNeed(gpus=3)], site_only=True)
    assert node_row_for(dora, "site").holds == (Hold(live=True),)
    assert holds_history_for(dora, machines[0]) == [Hold(live=True)]
    lease_release(run_key="run-1")
    assert (node_row_for(dora, "site").holds, holds_history_for(dora, machines[0])) == ((), [])


def test_the_page_costs_as_many_queries_for_ten_machines_as_for_one(machine, alice, django_assert_num_queries):
    """S10"""
    for number in range(10):
        node = machine(f"n{number}")
        sample_store(node=node, status={})
        with django_assert_num_queries(5):
            assert len([row.sample.at for row in node_rows_for(alice)]) == number + 1


def test_availability_counts_what_a_team_may_use_and_is_online(machines, machine, team: Team):
    machine("off", state=NodeState.OFFLINE, gpus=8)
    nodes_lease(run_key="run-1", team=team, needs=[NodeNeed(gpus=1)])
    mine, public = availability_for(team.pk), availability_for(None)
    assert (mine.nodes, mine.slots, mine.slots_free, mine.gpus, mine.gpus_free) == (2, 3, 2, 4, 3)
    assert public.nodes == 1


def test_a_long_series_is_thinned_evenly(machines):
    now = timezone.now()
    MachineSample.objects.bulk_create(
        MachineSample(node=machines[0], at=now - timedelta(seconds=n)) for n in range(1000)
    )
    samples = samples_of(machines[0], since=now - timedelta(seconds=900), most=100)
    assert 90 <= len(samples) <= 100
    assert [sample.at for sample in samples] == sorted(sample.at for sample in samples)
