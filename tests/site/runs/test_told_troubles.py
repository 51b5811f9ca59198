"""What the page of a run says of a key that can't be used, an address that moved, and a node that nobody trusts."""

import html
import json

import pytest
from django.utils import timezone

from gymnode.errors import HostKeyChanged, HostKeyUnknown
from portal.accounts.models import VaultSecret
from portal.accounts.vault import secret_put
from portal.core.secrets import Secret, vault_seal
from portal.nodes import links
from portal.nodes.models import Lease, Node
from portal.nodes.sinks import Change
from runs.presenters import reason_text
from runs.services.queueing import queue_start
from runs.services.watching import change_took
from tests.contract.provider import Answers, failure
from tests.site.runs.driving import CONFIG, drive

SLEEPER = "task: example-task\nsteps:\n  - call: {sleep: {seconds: 600}}\n  - call: {finish: {}}\n"


def config_of(place: str) -> str:
    facts = f"provider: openai, name: m, base_url: 'http://{place}/v1', api_key: 'secret:MY_KEY'"
    return CONFIG.replace("{provider: scripted, name: reference}", f"{{{facts}, prices: {{input: 1, output: 1}}}}")


@pytest.fixture
def provider(settings):
    with Answers.running() as server:
        settings.MODEL_ALLOWED_HOSTS = {server.address}
        yield server


def test_a_key_for_another_port_is_not_sent_and_the_right_place_is_named(
    provider, queue, node, scorer, team, alice
) -> None:
    secret_put(team=team, name="MY_KEY", value=Secret("sk-x"), host="127.0.0.1", by=alice)
    run = drive(queue(config_of(provider.address)))
    assert (run.status, run.failure_code, provider.got) == ("failed", "secret_missing", [])
    assert f"no key MY_KEY for {provider.address}." in reason_text(run)


@pytest.mark.parametrize("value", ["sk-é", "sk-x\n", "密钥"])
def test_a_stored_key_that_no_request_can_carry_ends_the_run_at_once(
    provider, queue, node, scorer, team, alice, value: str
) -> None:
    """R16: older releases stored such keys."""
    secret_put(team=team, name="MY_KEY", value=Secret("sk-x"), host=provider.address, by=alice)
    clear = {"team": team.pk, "name": "MY_KEY", "host": provider.address, "value": value}
    VaultSecret.objects.update(sealed=vault_seal(json.dumps(clear).encode()))
    run = drive(queue(config_of(provider.address)))
    assert (run.status, run.failure_code, run.outage_tries, run.leased) == ("failed", "wrong_key", 0, False)
    assert provider.got == []


def test_a_redirect_says_which_address_to_write(provider, queue, node, scorer, team, alice, client) -> None:
    secret_put(team=team, name="MY_KEY", value=Secret("sk-x"), host=provider.address, by=alice)
    provider.next = [failure(307, Location="https://u:pr1vate@new.example.org/v1?token=pr1vate")]
    run = drive(queue(config_of(provider.address)))
    assert (run.status, run.failure_code) == ("failed", "address_moved")
    client.force_login(alice)
    page = html.unescape(client.get(run.get_absolute_url()).content.decode())
    assert "redirects to https://new.example.org, and redirects are not followed. Put the final address into" in page
    assert "pr1vate" not in page


class Foreign:
    """A link to a machine that shows another key than the pinned one, or to one of which none is pinned."""

    name = "box"
    problem: HostKeyUnknown

    def request(self, *args, **facts):
        raise self.problem

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize(
    ("problem", "code", "said"),
    [
        (HostKeyChanged("box", "192.0.2.7 shows AAAA", "ssh-ed25519 AAAA", "ssh-ed25519 BBBB"), "node_key_changed",
         "The host key of node box has changed"),
        (HostKeyUnknown("box", "192.0.2.7 shows AAAA", "ssh-ed25519 AAAA"), "node_key_unknown",
         "The host key of node box is not trusted yet"),
    ],
)  # fmt: skip
def test_a_node_with_another_host_key_is_not_called_silent(
    queue, node, scorer, monkeypatch, client, alice, problem: HostKeyUnknown, code: str, said: str
) -> None:
    """N8: the page says what happened and who was told; neither key nor machine is named."""
    monkeypatch.setattr(Foreign, "problem", problem, raising=False)
    monkeypatch.setattr(links, "_cache", links.LinkCache(lambda _node: Foreign()))
    monkeypatch.setattr(links, "node_host_key_offered", lambda **facts: None)
    run = drive(queue(), until=lambda each: each.waiting_reason == "node_lost")
    assert (run.failure_code, run.clock_kind) == (code, "infrastructure")
    client.force_login(alice)
    page = html.unescape(client.get(run.get_absolute_url()).content.decode())
    assert said in page
    assert "An admin was told" in page
    assert [word in page for word in ("AAAA", "BBBB", node.host, "does not answer")] == [False] * 4


def test_a_sleeping_run_says_that_its_node_s_host_key_changed(queue, node, playbook, scorer) -> None:
    """N8"""
    playbook(SLEEPER)
    run = queue()
    drive(run, until=lambda each: each.waiting_reason == "sleep")
    Node.objects.filter(pk=node.pk).update(state_code="host_key_changed")
    change_took(Change(kind="node_lost", node=node.pk, run="", session="", at=timezone.now()))
    run.refresh_from_db()
    assert run.failure_code == "node_key_changed"
    assert f"The host key of node {node.name} has changed" in reason_text(run)
    Node.objects.filter(pk=node.pk).update(state_code="")
    change_took(Change(kind="node_back", node=node.pk, run="", session="", at=timezone.now()))


def test_a_run_whose_nodes_are_gone_names_no_dash_and_no_hours(queue, node, scorer) -> None:
    """R5"""
    run = queue()
    queue_start()
    Lease.objects.filter(run_key=run.key).update(released_at=timezone.now())
    drive(run, until=lambda each: each.status == "failed")
    assert run.failure_code == "node_lost"
    assert reason_text(run).startswith("The nodes of the run are gone and did not come back.")
