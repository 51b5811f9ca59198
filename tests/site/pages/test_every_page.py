"""Every page renders with and without data, for visitors, members and those who run the site."""

import re

import pytest
from django.contrib.auth.models import AnonymousUser
from django.urls import reverse

from portal.leaderboard.boards import boards_ensure

PUBLIC = ["home", "home_live", "leaderboard", "tasks", "agents", "runs", "docs"]
SECTIONS = ["actions", "config", "package", "api", "differences"]
MINE = ["account", "submit", "submissions"]


def shown(client, address: str, status: int = 200) -> str:
    answer = client.get(address, follow=True)
    assert answer.status_code == status, address
    policy = answer.headers["Content-Security-Policy"]
    assert "unsafe-inline" not in policy
    html = answer.content.decode()
    assert " style=" not in html
    assert not re.search(r"<script(?![^>]*\ssrc=)", html), "a script of its own in the page"
    assert not re.search(r"\son[a-z]+=", html), "a handler in the markup"
    return html


@pytest.mark.parametrize("name", PUBLIC)
def test_public_pages_stand_without_any_data(client, name):
    assert "<h1" in shown(client, reverse(name)) or name == "home_live"


@pytest.mark.parametrize("section", SECTIONS)
def test_docs_are_made_from_the_code(client, section):
    assert "<h1" in shown(client, reverse("docs_section", args=[section]))


@pytest.mark.parametrize("name", MINE)
def test_pages_of_one_s_own_ask_for_a_sign_in(client, name):
    assert reverse("account_login") in client.get(reverse(name)).headers["Location"]


@pytest.mark.parametrize("name", [*PUBLIC, *MINE])
def test_pages_stand_with_data(client, alice, run, name):
    boards_ensure()
    client.force_login(alice)
    shown(client, reverse(name))


def test_pages_of_a_run_an_agent_a_task_and_a_team(client, alice, run, team):
    client.force_login(alice)
    for address in (
        run.get_absolute_url(),
        f"{run.get_absolute_url()}?from=1",
        reverse("run_steps", args=[run.pk]),
        reverse("run_step", args=[run.pk, 1]),
        reverse("run_terminal", args=[run.pk]) + "?session=main",
        reverse("run_cancel", args=[run.pk]),
        run.config.get_absolute_url(),
        run.task_version.task.get_absolute_url(),
        reverse("team", args=[team.slug]),
    ):
        shown(client, address)


@pytest.mark.parametrize("address", ["/runs/999/", "/tasks/none/", "/agents/999/", "/leaderboard/none/", "/no/page/"])
def test_what_is_not_there_is_a_404_that_says_what_to_do(client, db, address):
    assert "There is no page here" in shown(client, address, 404)


def test_a_stranger_gets_the_same_404_for_a_private_run(client, charlie, run):
    type(run).objects.filter(pk=run.pk).update(visibility="private")
    client.force_login(charlie)
    assert "There is no page here" in shown(client, run.get_absolute_url(), 404)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example"])
def test_a_foreign_host_is_refused(client, host):
    """T8"""
    assert client.get("/", HTTP_HOST=host).status_code == 400


def test_a_form_from_elsewhere_is_refused(client, alice):
    """T8"""
    strict = type(client)(enforce_csrf_checks=True)
    strict.force_login(alice)
    answer = strict.post(reverse("team_create"), {"name": "x"}, HTTP_ORIGIN="https://evil.example")
    assert answer.status_code == 403


def test_pages_are_spoken_in_simplified_chinese_where_asked(client, db):
    html = client.get("/", HTTP_ACCEPT_LANGUAGE="zh-hans").content.decode()
    assert '<html lang="zh-Hans">' in html


def test_a_visitor_is_nobody_s_user():
    assert not AnonymousUser().is_authenticated
