"""Evaluations: what counts, what is tried again, what is dropped. Results are signed as the evaluator signs them."""

import json
from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from evaluator.contract import Outcome, ScoreResult, keypair, sign
from portal.catalog.models import ScoringRevision
from portal.core.blobs import blobs
from runs.models.evaluation import By, Evaluation
from runs.models.log import OutboxMessage
from runs.models.run import Run
from runs.scoring.bundle import Bundle
from runs.scoring.fake import FakeEvaluator, Verdict
from runs.services.controls import run_cancel
from runs.services.evaluating import (
    evaluation_record,
    evaluation_reopen,
    evaluation_request,
    evaluations_resend,
    results_take,
)
from runs.services.moves import run_locked
from runs.services.ticking import tick
from runs.states import End, Status

BUNDLE = Bundle("a" * 64, 10)


@pytest.fixture
def finishing(queue) -> Run:
    """A run that has stopped and whose outputs are stored."""
    blobs().put(f"bundles/{BUNDLE.sha256}", b"0123456789")
    run = queue()
    begun = timezone.now() - timedelta(minutes=5)
    facts = {"status": Status.FINISHING, "end_reason": End.FINISH, "started_at": begun, "wake_at": None}
    Run.objects.filter(pk=run.pk).update(**facts)
    return Run.objects.get(pk=run.pk)


def ask(run: Run, by: By = By.FINAL, **facts) -> Evaluation:
    with run_locked(run.pk) as locked:
        return evaluation_request(run=locked, by=by, bundle=BUNDLE, **facts)


def fresh(evaluation: Evaluation) -> Evaluation:
    return Evaluation.objects.select_related("run").get(pk=evaluation.pk)


def test_a_valid_result_ends_the_run_with_its_score(finishing: Run, scorer: FakeEvaluator) -> None:
    evaluation = ask(finishing)
    tick()
    done = fresh(evaluation)
    assert (done.state, done.valid, done.score, done.metrics) == ("scored", True, 80, {"accuracy": 0.6})
    assert (done.run.status, done.run.score, done.run.best) == ("finished", 80, 80)
    assert OutboxMessage.objects.filter(topic="run_ended").count() == 1


def test_an_invalid_format_scores_nothing_and_counts(finishing: Run, scorer: FakeEvaluator) -> None:
    scorer.answer = lambda request: Verdict(Outcome.INVALID, message="line 41: no number")
    evaluation = ask(finishing)
    tick()
    done = fresh(evaluation)
    assert (done.state, done.valid, done.score, done.run.score) == ("scored", False, 0, 0)
    assert done.run.best is None


def test_our_own_crash_is_tried_three_times_and_never_a_zero(finishing: Run, scorer: FakeEvaluator) -> None:
    """R11"""
    scorer.answer = lambda request: Verdict(Outcome.CRASHED)
    evaluation = ask(finishing)
    for _ in range(5):
        tick()
    done = fresh(evaluation)
    assert (done.state, done.try_no, done.score) == ("failed", 3, None)
    assert (done.run.status, done.run.score, done.run.failure_code) == ("finished", None, "evaluation_failed")
    assert len({request.nonce for request in scorer.requests}) == 3


def test_a_failed_evaluation_is_scored_later_from_the_stored_bundle(finishing: Run, scorer: FakeEvaluator) -> None:
    scorer.answer = lambda request: Verdict(Outcome.CRASHED)
    evaluation = ask(finishing)
    for _ in range(5):
        tick()
    scorer.answer = lambda request: Verdict(accuracy=0.6)
    evaluation_reopen(evaluation=fresh(evaluation))
    tick()
    done = fresh(evaluation)
    assert (done.run.status, done.run.score, done.run.failure_code) == ("finished", 80, "")


def test_an_answer_to_an_old_try_is_dropped(finishing: Run, scorer: FakeEvaluator) -> None:
    scorer.silent = True
    evaluation = ask(finishing)
    old = scorer.envelope(scorer.requests[0])
    Evaluation.objects.filter(pk=evaluation.pk).update(try_no=2, nonce="another-nonce-of-ours")
    assert evaluation_record(envelope=old) is False
    assert fresh(evaluation).state == "requested"


def test_a_replayed_result_changes_nothing(finishing: Run, scorer: FakeEvaluator) -> None:
    scorer.silent = True
    ask(finishing)
    envelope = scorer.envelope(scorer.requests[0])
    assert evaluation_record(envelope=envelope) is True
    assert evaluation_record(envelope=envelope) is False
    assert OutboxMessage.objects.filter(topic="evaluation_scored").count() == 1


def altered(envelope: bytes) -> bytes:
    whole = json.loads(envelope)
    return json.dumps({**whole, "payload": whole["payload"].replace("0.6", "0.7")}).encode()


@pytest.mark.parametrize("spoil", [altered, lambda envelope: b"{}", lambda envelope: envelope[:-20]])
def test_an_altered_result_is_dropped(finishing: Run, scorer: FakeEvaluator, spoil) -> None:
    scorer.silent = True
    evaluation = ask(finishing)
    assert evaluation_record(envelope=spoil(scorer.envelope(scorer.requests[0]))) is False
    assert fresh(evaluation).state == "requested"


def test_a_result_signed_by_somebody_else_is_dropped(finishing: Run, scorer: FakeEvaluator) -> None:
    scorer.silent = True
    evaluation = ask(finishing)
    request = scorer.requests[0]
    names = ("evaluation", "try_no", "nonce", "task_digest", "bundle_sha256")
    facts = {name: getattr(request, name) for name in names}
    result = ScoreResult(
        **facts,
        outcome=Outcome.VALID,
        metrics={"accuracy": 1.0},
        message="",
        seconds=1.0,
        sandbox_level=1,
        facts={},
        finished_at=timezone.now(),
    )
    assert evaluation_record(envelope=sign(result, keypair()[0])) is False
    assert fresh(evaluation).state == "requested"


@pytest.mark.parametrize("metrics", [{"acuracy": 0.6}, {"accuracy": 0.6, "extra": 1.0}, {}])
def test_metrics_that_are_not_the_tasks_store_no_score(finishing: Run, scorer: FakeEvaluator, metrics) -> None:
    """T3, S5: unknown or missing keys are the evaluator's failure, with expected and got in its log."""
    scorer.answer = lambda request: Verdict(**metrics)
    evaluation = ask(finishing)
    for _ in range(5):
        tick()
    done = fresh(evaluation)
    assert (done.state, done.score, done.run.score, done.message) == ("failed", None, None, "")
    assert done.log_tail == f"metrics refused: expected accuracy; got {', '.join(sorted(metrics)) or 'none'}"


def test_a_failure_of_ours_is_said_to_be_tried_again_until_it_is_given_up(
    finishing: Run, scorer: FakeEvaluator, client, alice
) -> None:
    """S5, R16: whatever the evaluator says of further tries, the page goes by what the site does."""
    scorer.answer = lambda request: Verdict(Outcome.CRASHED, message="it failed and will be tried again")
    evaluation = ask(finishing)
    client.force_login(alice)
    said = []
    for _ in range(3):
        evaluations_resend()
        results_take()
        said.append(client.get(finishing.get_absolute_url()).content.decode())
    assert fresh(evaluation).state == "failed"
    assert ["is tried again (try 2)" in said[0], "is tried again (try 3)" in said[1]] == [True, True]
    assert "tried again" not in said[2]
    assert "Scoring failed on our side, 3 times, and was given up" in said[2]
    assert "Ask those who run this site to have them scored again" in said[2]


def test_an_unanswered_request_is_sent_again(finishing: Run, scorer: FakeEvaluator) -> None:
    scorer.down = True
    evaluation = ask(finishing)
    assert fresh(evaluation).sent_at is None
    scorer.down = False
    Evaluation.objects.filter(pk=evaluation.pk).update(requested_at=timezone.now() - timedelta(seconds=5))
    assert evaluations_resend() == 1
    assert evaluations_resend() == 0
    tick()
    assert fresh(evaluation).state == "scored"


def test_a_request_that_the_queue_lost_is_sent_again(finishing: Run, scorer: FakeEvaluator) -> None:
    scorer.silent = True
    evaluation = ask(finishing)
    scorer._open.clear()
    Evaluation.objects.filter(pk=evaluation.pk).update(sent_at=timezone.now() - timedelta(seconds=11))
    assert evaluations_resend() == 1


@pytest.mark.parametrize("changed", [{"sandbox_level": 2}, {"facts": {"evaluator": "fake", "numpy": "9.9"}}])
def test_the_same_bytes_are_scored_anew_where_scoring_works_otherwise_than_then(finishing, scorer, changed) -> None:
    first = ask(finishing, By.AGENT, action_id="a.1.0")
    tick()
    assert fresh(ask(finishing, By.AGENT, action_id="a.2.0")).from_store_id == first.pk
    other = Bundle("b" * 64, 10)
    blobs().put(f"bundles/{other.sha256}", b"0123456789")
    with run_locked(finishing.pk) as locked:
        newest = evaluation_request(run=locked, by=By.AGENT, bundle=other, action_id="a.3.0")
    tick()
    assert fresh(newest).state == "scored"
    Evaluation.objects.filter(pk=newest.pk).update(**changed)
    assert fresh(ask(finishing, By.AGENT, action_id="a.4.0")).state == "requested"


def test_the_newest_scoring_revision_scores(finishing: Run, scorer: FakeEvaluator) -> None:
    version = finishing.task_version
    score = {**version.manifest["score"], "formula": "acc * 50"}
    ScoringRevision.objects.create(task_version=version, number=2, score=score, reason="mended")
    evaluation = ask(finishing)
    tick()
    done = fresh(evaluation)
    assert (done.score, done.revision.number) == (Decimal(40), 2)


def test_a_cancelled_run_ignores_late_results(finishing: Run, scorer: FakeEvaluator, alice) -> None:
    """R7"""
    scorer.silent = True
    ask(finishing)
    run_cancel(run=finishing, by=alice)
    evaluation_record(envelope=scorer.envelope(scorer.requests[0]))
    finishing.refresh_from_db()
    assert (finishing.status, finishing.score, finishing.best) == ("cancelled", None, None)


def test_the_sandbox_is_charged_and_our_queue_is_not(finishing: Run, scorer: FakeEvaluator) -> None:
    begun = timezone.now() - timedelta(seconds=60)
    Run.objects.filter(pk=finishing.pk).update(clock_kind="queue", clock_since=begun, charged_s=0)
    scorer.answer = lambda request: Verdict(accuracy=0.6, seconds=20.0)
    ask(finishing)
    tick()
    finishing.refresh_from_db()
    assert 19.9 < finishing.charged_s < 20.1
    assert {i.kind for i in finishing.intervals.all()} >= {"queue", "evaluation"}
