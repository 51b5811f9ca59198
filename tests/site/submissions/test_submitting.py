"""From a wish to queued runs: all or none, declared repeats, further attempts, the quota."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection
from django.http import Http404
from django.urls import reverse
from django.utils import timezone

from portal.core.errors import FieldFault, Missing
from portal.leaderboard.joining import board_wish
from portal.submissions.models import Attempt, Submission
from portal.submissions.quota import QuotaTooSmall, QuotaUsedUp, quota_of
from portal.submissions.selectors import attempts_for, retries_for, submission_get_for
from portal.submissions.services import StillGoing, Wish, attempt_retry, submission_create
from runs.agent.spec import SpecErrors
from runs.models.config import AgentConfig
from runs.models.run import Run
from runs.services.controls import run_share
from runs.states import Visibility
from tests.site.leaderboard.world import CONFIG, board_made, ended, run_made, version_made


def submit(team, by, version, **facts) -> Submission:
    return submission_create(team=team, wish=Wish(config=CONFIG, tasks=[version], **facts), by=by)


def test_repeats_are_declared_and_queued_at_once(team, bob, version):
    made = submit(team, bob, version, repeats=3)
    assert list(made.attempts.values_list("repeat", "attempt")) == [(1, 1), (2, 1), (3, 1)]
    assert Run.objects.filter(team=team, status="queued", visibility="private").count() == 3


def test_a_key_that_the_vault_lacks_is_said_before_anything_is_queued(team, bob, version, client):
    config = "name: x\nmodel: {provider: openai, name: m, api_key: 'secret:NOT_THERE'}"
    with pytest.raises(FieldFault, match="has no secret NOT_THERE"):
        submission_create(team=team, wish=Wish(config=config, tasks=[version]), by=bob)
    assert not AgentConfig.objects.exists()
    client.force_login(bob)
    form = {"config": config, "team": team.slug, "repeats": 1, "where": "private", "check": 1}
    answer = client.post("/submit/", form)
    assert "NOT_THERE; add it" in answer.content.decode()


def test_a_lost_run_of_a_three_seed_submission_becomes_a_new_attempt_of_it(team, bob, version):
    """S13"""
    made = submit(team, bob, version, repeats=3)
    lost = ended(made.attempts.get(repeat=2).run, None, end="infrastructure", status="failed")
    again = attempt_retry(run=lost, by=bob)
    assert list(made.attempts.values_list("repeat", "attempt")) == [(1, 1), (2, 1), (2, 2), (3, 1)]
    assert (again.place.submission, again.config) == (made, lost.config)
    assert Submission.objects.count() == 1
    with pytest.raises(StillGoing, match="tried again already"):
        attempt_retry(run=lost, by=bob)


@pytest.mark.parametrize("end", ["finish", "agent_error", "deadline"])
def test_what_the_agent_did_is_not_tried_again(team, bob, version, end):
    run = ended(submit(team, bob, version).attempts.get().run, "1", end=end)
    with pytest.raises(StillGoing):
        attempt_retry(run=run, by=bob)


def test_a_cancelled_run_may_be_tried_again_but_not_for_a_board(team, bob, version):
    board_made()
    free = ended(submit(team, bob, version).attempts.get().run, None, end="cancelled", status="cancelled")
    assert attempt_retry(run=free, by=bob).place.attempt == 2
    bound = submit(team, bob, version, board="nano-public").attempts.get().run
    with pytest.raises(StillGoing):
        attempt_retry(run=ended(bound, None, end="cancelled", status="cancelled"), by=bob)


def test_the_button_stands_only_where_it_works_and_for_whom_it_does(client, team, alice, bob, charlie, version):
    made = submit(team, bob, version, repeats=3, visibility="public")
    lost, called_off, sound = (attempt.run for attempt in made.attempts.order_by("repeat"))
    ended(lost, None, end="infrastructure", status="failed")
    ended(called_off, None, end="cancelled", status="cancelled")
    ended(sound, "50")
    assert retries_for(bob, made) == {lost.pk, called_off.pk}
    assert not retries_for(charlie, made)
    again = attempt_retry(run=lost, by=bob)
    assert retries_for(alice, made) == {called_off.pk}
    assert again.pk not in retries_for(alice, made)
    for person, buttons in ((bob, 1), (charlie, 0), (None, 0)):
        client.logout() if person is None else client.force_login(person)
        page = client.get(f"/submissions/{made.pk}/").content.decode()
        assert page.count("/retry/") == buttons


def test_no_cancelled_run_of_a_board_has_the_button(team, bob, version):
    board_made()
    made = submit(team, bob, version, board="nano-public")
    ended(made.attempts.get().run, None, end="cancelled", status="cancelled")
    assert not retries_for(bob, made)


def test_a_run_outside_submissions_has_no_further_attempt(team, bob, version):
    with pytest.raises(Missing):
        attempt_retry(run=run_made(team, bob, version), by=bob)


@pytest.mark.parametrize(
    ("facts", "field"),
    [
        ({"tasks": []}, "tasks"),
        ({"repeats": 0}, "repeats"),
        ({"repeats": 11}, "repeats"),
        ({"visibility": "x"}, "visibility"),
    ],
)
def test_a_wish_that_makes_no_sense_names_its_field_and_queues_nothing(team, bob, version, facts, field):
    with pytest.raises(FieldFault) as fault:
        submission_create(team=team, wish=Wish(**{"config": CONFIG, "tasks": [version], **facts}), by=bob)
    assert fault.value.field == field
    assert not Run.objects.exists()


def test_a_faulty_config_queues_nothing(team, bob, version):
    with pytest.raises(SpecErrors):
        submission_create(team=team, wish=Wish(config="name: [", tasks=[version]), by=bob)
    assert not AgentConfig.objects.exists()


def test_a_stranger_can_t_submit_for_a_team(team, charlie, version):
    with pytest.raises(Http404):
        submit(team, charlie, version)


def test_a_board_s_runs_are_public_and_on_its_frozen_version(team, bob, version, tmp_path):
    board_made()
    newer = version_made(tmp_path / "newer", authors=[{"name": "B. Author"}])
    wish = board_wish(Wish(config=CONFIG, tasks=[newer], board="nano-public"))
    run = submission_create(team=team, wish=wish, by=bob).attempts.get().run
    assert (run.task_version, run.visibility) == (version, "public")


@pytest.mark.parametrize(
    ("facts", "field"),
    [
        ({"board": "none-such"}, "board"),
        ({"board": "innovatorbench-20"}, "board"),
        ({"config": CONFIG + "hint: upfront\n"}, "config"),
    ],
)
def test_a_board_takes_no_wish_against_its_rule(version, facts, field):
    board_made()
    with pytest.raises(FieldFault) as fault:
        board_wish(Wish(**{"config": CONFIG, "tasks": [version], "board": "nano-public", **facts}))
    assert fault.value.field == field


def test_a_task_that_is_not_on_the_board_is_refused(version, tmp_path):
    board_made()
    other = version_made(tmp_path / "other", "other-task")
    with pytest.raises(FieldFault, match="other-task"):
        board_wish(Wish(config=CONFIG, tasks=[version, other], board="nano-public"))


def test_lost_runs_are_refunded_and_others_are_not(team, bob, version, settings):
    settings.TEAM_RUNS_PER_DAY = 2
    first, second = (submit(team, bob, version).attempts.get().run for _ in range(2))
    assert quota_of(team).left == 0
    ended(first, None, end="cancelled", status="cancelled")
    assert quota_of(team).left == 0
    ended(second, None, end="infrastructure", status="failed")
    assert quota_of(team).left == 1


def test_a_used_up_quota_says_when_so_many_are_free_again(team, bob, version, settings):
    settings.TEAM_RUNS_PER_DAY = 3
    made = submit(team, bob, version, repeats=3)
    now = timezone.now()
    for hours, attempt in zip((23, 12, 1), made.attempts.all(), strict=True):
        Run.objects.filter(pk=attempt.run_id).update(created_at=now - timedelta(hours=hours))
    for repeats, hours in ((1, 1), (2, 12), (3, 23)):
        with pytest.raises(QuotaUsedUp) as refusal:
            submit(team, bob, version, repeats=repeats)
        assert abs(int(refusal.value.facts["retry_after_s"]) - hours * 3600) < 60
    with pytest.raises(QuotaTooSmall):
        submit(team, bob, version, repeats=4)


def test_a_private_run_of_a_public_submission_is_not_shown_to_others(team, bob, charlie, version):
    made = submit(team, bob, version, repeats=2, visibility="public")
    hidden = made.attempts.get(repeat=1)
    Run.objects.filter(pk=hidden.run_id).update(visibility="private")
    found = submission_get_for(charlie, made.pk)
    assert [each.repeat for each in attempts_for(charlie, found)] == [2]
    assert [each.repeat for each in attempts_for(bob, found)] == [1, 2]


def test_a_further_attempt_is_seen_by_whom_the_run_before_it_was(client, team, bob, version):
    made = submit(team, bob, version, visibility="public")
    lost = ended(made.attempts.get().run, None, end="infrastructure", status="failed")
    run_share(run=lost, by=bob, visibility=Visibility.PRIVATE)
    client.force_login(bob)
    client.post(reverse("submission_retry", args=[lost.pk]))
    again = made.attempts.get(attempt=2).run
    assert again.visibility == "private"
    client.logout()
    for address in (again.get_absolute_url(), made.config.get_absolute_url()):
        assert client.get(address).status_code == 404


def test_a_further_attempt_of_a_run_shared_later_is_public_too(team, bob, version):
    lost = ended(submit(team, bob, version).attempts.get().run, None, end="infrastructure", status="failed")
    shared = run_share(run=lost, by=bob, visibility=Visibility.PUBLIC)
    assert attempt_retry(run=shared, by=bob).visibility == "public"


def test_a_further_attempt_for_a_board_is_public_whatever_was_done_to_the_run_before(team, bob, version):
    board_made()
    lost = submit(team, bob, version, board="nano-public").attempts.get().run
    ended(lost, None, end="infrastructure", status="failed")
    Run.objects.filter(pk=lost.pk).update(visibility="private")
    assert attempt_retry(run=lost, by=bob).visibility == "public"


def test_a_submission_whose_runs_were_all_made_private_is_gone_for_others(client, team, bob, charlie, version):
    made = submit(team, bob, version, repeats=2, visibility="public")
    addresses = (reverse("submission", args=[made.pk]), reverse("api-submission", args=[made.pk]))
    for hidden, seen in ((1, 200), (2, 404)):
        run_share(run=made.attempts.get(repeat=hidden).run, by=bob, visibility=Visibility.PRIVATE)
        for person, status in ((None, seen), (charlie, seen), (bob, 200)):
            client.logout() if person is None else client.force_login(person)
            assert [client.get(address).status_code for address in addresses] == [status] * 2


@pytest.mark.django_db(transaction=True)
def test_of_eight_submits_at_once_as_many_pass_as_the_limit_says(alice, settings, tmp_path):
    """S11: exactly one of eight; seven refusals that say why; numbers unique."""
    settings.TEAM_RUNS_PER_DAY = 1
    version, team = version_made(tmp_path / "package"), alice.personal_team

    def one(_number: int) -> str:
        try:
            submit(team, alice, version)
        except QuotaUsedUp as refusal:
            return refusal.code
        finally:
            connection.close()
        return "queued"

    with ThreadPoolExecutor(8) as pool:
        answers = sorted(pool.map(one, range(8)))
    assert answers == ["queued", *["quota_used_up"] * 7]
    assert Attempt.objects.count() == Run.objects.count() == AgentConfig.objects.count() == 1
