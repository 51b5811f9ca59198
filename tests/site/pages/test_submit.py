"""The submit page: a config that comes as a file, whose quota is shown, and a form that is sent twice."""

import codecs
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.urls import reverse

from portal.pages.example import EXAMPLE_CONFIG
from portal.submissions.models import Submission
from runs.models.config import AgentConfig
from runs.models.run import Run

CHINESE = EXAMPLE_CONFIG + "prompt:\n  extra: 先读任务\n"


def wish(**changes) -> dict:
    words = {"config": EXAMPLE_CONFIG, "tasks": ["example-task"], "repeats": 1, "team": "alice", "where": "private"}
    return {**words, **changes}


def sent(client, user, raw: bytes):
    client.force_login(user)
    return client.post(reverse("submit"), wish(file=SimpleUploadedFile("agent.yaml", raw)))


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (CHINESE.encode("gb18030"), "Line 10 of the file is not UTF-8. Save the file as UTF-8 and choose it again."),
        (codecs.BOM_UTF16_LE + CHINESE.encode("utf-16-le"), "The file is UTF-16. Save it as UTF-8"),
        (codecs.BOM_UTF16_BE + CHINESE.encode("utf-16-be"), "The file is UTF-16. Save it as UTF-8"),
    ],
)
def test_a_file_that_is_not_utf_8_is_refused_and_not_guessed_at(client, alice, version, raw, told):
    answer = sent(client, alice, raw)
    assert answer.status_code == 400
    assert told in answer.content.decode()
    assert not Run.objects.exists()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_file_in_utf_8_is_kept_as_it_was_written(client, alice, version, encoding):
    sent(client, alice, CHINESE.encode(encoding))
    assert AgentConfig.objects.get().source == CHINESE


@pytest.mark.parametrize("changes", [{"check": 1}, {"tasks": []}, {"config": "name: ["}, {"repeats": 11}, {}])
def test_the_quota_shown_is_that_of_the_team_chosen(client, team, alice, version, run, settings, changes):
    settings.TEAM_RUNS_PER_DAY = 1
    client.force_login(alice)
    html = client.post(reverse("submit"), wish(team=team.slug, **changes)).content.decode()
    assert "The Lab: 0 of 1 runs left" in html
    assert "The Lab: 0 runs left" in html
    assert "1 of 1 runs left" not in html


@pytest.mark.parametrize("named", ["alice", "", "no-such-team"])
def test_without_a_team_of_one_s_own_chosen_the_quota_is_one_s_own(client, team, alice, version, run, settings, named):
    settings.TEAM_RUNS_PER_DAY = 1
    client.force_login(alice)
    html = client.post(reverse("submit"), wish(team=named, check=1)).content.decode()
    assert "alice: 1 of 1 runs left" in html


def key_in(answer) -> str:
    found = re.search(r'name="once" value="([\w-]{20,})"', answer.content.decode())
    assert found
    return found.group(1)


def test_a_form_sent_twice_is_queued_once_and_leads_to_the_same_runs(client, alice, version):
    client.force_login(alice)
    words = wish(once=key_in(client.get(reverse("submit"))), repeats=2)
    first, second = (client.post(reverse("submit"), words) for _ in range(2))
    assert first.headers["Location"] == second.headers["Location"]
    assert (Submission.objects.count(), Run.objects.count()) == (1, 2)
    assert "queued once" in client.get(second.headers["Location"]).content.decode()


def test_a_form_opened_anew_or_changed_is_another_one(client, alice, version):
    client.force_login(alice)
    one, other = (key_in(client.get(reverse("submit"))) for _ in range(2))
    for words in (wish(once=one), wish(once=other), wish(once=one, repeats=2), wish(once=""), wish(once="")):
        client.post(reverse("submit"), words)
    assert Submission.objects.count() == 5


def test_a_form_that_was_refused_or_checked_may_be_sent_again(client, alice, version, settings):
    client.force_login(alice)
    words = wish(once=key_in(client.get(reverse("submit"))))
    settings.TEAM_RUNS_PER_DAY = 0
    refused = client.post(reverse("submit"), words)
    checked = client.post(reverse("submit"), {**words, "check": "1"})
    assert (refused.status_code, checked.status_code, Submission.objects.count()) == (400, 200, 0)
    assert len({words["once"], key_in(refused), key_in(checked)}) == 3
    settings.TEAM_RUNS_PER_DAY = 1
    assert client.post(reverse("submit"), words).status_code == 302
    assert Submission.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_form_sent_eight_times_at_once_is_queued_once(client, alice, version):
    client.force_login(alice)
    words, cookies = wish(once=key_in(client.get(reverse("submit")))), client.cookies

    def one(_number: int) -> str:
        browser = Client()
        browser.cookies = cookies
        try:
            return browser.post(reverse("submit"), words).headers["Location"]
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(one, range(8)))) == 1
    assert (Submission.objects.count(), Run.objects.count()) == (1, 1)
