"""Links and the doctor over real SSH: sealed keys, pinned host keys, what is told when they change."""

import io
import json
import shutil
from collections.abc import Iterator

import pytest
from django.core.management import CommandError, call_command

from gymnode.errors import HostKeyChanged, HostKeyUnknown, NodeUnreachable
from portal.accounts.models import Notice, User
from portal.core.models import AuditEntry
from portal.core.secrets import Secret, VaultClosed
from portal.nodes.asking import node_doctor_ask
from portal.nodes.doctor import doctor_report_of, node_doctor
from portal.nodes.jobs import node_doctor_job
from portal.nodes.keys import fingerprint, host_key_read, key_generate
from portal.nodes.links import LinkCache, link_for, links_close, target_of
from portal.nodes.models import Node
from portal.nodes.services import JumpFacts, NodeFacts, node_add, node_trust_host_key
from tests.node.machines import Door, embedded_node, free_port, gymd_end, node_python, open_folder


@pytest.fixture(scope="module")
def door() -> Iterator[Door]:
    """A real SSH node on loopback."""
    folder = open_folder()
    with embedded_node(folder) as running:
        yield running
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def node(door: Door, dora: User) -> Iterator[Node]:
    facts = NodeFacts(name="n1", host="127.0.0.1", port=door.port, user="ib", python=node_python())
    key = Secret(door.client_key.read_text())
    made = node_add(facts=facts, by=dora, private_key=key, host_key=door.pinned())
    yield made
    made.refresh_from_db()
    if made.host_key == door.pinned():
        gymd_end(link_for(made))
    links_close()


def other_key() -> str:
    return host_key_read(key_generate(comment="x").public)


def test_a_node_is_reached_with_its_sealed_key_over_one_link(node: Node):
    link = link_for(node)
    assert link.request("GET", "/v1/hello").body["protocol"] == 1
    assert link_for(Node.objects.get()) is link


def test_a_changed_row_gives_a_new_link_and_the_old_one_hangs_up(node: Node, door: Door):
    old = link_for(node)
    old.request("GET", "/v1/ping")
    node.python = "/usr/bin/env"
    assert link_for(node) is not old
    with pytest.raises(NodeUnreachable, match="closed here"):
        old.request("GET", "/v1/ping")
    node.python = node_python()


def test_a_process_without_the_vault_makes_no_link(node: Node, settings):
    settings.VAULT_IDENTITY_PATH = None
    with pytest.raises(VaultClosed):
        LinkCache(target_of).get(node)


def test_a_node_that_was_never_trusted_is_refused_and_its_key_shown(node: Node, door: Door, dora: User):
    """N8"""
    Node.objects.update(host_key="")
    node.refresh_from_db()
    with pytest.raises(HostKeyUnknown):
        link_for(node).request("GET", "/v1/hello")
    node.refresh_from_db()
    assert node.offered_host_key == door.pinned()
    node_trust_host_key(node=node, host_key=door.pinned(), by=dora)
    assert link_for(node).request("GET", "/v1/ping").status == 200


def test_a_changed_host_key_is_refused_and_told_to_those_who_run_the_site(node: Node, door: Door, dora: User):
    """N8"""
    pinned = other_key()
    Node.objects.update(host_key=pinned)
    node.refresh_from_db()
    for _ in range(2):
        with pytest.raises(HostKeyChanged):
            link_for(node).request("GET", "/v1/hello")
    node.refresh_from_db()
    assert (node.host_key, node.offered_host_key) == (pinned, door.pinned())
    assert [(notice.user, notice.code) for notice in Notice.objects.all()] == [(dora, "host_key_changed")]


def test_jump_hosts_are_entered_with_their_own_users_and_keys(dora: User):
    jump = JumpFacts(host="gate.example.org", port=2222, user="guest", host_key=other_key())
    node = node_add(facts=NodeFacts(name="far", host="10.0.0.9", user="ib", jumps=(jump,)), by=dora)
    target = target_of(node)
    gate = target.jumps[0]
    assert (gate.host, gate.port, gate.user, gate.host_key) == ("gate.example.org", 2222, "guest", jump.host_key)
    assert gate.private_key == target.hop.private_key
    assert target.hop.host_key is None
    assert "PRIVATE KEY" not in repr(target)


def test_the_doctor_says_what_a_real_node_has_and_lacks(node: Node):
    report = node_doctor(node=node)
    assert report.code == "ok"
    assert [level.name for level in report.levels] == ["namespace", "landlock", "plain"]
    assert all(fault.remedy for fault in report.faults)
    node.refresh_from_db()
    assert doctor_report_of(node) == report
    assert node.level == report.best


def test_the_doctor_of_an_untrusted_node_brings_its_key(node: Node, door: Door):
    """N8"""
    node.host_key = ""
    node.save()
    assert node_doctor(node=node).code == "host_key_unknown"
    out = io.StringIO()
    with pytest.raises(CommandError, match="not healthy"):
        call_command("node_doctor", "n1", stdout=out)
    assert f"offers host key {fingerprint(door.pinned())}" in out.getvalue()
    with pytest.raises(CommandError, match="n1 offers SHA256"):
        call_command("node_trust", "n1", "SHA256:guessed")
    call_command("node_trust", "n1", fingerprint(door.pinned()), stdout=out)
    assert Node.objects.get().host_key == door.pinned()


def test_the_doctor_of_a_node_that_is_off_says_so(dora: User):
    facts = NodeFacts(name="off", host="127.0.0.1", port=free_port(), user="ib")
    node = node_add(facts=facts, by=dora, host_key=other_key())
    assert doctor_report_of(node) is None
    assert node_doctor(node=node).code == "unreachable"
    assert not doctor_report_of(Node.objects.get()).healthy


def test_an_answer_that_is_no_report_is_not_taken_for_one(node: Node):
    for answer in ("", "[]", "Welcome!", json.dumps({"levels": 7})):
        assert node_doctor(node=node, examine=lambda _target, text=answer: text).code == "unreadable"


def test_faults_and_leftovers_are_kept_with_their_remedies(node: Node):
    fault = {"lacks": "git", "why": "git is missing", "remedy": "install the package git"}
    answer = {"best": "landlock", "faults": [fault], "leftovers": [{"folder": "/x"}], "levels": [], "new": 1}
    report = node_doctor(node=node, examine=lambda _target: json.dumps(answer))
    assert (report.faults[0].remedy, report.healthy) == ("install the package git", False)


def test_asking_for_the_doctor_sends_one_job_after_the_commit(
    node: Node, dora: User, monkeypatch, django_capture_on_commit_callbacks
):
    """R9"""
    sent: list[int] = []
    monkeypatch.setattr(node_doctor_job, "delay", sent.append)
    with django_capture_on_commit_callbacks(execute=True):
        node_doctor_ask(node=node, by=dora)
        assert sent == []
    assert sent == [node.pk]
    assert AuditEntry.objects.filter(verb="doctor_asked", by=dora).exists()


def test_jobs_may_run_twice_and_for_nodes_that_are_gone(node: Node):
    """R2"""
    for _ in range(2):
        node_doctor_job(node.pk)
        node_doctor_job(0)
    assert Node.objects.get().doctor["code"] == "ok"
