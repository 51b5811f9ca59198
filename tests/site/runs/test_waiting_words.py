"""What a run under way says of its waiting: asleep until when, being scored, its place in the queue."""

from datetime import UTC, datetime

import pytest

from runs.models.run import Run
from runs.presenters import reason_text
from tests.site.leaderboard.world import run_made, version_made


@pytest.fixture
def run(team, alice, settings, tmp_path) -> Run:
    settings.BLOBS_URL = f"file://{tmp_path}/blobs"
    return run_made(team, alice, version_made(tmp_path / "package"), board="")


def waiting(run: Run, reason: str, **columns: object) -> str:
    return reason_text(Run(pk=run.pk, status="waiting", waiting_reason=reason, **columns))


def test_a_sleeping_run_says_until_when(run):
    assert waiting(run, "sleep", wake_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)) == "asleep until 03:04:05 UTC"
    shown = waiting(run, "sleep", wake_at=datetime(2026, 1, 2, tzinfo=UTC), conditions={"session": "training"})
    assert shown == "asleep until session training is idle"


def test_other_waits_say_what_for(run):
    assert waiting(run, "evaluation") == "its outputs are being scored"
    assert waiting(run, "model") == "the model provider"


def test_a_queued_run_names_its_place(client, alice, team, run):
    later = run_made(team, alice, run.task_version, board="")
    client.force_login(alice)
    for place, each in ((1, run), (2, later)):
        assert f"Queued, place {place} at" in client.get(each.get_absolute_url()).content.decode()
