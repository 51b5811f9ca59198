"""The evidence page's facts: what was run, on what, what people did, and all runs of the team on the board."""

import pytest

from portal.leaderboard.entries import on_run_changed
from portal.leaderboard.evidence import entry_evidence
from portal.leaderboard.models import LeaderboardEntry
from runs.eventlog import event_append
from tests.site.catalog.packages import HINT
from tests.site.leaderboard.world import CONFIG, ended, evaluation_made, leased, run_made


@pytest.fixture
def two(team, alice, version, board):
    """Two ended runs of one row, and one run of another config."""
    first, second = (ended(run_made(team, alice, version), score) for score in ("40", "60"))
    other = ended(run_made(team, alice, version, text=CONFIG.replace("reasoner", "other")), "10")
    leased(first)
    on_run_changed({"run": first.pk})
    return first, second, other


def evidence_of(run):
    entry = LeaderboardEntry.objects.get(config=run.config_id)
    return entry_evidence("nano-public", entry.pk)


def test_digests_versions_levels_and_machines_are_there(two, version):
    first = two[0]
    found = evidence_of(first)
    assert (found.config_digest, found.config_version) == (first.config.digest, 1)
    (frozen,) = found.frozen
    assert (frozen.version, frozen.digest, frozen.seed, frozen.revision) == (1, version.digest, "public", 1)
    shown = next(run for run in found.runs if run.id == first.pk)
    assert (shown.isolation, shown.run_here, shown.evaluations[0].sandbox_level) == ("namespace", True, 1)
    assert (shown.nodes[0].owner, shown.nodes[0].cpus) == ("site", 1)


def test_all_runs_of_the_team_on_the_board_are_listed(two):
    found = evidence_of(two[0])
    assert [(run.id, run.mine, run.fate) for run in found.runs] == [
        (two[0].pk, True, "counted"),
        (two[1].pk, True, "counted"),
        (two[2].pk, False, "counted"),
    ]


def test_repeats_are_counted_by_what_became_of_them(two, team, alice, version):
    ended(run_made(team, alice, version), None, end="infrastructure", status="failed")
    ended(run_made(team, alice, version), None, end="cancelled", status="cancelled")
    run_made(team, alice, version)
    (count,) = evidence_of(two[0]).repeats
    assert (count.planned, count.done, count.failed, count.infrastructure, count.pending) == (5, 2, 1, 1, 1)


def test_what_people_did_is_listed_and_the_engine_s_own_resumption_is_not(two):
    event_append(two[0].pk, "paused", {"by": "alice"}, epoch=None)
    event_append(two[0].pk, "resumed", {"reason": "evaluation"}, epoch=None)
    event_append(two[0].pk, "message_sent", {"text": "try harder", "by": "bob"}, epoch=None)
    done = [(one.kind, one.by) for one in evidence_of(two[0]).interventions]
    assert done == [("paused", "alice"), ("message_sent", "bob")]


def test_the_json_is_for_everybody_and_holds_nothing_hidden(client, two):
    evaluation_made(two[0], two[0].score, by="agent")
    two[0].evaluations.update(facts={"seed": 424242, "walls": "bubblewrap"}, log_tail="the hidden log")
    entry = LeaderboardEntry.objects.get(config=two[0].config_id)
    answer = client.get(f"/api/v1/leaderboards/nano-public/entries/{entry.pk}/")
    assert answer.status_code == 200
    assert answer.json()["runs"][0]["evaluations"][0]["versions"] == {"walls": "bubblewrap"}
    body = answer.content.decode()
    for hidden in ("424242", "the hidden log", HINT, "192.0.2.9", "box-site"):
        assert hidden not in body


@pytest.mark.parametrize("shared", [True, False])
def test_a_shared_user_of_site_and_evaluator_is_said(two, settings, shared):
    settings.SHARED_OS_USER = shared
    assert evidence_of(two[0]).shared_os_user is shared


def test_a_reported_row_has_its_source_and_no_runs(client, published):
    entry = published.entries.filter(ranked=True).first()
    found = entry_evidence("innovatorbench-20", entry.pk)
    assert found.row.source.startswith("arXiv")
    assert (found.runs, found.repeats, len(found.row.cells)) == ((), (), 20)
    assert client.get(entry.get_absolute_url()).status_code == 200


def test_an_entry_of_another_board_is_not_found(client, two, published):
    entry = published.entries.first()
    assert client.get(f"/api/v1/leaderboards/nano-public/entries/{entry.pk}/").status_code == 404


def test_the_page_says_what_the_evidence_holds(client, two):
    event_append(two[0].pk, "message_sent", {"text": "try harder", "by": "bob"}, epoch=None)
    entry = LeaderboardEntry.objects.get(config=two[0].config_id)
    answer = client.get(entry.get_absolute_url())
    page = answer.content.decode()
    for said in (two[0].config.digest, two[0].task_version.digest, "0" * 16, "message sent", "bob", "namespace"):
        assert said in page
    for run in two:
        assert run.get_absolute_url() in page
    assert f'href="/api/v1/leaderboards/nano-public/entries/{entry.pk}/" download' in page
    for hidden in ("try harder", HINT, "192.0.2.9", "box-site"):
        assert hidden not in page


def test_a_reported_row_says_that_it_has_no_runs(client, published):
    entry = published.entries.filter(ranked=True).first()
    page = client.get(entry.get_absolute_url()).content.decode()
    assert "the figures are the source" in page
    assert "h-evals" not in page
