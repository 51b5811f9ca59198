"""What people do on the pages: submit, sign up, make tokens, share a team, add a node, control a run."""

import re

import pytest
from django.urls import reverse

from portal.accounts.models import ApiToken, User, VaultSecret
from portal.leaderboard.boards import boards_ensure
from portal.nodes.models import Node
from portal.pages.example import EXAMPLE_CONFIG
from runs.agent.spec import parse_spec
from runs.models.run import Run


@pytest.fixture
def signed_in(client, alice):
    client.force_login(alice)
    return client


def wish(**changes) -> dict:
    return {
        "config": EXAMPLE_CONFIG,
        "tasks": ["example-task"],
        "repeats": 1,
        "team": "alice",
        "where": "private",
        **changes,
    }


def test_the_example_config_is_a_right_one():
    assert parse_spec(EXAMPLE_CONFIG).name == "react-scripted-reference"


def test_a_submission_becomes_a_queued_run(signed_in, version):
    answer = signed_in.post(reverse("submit"), wish())
    run = Run.objects.get()
    assert answer.headers["Location"] == run.get_absolute_url()
    assert (run.status, run.visibility) == ("queued", "private")


def test_repeats_for_a_board_are_public_and_listed_together(signed_in, version):
    boards_ensure()
    answer = signed_in.post(reverse("submit"), wish(repeats=2, where="board:nano-public"), follow=True)
    assert Run.objects.filter(board="nano-public", visibility="public").count() == 2
    assert "2 repeats declared" in answer.content.decode()


def test_faults_of_a_config_stand_at_their_lines(signed_in, version):
    text = EXAMPLE_CONFIG.replace("provider: scripted", "provider: nonesuch").replace("hint: none", "hint: often")
    answer = signed_in.post(reverse("submit"), wish(config=text))
    html = answer.content.decode()
    assert answer.status_code == 400
    assert re.findall(r'<li id="line-(\d+)" data-bad>', html) == ["4", "7"]
    assert not Run.objects.exists()


def test_what_was_typed_stays_after_a_fault(signed_in, version):
    html = signed_in.post(reverse("submit"), wish(config="name: [broken", repeats=3)).content.decode()
    assert "name: [broken" in html
    assert 'value="3"' in html


def test_a_check_queues_nothing_and_shows_the_first_prompt(signed_in, version):
    answer = signed_in.post(reverse("submit"), wish(check="1"))
    assert "Beat it." in answer.content.decode()
    assert not Run.objects.exists()


def test_a_config_can_come_as_a_file(signed_in, version, tmp_path):
    file = tmp_path / "agent.yaml"
    file.write_text(EXAMPLE_CONFIG)
    with file.open("rb") as opened:
        signed_in.post(reverse("submit"), wish(config="", file=opened))
    assert Run.objects.count() == 1


def test_a_submission_without_tasks_says_so(signed_in, version):
    assert "choose at least one task" in signed_in.post(reverse("submit"), wish(tasks=[])).content.decode()


def test_somebody_signs_up_signs_out_and_in_again(client, db):
    words = {
        "username": "erin",
        "email": "erin@example.org",
        "password1": "a long sentence",
        "password2": "a long sentence",
    }
    assert client.post(reverse("account_signup"), words).status_code == 302
    client.post(reverse("account_logout"))
    signed = client.post(reverse("account_login"), {"login": "erin", "password": "a long sentence"})
    assert signed.headers["Location"] == "/"


def test_a_token_is_shown_once(signed_in):
    made = signed_in.post(reverse("token_create"), {"name": "laptop", "scopes": ["read"], "days": "30"})
    value = re.search(r"ib_[A-Za-z0-9_-]{20,}", made.content.decode())
    assert value
    assert "no-store" in made.headers["Cache-Control"]
    assert value.group() not in signed_in.get(reverse("account")).content.decode()
    signed_in.post(reverse("token_revoke", args=[ApiToken.objects.get().pk]))
    assert ApiToken.objects.filter(revoked_at=None).count() == 0


def test_a_key_goes_into_the_vault_and_never_comes_out(signed_in):
    words = {"team": "alice", "name": "LAB_KEY", "host": "api.example.org", "value": "sk-very-secret-value"}
    signed_in.post(reverse("secret_put"), words)
    assert VaultSecret.objects.get().name == "LAB_KEY"
    assert "sk-very-secret-value" not in signed_in.get(reverse("account")).content.decode()


def test_a_wrong_name_of_a_key_is_said_at_its_field(signed_in):
    words = {"team": "alice", "name": "lab key", "host": "", "value": "sk-very-secret-value"}
    html = signed_in.post(reverse("secret_put"), words).content.decode()
    assert "use capital letters" in html
    assert "sk-very-secret-value" not in html


def test_a_key_that_can_not_be_sent_is_refused_by_page_and_api_alike(signed_in):
    words = {"team": "alice", "name": "LAB_KEY", "host": "api.example.org", "value": "sk-very-secret-valu\u00e9"}
    html = signed_in.post(reverse("secret_put"), words).content.decode()
    assert "character 20 is U+00E9" in html
    told = signed_in.put("/api/v1/account/secrets/LAB_KEY/", words, content_type="application/json")
    (fault,) = told.json()["error"]["errors"]
    assert (told.status_code, fault["path"]) == (400, "value")
    assert "character 20 is U+00E9" in fault["message"]
    assert not VaultSecret.objects.exists()


def test_an_invitation_link_brings_somebody_in(signed_in, client, team, charlie):
    html = signed_in.post(reverse("invite_create", args=[team.slug])).content.decode()
    link = re.search(r"/join/[A-Za-z0-9_-]+/", html).group()
    client.force_login(charlie)
    assert "The Lab" in client.get(link).content.decode()
    client.post(link)
    assert team.members.filter(pk=charlie.pk).exists()


def test_a_stranger_sees_no_team(client, charlie, team):
    client.force_login(charlie)
    assert client.get(reverse("team", args=[team.slug])).status_code == 404


def test_an_account_is_deleted_only_with_its_name(signed_in, alice):
    signed_in.post(reverse("account_delete"), {"confirm": "bob"})
    assert User.objects.get(pk=alice.pk).deleted_at is None
    signed_in.post(reverse("account_delete"), {"confirm": "alice"})
    assert User.objects.get(pk=alice.pk).deleted_at is not None


def test_staff_add_a_node_and_see_its_public_key(client, dora):
    client.force_login(dora)
    words = {"owner": "", "name": "gpu-1", "host": "192.0.2.7", "port": 22, "user": "bench", "cpus": 2, "memory_gb": 4}
    more = {"gpus": 0, "gpu_memory_gb": 0, "capacity": 1}
    answer = client.post(reverse("node_add"), {**words, **more}, follow=True)
    assert Node.objects.get().name == "gpu-1"
    assert "ssh-ed25519" in answer.content.decode()


def test_a_fault_of_a_node_stands_at_its_field(client, dora):
    client.force_login(dora)
    words = {"owner": "", "name": "GPU 1", "host": "x", "port": 22, "user": "bench", "cpus": 2, "memory_gb": 4}
    answer = client.post(reverse("node_add"), {**words, "gpus": 0, "gpu_memory_gb": 0, "capacity": 1})
    assert answer.status_code == 400
    assert 'id="id_name_error"' in answer.content.decode()


@pytest.mark.parametrize("name", ["GPU 1", "gpu-1"])
def test_a_node_s_key_is_not_in_the_page_that_tells_a_fault(client, dora, name):
    client.force_login(dora)
    key = "-----BEGIN OPENSSH PRIVATE KEY-----\nc2VjcmV0\n-----END OPENSSH PRIVATE KEY-----"
    words = {"owner": "", "name": name, "host": "x", "port": 22, "user": "bench", "cpus": 2, "memory_gb": 4}
    more = {"gpus": 0, "gpu_memory_gb": 0, "capacity": 1, "private_key": key}
    answer = client.post(reverse("node_add"), {**words, **more})
    assert answer.status_code == 400
    assert "c2VjcmV0" not in answer.content.decode()
    assert "paste it anew" in answer.content.decode()


def test_a_run_is_cancelled_after_a_question(signed_in, run):
    Run.objects.filter(pk=run.pk).update(status="queued", end_reason="", ended_at=None)
    assert "Cancel run" in signed_in.get(reverse("run_cancel", args=[run.pk])).content.decode()
    signed_in.post(reverse("run_cancel", args=[run.pk]))
    assert Run.objects.get(pk=run.pk).status == "cancelled"


def test_a_move_that_is_not_allowed_is_told(signed_in, run):
    answer = signed_in.post(reverse("run_cancel", args=[run.pk]), follow=True)
    assert "finished" in answer.content.decode()
    assert Run.objects.get(pk=run.pk).status == "finished"


def test_a_reader_of_a_public_run_cannot_control_it(client, charlie, run):
    client.force_login(charlie)
    assert client.post(reverse("run_pause", args=[run.pk])).status_code == 403


def test_a_run_is_made_private_and_public_again(signed_in, run):
    signed_in.post(reverse("run_share", args=[run.pk]), {"to": "private"})
    assert Run.objects.get(pk=run.pk).visibility == "private"
    signed_in.post(reverse("run_share", args=[run.pk]), {"to": "public"})
    assert Run.objects.get(pk=run.pk).visibility == "public"
