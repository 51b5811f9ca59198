"""Results that the evaluator's key has signed and that are no scores: none is stored as one, nobody gets a 500."""

import base64
import json
import secrets
from datetime import UTC, datetime

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from evaluator.contract import ScoreResult, sign
from portal.leaderboard.entries import on_run_changed
from portal.leaderboard.models import LeaderboardEntry
from runs.models.evaluation import Evaluation
from runs.models.run import Run
from runs.services.evaluating import evaluation_record
from tests.site.leaderboard.world import ended, evaluation_made, run_made


@pytest.fixture
def asked(team, alice, version, board) -> Evaluation:
    """An open final evaluation of a run that has ended."""
    run = ended(run_made(team, alice, version), None)
    made = evaluation_made(run, None, state="requested")
    Evaluation.objects.filter(pk=made.pk).update(nonce=secrets.token_urlsafe(24))
    made.refresh_from_db()
    return made


def envelope(asked: Evaluation, key: bytes, metrics: dict[str, float]) -> bytes:
    """A result as the evaluator would sign it."""
    result = ScoreResult(
        evaluation=asked.pk,
        try_no=asked.try_no,
        nonce=asked.nonce,
        task_digest=asked.run.task_version.digest,
        bundle_sha256=asked.bundle_sha256,
        outcome="valid",
        metrics=metrics,
        message="",
        seconds=1.0,
        sandbox_level=1,
        facts={},
        finished_at=datetime.now(UTC),
    )
    return sign(result, key)


def forged(good: bytes, key: bytes, raw: str) -> bytes:
    """The same with `raw` JSON in place of the metric's value, signed again with the evaluator's own key."""
    head = json.loads(good)
    head["payload"] = head["payload"].replace('"accuracy":0.125', f'"accuracy":{raw}')
    signed = b"innovatorbench-score-1\n" + head["kind"].encode() + b"\n" + head["payload"].encode()
    head["signature"] = base64.b64encode(load_pem_private_key(key, None).sign(signed)).decode()
    return json.dumps(head).encode()


def settled(client, asked: Evaluation) -> Evaluation:
    """The evaluation now, after the board and the API have been asked about it."""
    on_run_changed({"run": asked.run_id})
    for address in ("/api/v1/leaderboards/nano-public/", f"/api/v1/runs/{asked.run_id}/evaluations/"):
        assert client.get(address).status_code == 200
    asked.refresh_from_db()
    return asked


NO_NUMBERS = ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", f"1{'0' * 400}", "9" * 5000, '"abc"', '"0.5"', "null"]
NO_NUMBERS += ["[1]", "[[1]]", "true", "false", "{}", '{"accuracy":1}', '0.5,"accuracy":0.5']


@pytest.mark.parametrize("raw", NO_NUMBERS)
def test_a_metric_that_is_no_number_is_dropped_and_the_board_stays(client, asked, settings, raw):
    """T3"""
    key = settings.EVALUATOR_KEY_PATH.read_bytes()
    assert evaluation_record(envelope=forged(envelope(asked, key, {"accuracy": 0.125}), key, raw)) is False
    now = settled(client, asked)
    assert (now.state, now.score, now.metrics) == ("requested", None, {})
    assert not LeaderboardEntry.objects.exists()


@pytest.mark.parametrize("metrics", [{}, {"accuracy": 0.6, "other": 1.0}, {"Accuracy": 0.6}])
def test_missing_and_unknown_metrics_are_our_failure_and_never_a_score(client, asked, settings, metrics):
    """S5: expected against got stands in the curators' log."""
    key = settings.EVALUATOR_KEY_PATH.read_bytes()
    for _ in range(3):
        assert evaluation_record(envelope=envelope(asked, key, metrics))
        asked.refresh_from_db()
    now = settled(client, asked)
    assert (now.state, now.valid, now.score) == ("failed", None, None)
    assert "accuracy" in now.log_tail
    assert not LeaderboardEntry.objects.exists()


def test_a_sound_result_counts(client, asked, settings):
    key = settings.EVALUATOR_KEY_PATH.read_bytes()
    assert evaluation_record(envelope=envelope(asked, key, {"accuracy": 0.6}))
    assert (settled(client, asked).score, LeaderboardEntry.objects.get().mean_final) == (80, 80)


@pytest.mark.parametrize(("value", "score"), [(1e308, 100), (-1e308, 0), (5e-324, 0), (-0.0, 0), (10**300, 100)])
def test_a_finite_result_of_any_size_is_stored_whole_and_shown(client, asked, settings, value, score):
    """T3: its points stay between 0 and 100, and every page that shows it stands."""
    Run.objects.filter(pk=asked.run_id).update(visibility="public")
    assert evaluation_record(envelope=envelope(asked, settings.EVALUATOR_KEY_PATH.read_bytes(), {"accuracy": value}))
    now = settled(client, asked)
    assert (now.score, float(now.metrics["accuracy"])) == (score, float(value))
    entry = LeaderboardEntry.objects.get()
    for address in (asked.run.get_absolute_url(), entry.board.get_absolute_url(), entry.get_absolute_url(), "/"):
        assert client.get(address).status_code == 200, address
