"""Whatever people and agents write stays text: thoughts, arguments, output, names, task text, terminal."""

import re

import pytest
from django.urls import reverse

from portal.accounts.services import team_rename
from portal.leaderboard.presenters import formula_shut
from runs.models.run import Run
from tests.site.pages.world import HOSTILE, run_made, run_started, step_made, task_given, terminal_made, version_made

FORM = "application/x-www-form-urlencoded"


@pytest.fixture
def hostile_run(team, alice, tmp_path) -> Run:
    team_rename(team=team, name="<b onclick=x>Lab</b>", by=alice)
    version = version_made(tmp_path / "hostile", description=f"# Task {HOSTILE}\n\n[x](javascript:alert(1)) {HOSTILE}")
    run = run_started(run_made(team, alice, version))
    task_given(run, HOSTILE)
    step_made(run, text=HOSTILE, arguments={"command": HOSTILE, "session_id": HOSTILE}, out=HOSTILE)
    step_made(run, f"no_such_{HOSTILE}", arguments={"path": HOSTILE, "content": f"{HOSTILE}\n{HOSTILE}"})
    terminal_made(run, HOSTILE.encode(), session="<i>s</i>")
    return run


def inert(html: str) -> bool:
    tags = re.findall(
        r"<(?:img|iframe|object|embed|base)\b|<svg[^>]*onload|<[^>]+\sonclick=|href=.?javascript:", html, re.I
    )
    inline = re.findall(r"<script(?![^>]*\ssrc=)", html)
    return not tags and not inline and "</script><svg" not in html


def test_every_page_of_a_hostile_run_is_inert(client, alice, hostile_run):
    """T7"""
    client.force_login(alice)
    pages = [
        hostile_run.get_absolute_url(),
        f"{hostile_run.get_absolute_url()}?from=1",
        reverse("run_steps", args=[hostile_run.pk]),
        reverse("run_step", args=[hostile_run.pk, 2]),
        reverse("run_terminal", args=[hostile_run.pk]) + "?session=%3Ci%3Es%3C%2Fi%3E",
        hostile_run.task_version.task.get_absolute_url(),
        reverse("runs"),
        reverse("account"),
        reverse("home"),
    ]
    for page in pages:
        assert inert(client.get(page).content.decode()), page


def test_what_is_hostile_is_still_shown(client, alice, hostile_run):
    """T7"""
    client.force_login(alice)
    html = client.get(hostile_run.get_absolute_url()).content.decode()
    assert "&lt;img src=x onerror=alert(1)&gt;" in html


def test_text_of_the_address_is_inert(client, db):
    """T7"""
    for address in ("/runs/", "/leaderboard/", "/tasks/"):
        html = client.get(address, {"q": HOSTILE, "task": HOSTILE, "suite": HOSTILE, "state": HOSTILE}, follow=True)
        assert inert(html.content.decode())


def test_control_characters_in_a_trace_show_as_symbols(client, alice, hostile_run):
    """T1"""
    step_made(hostile_run, out="a\0b")
    client.force_login(alice)
    assert "a␀b" in client.get(hostile_run.get_absolute_url()).content.decode()


def test_the_raw_bytes_of_a_session_can_be_downloaded(client, alice, hostile_run):
    """T1: NUL, half characters and escapes as they were printed; the page shows them as symbols."""
    printed = b"a\0b\xff\xed\xa0\x80\x1b[31mc\r\n" + bytes(range(256))
    for at in range(0, len(printed), 100):
        terminal_made(hostile_run, printed[at : at + 100], session="raw", offset=at)
    client.force_login(alice)
    address = reverse("run_terminal", args=[hostile_run.pk]) + "?session=raw"
    answer = client.get(f"{address}&raw=1")
    assert answer.getvalue() == printed
    assert (answer["Content-Type"], answer["X-Content-Type-Options"]) == ("application/octet-stream", "nosniff")
    assert answer["Content-Disposition"].startswith("attachment")
    assert "a␀b\ufffd" in client.get(address).content.decode()


@pytest.mark.parametrize("text", ["a\0b", "\0", "\ufffd\ud800"])
def test_a_message_to_an_agent_is_stored_whatever_it_holds(client, alice, hostile_run, text):
    """T1"""
    client.force_login(alice)
    raw = text.encode("utf-8", "surrogatepass")
    answer = client.post(reverse("run_message", args=[hostile_run.pk]), b"text=x" + raw, FORM, follow=True)
    assert answer.status_code == 200
    stored = hostile_run.events.get(kind="message_sent").body["text"]
    assert stored.startswith("x")
    assert "\0" not in stored


def test_a_hint_is_never_shown_in_a_trace(client, hostile_run):
    step_made(hostile_run, "view_hint", arguments={}, out="the secret idea")
    pages = [hostile_run.get_absolute_url(), reverse("run_step", args=[hostile_run.pk, 3])]
    for page in pages:
        assert "the secret idea" not in client.get(page).content.decode()


def test_a_csv_starts_no_formula():
    assert formula_shut("=cmd()") == "'=cmd()"
    assert formula_shut("plain") == "plain"


def test_a_hint_in_the_first_prompt_is_not_shown(client, hostile_run):
    task_given(hostile_run, "the task\n\n## Hint\nthe secret idea")
    html = client.get(f"{hostile_run.get_absolute_url()}?from=1").content.decode()
    assert "the secret idea" not in html
