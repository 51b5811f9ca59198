"""The collector against a real gymd: bytes, changes, lost and returning nodes, whatever else is restarted."""

import threading
import time
from collections.abc import Callable

import pytest
from django.db import connection

from gymnode.errors import HostKeyChanged, NodeUnreachable
from portal.accounts.models import Notice, User
from portal.nodes.collector import Collector
from portal.nodes.health import best_level
from portal.nodes.models import MachineSample, Node, NodeState
from portal.nodes.samples import sample_store, samples_prune
from portal.nodes.watching import Flow, NodeWatcher, Timing, watched_ids

QUICK = Timing(poll=0.3, lost_after=0.4, pause=0.05, pause_most=0.1, sample=0.2)


class DeadLink:
    """A node that doesn't answer, or presents a foreign key."""

    name = "dead"

    def __init__(self, problem: Exception) -> None:
        self.problem = problem

    def request(self, *_args, **_kwargs):
        raise self.problem

    def close(self) -> None:
        pass


def watcher(node: Node, gym, *, flow: Flow = Flow(), timing: Timing = QUICK) -> NodeWatcher:
    return NodeWatcher(node.pk, lambda _node: gym.link, timing=timing, flow=flow)


def wait_for(condition: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_bytes_of_a_terminal_and_the_end_of_its_job_reach_the_sinks_in_this_order(machine, gym, heard):
    node = machine("a")
    gym.open("run-1")
    gym.run("run-1", "seq 3")
    watcher(node, gym).turn()
    assert heard.text("run-1") == b"1\r\n2\r\n3\r\n"
    ended = next(change for change in heard.changes if change.kind == "job_ended")
    assert (ended.run, ended.session, ended.node) == ("run-1", "main", node.pk)
    assert ended.at >= heard.pieces[-1].at


def test_only_new_bytes_come_in_the_next_turn(machine, gym, heard):
    """V2"""
    watching = watcher(machine("a"), gym)
    gym.open("run-1")
    for number in (1, 2):
        gym.run("run-1", f"echo {number}")
        watching.turn()
    assert heard.text("run-1") == b"1\r\n2\r\n"
    assert [piece.offset for piece in heard.pieces] == [0, 3]


def test_a_restarted_collector_goes_on_where_the_store_ends(machine, gym, heard):
    """V3"""
    node = machine("a")
    gym.open("run-1")
    gym.run("run-1", "echo before")
    watcher(node, gym).turn()
    gym.run("run-1", "echo after")
    watcher(node, gym).turn()
    assert heard.text("run-1") == b"before\r\nafter\r\n"
    assert heard.kinds().count("job_ended") == 2


def test_what_a_sink_refuses_is_offered_again(machine, gym, heard):
    """R3"""
    watching = watcher(machine("a"), gym)
    gym.open("run-1")
    gym.run("run-1", "echo once")
    heard.broken = 2
    for _ in range(2):
        with pytest.raises(ConnectionError):
            watching.turn()
    watching.turn()
    assert heard.text("run-1") == b"once\r\n"
    assert heard.kinds().count("job_ended") == 1


def test_a_session_that_goes_quiet_is_told_once(machine, gym, heard):
    """A2: whoever keeps an unclear end back lets it go."""
    watching = watcher(machine("a"), gym, timing=Timing(poll=0, quiet=0))
    gym.open("run-1")
    gym.run("run-1", "printf '$ P'")
    watching.turn()
    assert (heard.text("run-1"), heard.quiet) == (b"$ P", [])
    heard.broken = 1
    with pytest.raises(ConnectionError):
        watching.turn()
    for _ in range(2):
        watching.turn()
    assert heard.quiet == ["main"]


def test_a_flood_of_output_is_cut_to_its_newest_bytes(machine, gym, heard):
    """T6"""
    gym.open("run-1")
    gym.run("run-1", "head -c 3000000 /dev/zero | tr '\\0' x; echo end")
    watcher(machine("a"), gym, flow=Flow(burst=100_000, per_s=1)).turn()
    assert len(heard.text("run-1")) == 100_000
    assert heard.text("run-1").endswith(b"xend\r\n")
    assert heard.pieces[0].offset == 3_000_005 - 100_000


def test_bytes_that_are_no_text_arrive_as_they_are(machine, gym, heard):
    """T1, T2"""
    gym.open("run-1")
    gym.run("run-1", "printf 'a\\0b\\377c'")
    watcher(machine("a"), gym).turn()
    assert heard.text("run-1") == b"a\0b\xffc"


def test_runs_of_one_node_are_told_apart(machine, gym, heard):
    for run in ("run-1", "run-2"):
        gym.open(run)
        gym.run(run, f"echo {run}")
    watcher(machine("a"), gym).turn()
    assert (heard.text("run-1"), heard.text("run-2")) == (b"run-1\r\n", b"run-2\r\n")


def test_a_run_that_is_gone_meanwhile_stops_nobody(machine, gym, heard):
    node = machine("a")
    gym.open("run-1")
    gym.run("run-1", "echo x")
    watching = watcher(node, gym)
    asked = watching._ask

    def closing(link, row, path, **options):
        if path.endswith("log?offset=0&limit=262144"):
            gym.ask("POST", "/v1/runs/run-1/close", {"epoch": 1, "remove": True})
        return asked(link, row, path, **options)

    watching._ask = closing
    assert watching.turn() == 0
    assert heard.text("run-1") == b""


def test_the_first_contact_says_what_the_node_is(machine, gym, heard):
    node = machine("a")
    watcher(node, gym).turn()
    node.refresh_from_db()
    assert node.level in {"namespace", "landlock", ""}
    assert node.hello["user"]
    assert node.last_seen_at is not None


@pytest.mark.parametrize(
    ("available", "plain", "level"),
    [
        (["namespace", "landlock", "plain"], False, "namespace"),
        (["landlock", "plain"], True, "landlock"),
        (["plain"], True, "plain"),
        (["plain"], False, ""),
        ([], True, ""),
    ],
)
def test_the_level_of_a_node_is_the_best_that_is_there_and_allowed(available, plain, level):
    levels = [{"name": name, "available": name in available} for name in ("namespace", "landlock", "plain")]
    assert best_level(levels, plain_allowed=plain) == level


def test_a_node_that_stops_answering_is_lost_and_comes_back_to_the_state_it_had(machine, gym, heard, dora: User):
    """N9"""
    node = machine("a", state=NodeState.DRAINING)
    links = {"now": DeadLink(NodeUnreachable("a", "no route"))}
    watching = NodeWatcher(node.pk, lambda _node: links["now"], timing=QUICK, flow=Flow())
    watching.turn()
    assert Node.objects.get().state == NodeState.DRAINING
    time.sleep(QUICK.lost_after)
    watching.turn()
    watching.turn()
    node.refresh_from_db()
    assert (node.state, node.state_code, heard.kinds()) == (NodeState.LOST, "unreachable", ["node_lost"])
    assert Notice.objects.get().code == "node_lost"
    links["now"] = gym.link
    watching.turn()
    assert Node.objects.get().state == NodeState.DRAINING
    assert heard.kinds() == ["node_lost", "node_back"]


def test_a_foreign_host_key_makes_the_node_lost_at_once(machine, heard, dora: User):
    """N8"""
    node = machine("a")
    link = DeadLink(HostKeyChanged("a", "another key", "ssh-ed25519 AAAA", "ssh-ed25519 BBBB"))
    NodeWatcher(node.pk, lambda _node: link, timing=QUICK, flow=Flow()).turn()
    node.refresh_from_db()
    assert (node.state, node.state_code) == (NodeState.LOST, "host_key_changed")


def test_a_loss_that_a_sink_could_not_take_is_noticed_again(machine, heard):
    """N9"""
    node = machine("a")
    link = DeadLink(NodeUnreachable("a", "no route"))
    watching = NodeWatcher(node.pk, lambda _node: link, timing=Timing(lost_after=0), flow=Flow())
    heard.broken = 1
    with pytest.raises(ConnectionError):
        watching.turn()
    assert Node.objects.get().state == NodeState.ONLINE
    watching.turn()
    assert heard.kinds() == ["node_lost"]


def test_the_machine_is_read_into_the_series(machine, gym):
    watcher(machine("a"), gym).sample()
    sample = MachineSample.objects.get()
    assert sample.memory_total_mb > sample.memory_used_mb > 0
    assert sample.disk_total_gb >= sample.disk_used_gb >= 0
    assert sample.cpu_percent is not None


def test_a_reading_of_another_release_is_kept_as_far_as_it_is_known(machine):
    """R17"""
    node = machine("a")
    sample_store(node=node, status={"load": [0.5, 0.4, 0.3], "fans": [1200]})
    sample = MachineSample.objects.get()
    assert (sample.load1, sample.cpu_percent, sample.memory_used_mb) == (0.5, None, None)
    assert samples_prune() == 0
    MachineSample.objects.update(at="2020-01-01T00:00:00Z")
    assert samples_prune() == 1


def test_nodes_in_service_are_watched_and_lost_ones_too(machine):
    for state in NodeState:
        machine(state.value, state=state)
    names = Node.objects.filter(pk__in=watched_ids()).values_list("name", flat=True)
    assert sorted(names) == ["draining", "lost", "online"]


@pytest.mark.django_db(transaction=True)
def test_the_collector_outlives_a_crash_of_gymd_and_of_the_database_connection(machine, gym, heard):
    """N6, R3"""
    node = machine("a")
    collector = Collector(lambda _node: gym.link, timing=QUICK)
    thread = threading.Thread(target=collector.run, daemon=True)
    thread.start()
    gym.open("run-1")
    gym.run("run-1", "echo one")
    wait_for(lambda: b"one" in heard.text("run-1"))
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    gym.kill()
    gym.open("run-2")
    gym.run("run-2", "echo two")
    wait_for(lambda: heard.text("run-2") == b"two\r\n")
    wait_for(MachineSample.objects.exists)
    Node.objects.filter(pk=node.pk).update(state=NodeState.OFFLINE)
    wait_for(lambda: not collector._watchers)
    collector.stop.set()
    thread.join(60)
    assert not thread.is_alive()
