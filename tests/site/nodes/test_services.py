"""Adding machines, trusting host keys, taking machines in and out of service."""

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from django.db import connection

from portal.accounts.models import Notice, Team, User
from portal.core.errors import FieldFault
from portal.core.models import AuditEntry
from portal.core.secrets import Secret, vault_open
from portal.nodes.keys import fingerprint, host_key_read, key_generate
from portal.nodes.leasing import nodes_lease
from portal.nodes.models import Node, NodeState
from portal.nodes.needs import NodeNeed
from portal.nodes.services import (
    HostKeyNotOffered,
    JumpFacts,
    NodeFacts,
    NodeInUse,
    jumps_of,
    node_add,
    node_change,
    node_host_key_offered,
    node_state_set,
    node_trust_host_key,
)
from portal.nodes.states import MOVES, NodeStateRefused, node_state_move

FACTS = NodeFacts(name="h200", host="h200.example.org", user="ib", gpus=8, gpu_memory_gb=141)

LOCAL = [
    "localhost",
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f.1",
    "::1",
    "::ffff:127.0.0.1",
    "0.0.0.0",
    "169.254.169.254",
]


def host_key() -> str:
    return host_key_read(key_generate(comment="host").public)


def pem(key, **options) -> Secret:
    form = {"encoding": serialization.Encoding.PEM, "format": serialization.PrivateFormat.PKCS8}
    unlocked = {"encryption_algorithm": serialization.NoEncryption()}
    return Secret(key.private_bytes(**{**form, **unlocked, **options}).decode())


def test_a_key_is_made_for_a_new_node_and_sealed(dora: User):
    """A2"""
    node = node_add(facts=FACTS, by=dora)
    assert node.key_public.startswith("ssh-ed25519 AAAA")
    assert node.key_public.endswith(" innovatorbench-h200")
    assert node.state == NodeState.OFFLINE
    private = vault_open(bytes(node.key_sealed)).reveal()
    assert private.startswith("-----BEGIN OPENSSH PRIVATE KEY-----")
    with connection.cursor() as cursor:
        cursor.execute("SELECT t::text FROM nodes_node t")
        assert private.splitlines()[2] not in str(cursor.fetchall())


@pytest.mark.parametrize("make", [Ed25519PrivateKey.generate, lambda: generate_private_key(65537, 2048)])
def test_a_key_that_somebody_brings_is_kept_in_openssh_form(dora: User, make):
    node = node_add(facts=FACTS, by=dora, private_key=pem(make()))
    assert "OPENSSH PRIVATE KEY" in vault_open(bytes(node.key_sealed)).reveal()
    assert node.key_public.startswith("ssh-")


def test_a_locked_or_broken_key_is_refused_with_what_to_do(dora: User):
    locked = pem(Ed25519PrivateKey.generate(), encryption_algorithm=serialization.BestAvailableEncryption(b"x"))
    for key, message in (
        (locked, "passphrase"),
        (Secret("no key"), "no private key"),
        (Secret("ssh-rsa"), "no priv"),
    ):
        with pytest.raises(FieldFault, match=message) as caught:
            node_add(facts=FACTS, by=dora, private_key=key)
        assert caught.value.field == "private_key"


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("name", {"name": "No Spaces"}),
        ("host", {"host": "a; rm -rf /"}),
        ("host", {"host": "-oProxyCommand=x"}),
        ("user", {"user": "a b"}),
        ("port", {"port": 0}),
        ("workspace_root", {"workspace_root": "relative"}),
        ("capacity", {"capacity": 0}),
        ("cpus", {"cpus": 0}),
        ("host", {"jumps": (JumpFacts(host="x y", user="ib", host_key="ssh-ed25519 AAAA"),)}),
    ],
)
def test_facts_that_can_not_be_are_refused_at_their_field(dora: User, field: str, changes: dict):
    with pytest.raises(FieldFault) as caught:
        node_add(facts=NodeFacts(**{**vars(FACTS), **changes}), by=dora)
    assert caught.value.field == field
    assert not Node.objects.exists()


@pytest.mark.parametrize("host", [*LOCAL, "169.254.169.254"])
def test_a_team_can_not_point_a_node_at_the_portals_own_machine(alice: User, team: Team, dora: User, host: str):
    """A1"""
    facts = NodeFacts(name="mine", host=host, user="ib")
    with pytest.raises(FieldFault, match="own machine"):
        node_add(facts=facts, by=alice, owner=team)
    assert node_add(facts=facts, by=dora, owner=team).owner == team


def test_only_those_who_run_the_site_allow_running_without_isolation(alice: User, team: Team):
    facts = NodeFacts(name="mine", host="node.example.org", user="ib", plain_allowed=True)
    with pytest.raises(FieldFault, match="only those who run the site"):
        node_add(facts=facts, by=alice, owner=team)


def test_two_nodes_of_one_name_are_refused_at_the_name(dora: User):
    node_add(facts=FACTS, by=dora)
    with pytest.raises(FieldFault, match="of this name already"):
        node_add(facts=FACTS, by=dora)


def test_a_jump_host_has_its_own_key_or_the_nodes(dora: User):
    own = pem(Ed25519PrivateKey.generate())
    with_key = JumpFacts(host="j0.org", user="j", host_key=host_key(), private_key=own)
    jumps = (with_key, JumpFacts(host="j1.org", user="j", host_key=host_key()))
    node = node_add(facts=NodeFacts(**{**vars(FACTS), "jumps": jumps}), by=dora)
    first, second = jumps_of(Node.objects.get())
    assert (first.host, second.key_public) == ("j0.org", node.key_public)
    assert first.key_public != node.key_public
    assert "OPENSSH" in vault_open(first.cipher).reveal()


def test_an_offered_key_is_told_to_those_who_run_the_site_once(dora: User, alice: User):
    """N8"""
    node = node_add(facts=FACTS, by=dora, host_key=host_key())
    offered = host_key()
    for _ in range(3):
        node_host_key_offered(node=node, host_key=offered)
    notice = Notice.objects.get()
    assert (notice.user, notice.code, notice.facts["fingerprint"]) == (dora, "host_key_changed", fingerprint(offered))
    node.refresh_from_db()
    assert node.host_key != node.offered_host_key == offered


def test_trusting_takes_the_key_that_was_shown_and_no_other(dora: User):
    """N8"""
    node = node_add(facts=FACTS, by=dora)
    shown, swapped = host_key(), host_key()
    node_host_key_offered(node=node, host_key=shown)
    node_host_key_offered(node=node, host_key=swapped)
    with pytest.raises(HostKeyNotOffered):
        node_trust_host_key(node=node, host_key=shown, by=dora)
    node_trust_host_key(node=node, host_key=swapped, by=dora)
    node.refresh_from_db()
    assert (node.host_key, node.offered_host_key) == (swapped, "")
    assert AuditEntry.objects.get(verb="host_key_trusted").facts["after"] == fingerprint(swapped)


@pytest.mark.parametrize("line", ["", "nonsense", "ssh-ed25519", "ssh-ed25519 !!!", "ssh-rsa AAAA"])
def test_what_is_no_host_key_is_refused(line: str):
    with pytest.raises(FieldFault, match="no public host key"):
        host_key_read(line)


def test_a_line_of_known_hosts_is_read_without_its_name():
    key = host_key()
    assert host_key_read(f"[node.example.org]:2222 {key} some comment") == key
    assert fingerprint(key).startswith("SHA256:")


def test_a_node_with_runs_is_drained_not_taken_away(machine, team: Team, dora: User):
    node = machine("a")
    nodes_lease(run_key="1", team=team, needs=[NodeNeed()])
    with pytest.raises(NodeInUse, match="holds 1 runs; drain it"):
        node_state_set(node=node, to=NodeState.OFFLINE, by=dora)
    node_state_set(node=node, to=NodeState.DRAINING, by=dora)
    assert Node.objects.get().state == NodeState.DRAINING


@pytest.mark.parametrize("before", NodeState)
@pytest.mark.parametrize("after", NodeState)
def test_a_node_moves_only_as_the_table_says(machine, before: NodeState, after: NodeState):
    node = machine("a", state=before)
    if after in MOVES[before]:
        node_state_move(node=node, to=after, seen=True)
        assert Node.objects.get().state == node.state == after
    else:
        with pytest.raises(NodeStateRefused):
            node_state_move(node=node, to=after)
        assert Node.objects.get().state == before


def test_a_change_is_written_with_who_made_it(machine, dora: User):
    node = machine("a")
    node_change(node=node, facts=NodeFacts(name="other", host="b.example.org", user="ib", capacity=3), by=dora)
    node.refresh_from_db()
    assert (node.name, node.host, node.capacity) == ("a", "b.example.org", 3)
    assert AuditEntry.objects.get(verb="changed").by == dora
