"""Leases: together or not at all, never twice, and big needs are not starved by small ones."""

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from portal.accounts.models import Team, User
from portal.accounts.selectors import team_of
from portal.nodes.leasing import lease_release, leases_of, needs_outlook, nodes_lease
from portal.nodes.models import Lease, LeaseGpu, Node, NodeState, Reservation
from portal.nodes.needs import NodeNeed

ONE = [NodeNeed(cpus=1, memory_gb=1)]
TWO = [NodeNeed(count=2)]
Make = Callable[..., Node]


def names(leases) -> list[str] | None:
    return None if leases is None else [lease.node.name for lease in leases]


def test_a_run_gets_a_node_for_every_need_with_its_devices(machine: Make, team: Team):
    machine("plain")
    machine("gpu", gpus=4, gpu_memory_gb=80)
    leases = nodes_lease(run_key="1", team=team, needs=[NodeNeed(role="gpu", gpus=2), NodeNeed(role="cpu")])
    assert [(lease.node.name, lease.role, lease.gpus) for lease in leases] == [
        ("gpu", "gpu", [0, 1]),
        ("plain", "cpu", []),
    ]
    assert leases_of(run_key="1") == leases


def test_asking_again_returns_what_the_run_holds(machine: Make, team: Team):
    """R2"""
    machine("a")
    first = nodes_lease(run_key="1", team=team, needs=ONE)
    assert nodes_lease(run_key="1", team=team, needs=ONE) == first
    assert Lease.objects.count() == 1


def test_what_does_not_fit_now_leaves_nothing_held(machine: Make, team: Team):
    machine("a")
    assert nodes_lease(run_key="1", team=team, needs=TWO) is None
    assert not Lease.objects.exists()


def test_devices_memory_and_slots_of_others_are_not_free(machine: Make, team: Team):
    machine("a", gpus=3, gpu_memory_gb=24, memory_gb=10, capacity=9)
    big = [NodeNeed(gpus=2, memory_gb=6)]
    assert nodes_lease(run_key="1", team=team, needs=big)[0].gpus == [0, 1]
    assert nodes_lease(run_key="2", team=team, needs=[NodeNeed(gpus=1, memory_gb=5)]) is None
    assert nodes_lease(run_key="3", team=team, needs=big) is None
    lease_release(run_key="3")
    assert nodes_lease(run_key="4", team=team, needs=[NodeNeed(gpus=1, memory_gb=4)])[0].gpus == [2]


def test_a_node_holds_as_many_runs_as_its_capacity(machine: Make, team: Team):
    machine("a", capacity=2)
    held = [nodes_lease(run_key=str(n), team=team, needs=ONE) for n in range(3)]
    assert [lease and lease[0].slot for lease in held] == [0, 1, None]


def test_releasing_makes_room_and_twice_is_no_fault(machine: Make, team: Team):
    machine("a", gpus=1)
    nodes_lease(run_key="1", team=team, needs=[NodeNeed(gpus=1)])
    assert [lease_release(run_key="1"), lease_release(run_key="1"), lease_release(run_key="never")] == [1, 0, 0]
    assert not LeaseGpu.objects.exists()
    assert nodes_lease(run_key="2", team=team, needs=[NodeNeed(gpus=1)])
    assert Lease.objects.filter(released_at=None).count() == 1


@pytest.mark.parametrize("state", [NodeState.DRAINING, NodeState.OFFLINE, NodeState.LOST])
def test_only_nodes_that_are_online_are_leased(machine: Make, team: Team, state: NodeState):
    """N9"""
    machine("a", state=state)
    assert nodes_lease(run_key="1", team=team, needs=ONE) is None
    outlook = needs_outlook(team=team, needs=ONE)
    assert (outlook.fits_now, outlook.fits_ever) == (False, True)


def test_a_teams_own_node_is_its_own_and_not_for_boards(machine: Make, team: Team, charlie: User):
    """A1"""
    machine("own", owner=team)
    assert nodes_lease(run_key="1", team=team_of(charlie), needs=ONE) is None
    assert nodes_lease(run_key="2", team=team, needs=ONE, site_only=True) is None
    assert names(nodes_lease(run_key="3", team=team, needs=ONE)) == ["own"]


def test_the_outlook_tells_waiting_from_never(machine: Make, team: Team):
    machine("a", gpus=1)
    nodes_lease(run_key="1", team=team, needs=[NodeNeed(gpus=1)])
    waiting, never = (needs_outlook(team=team, needs=[NodeNeed(gpus=count)]) for count in (1, 2))
    assert (waiting.fits_now, waiting.fits_ever, never.fits_ever) == (False, True, False)


def test_a_wide_run_is_not_starved_by_small_ones(machine: Make, team: Team):
    """R8"""
    for name in ("a", "b"):
        machine(name)
    nodes_lease(run_key="small-1", team=team, needs=ONE)
    assert nodes_lease(run_key="wide", team=team, needs=TWO) is None
    assert nodes_lease(run_key="small-2", team=team, needs=ONE) is None
    lease_release(run_key="small-1")
    assert nodes_lease(run_key="small-2", team=team, needs=ONE) is None
    assert names(nodes_lease(run_key="wide", team=team, needs=TWO)) == ["a", "b"]
    assert not Reservation.objects.exists()


def test_nodes_that_the_wide_run_does_not_wait_for_stay_free_for_others(machine: Make, team: Team):
    """R8"""
    for name in ("a", "b"):
        machine(name, labels=("pair",))
    machine("c")
    nodes_lease(run_key="small", team=team, needs=[NodeNeed(labels=("pair",))])
    assert nodes_lease(run_key="wide", team=team, needs=[NodeNeed(count=2, labels=("pair",))]) is None
    assert names(nodes_lease(run_key="other", team=team, needs=ONE)) == ["c"]


def test_a_reservation_lapses_when_its_run_stops_asking(machine: Make, team: Team):
    machine("a")
    machine("b")
    nodes_lease(run_key="small-1", team=team, needs=ONE)
    nodes_lease(run_key="wide", team=team, needs=TWO)
    Reservation.objects.update(renewed_at=timezone.now() - timedelta(seconds=61))
    assert names(nodes_lease(run_key="small-2", team=team, needs=ONE)) == ["b"]


def test_of_two_wide_runs_the_one_that_waits_longer_goes_first(machine: Make, team: Team):
    machine("a")
    machine("b")
    nodes_lease(run_key="small", team=team, needs=ONE)
    for _ in range(2):
        assert [nodes_lease(run_key=key, team=team, needs=TWO) for key in ("first", "second")] == [None, None]
    lease_release(run_key="small")
    assert nodes_lease(run_key="second", team=team, needs=TWO) is None
    assert nodes_lease(run_key="first", team=team, needs=TWO)


def test_a_cancelled_run_gives_its_reservation_back(machine: Make, team: Team):
    """R7"""
    machine("a")
    machine("b")
    nodes_lease(run_key="small", team=team, needs=ONE)
    nodes_lease(run_key="wide", team=team, needs=TWO)
    lease_release(run_key="wide")
    assert nodes_lease(run_key="small-2", team=team, needs=ONE)


def test_the_database_refuses_a_second_holder_of_a_slot_or_device(machine: Make, team: Team):
    node = machine("a", gpus=1)
    held = nodes_lease(run_key="1", team=team, needs=[NodeNeed(gpus=1)])[0]
    with pytest.raises(IntegrityError), transaction.atomic():
        Lease.objects.create(node=node, team=team, run_key="2", slot=0)
    with pytest.raises(IntegrityError), transaction.atomic():
        LeaseGpu.objects.create(lease=held, node=node, index=0)


@pytest.mark.django_db(transaction=True)
def test_of_many_that_ask_at_once_each_device_goes_to_one(machine: Make):
    """S11"""
    team = team_of(User.objects.create_user("alice"))
    machine("a", gpus=4, capacity=8, cpus=64, memory_gb=64)
    got: list[list[int]] = []

    def ask(number: int) -> None:
        leases = nodes_lease(run_key=str(number), team=team, needs=[NodeNeed(gpus=1)])
        got.extend(lease.gpus for lease in leases or ())
        connection.close()

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == len({tuple(gpus) for gpus in got})
    assert Lease.objects.filter(released_at=None).count() == len(got) >= 1
    late = [nodes_lease(run_key=f"late-{n}", team=team, needs=[NodeNeed(gpus=1)]) for n in range(4 - len(got))]
    assert all(late)
    assert nodes_lease(run_key="one-too-many", team=team, needs=[NodeNeed(gpus=1)]) is None
