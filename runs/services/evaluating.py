"""Room: runs. Evaluations: asked for, sent, answered. The result and the state it leads to are one transaction.

Requests go out signed with the site's key; results must be signed by the evaluator and name the evaluation, the try and
the nonce that are open, or they are dropped. What a result means for a run is in settling.py.
"""

import hashlib
import logging
import secrets
from collections.abc import Sequence
from datetime import timedelta
from functools import cache
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.db.models import Max, Q
from django.utils import timezone

from evaluator.contract import ContractError, Malformed, ScoreRequest, ScoreResult, sign, verify
from portal.core.blobs import BlobMissing, BlobsUnavailable, blobs
from runs.models.evaluation import By, Evaluation, EvaluationState
from runs.models.run import Run
from runs.scoring.bundle import Bundle, bundle_key
from runs.scoring.client import EvaluatorDown, evaluator
from runs.selectors import hint_penalty, working_s
from runs.services.queueing import manifest_of
from runs.services.settling import result_settle, store_answer

ADDRESS_LIVES_S = 6 * 3600
LOOK_AFTER_S = 10.0
SLACK_S = 60.0
ENVIRONMENT_FACTS = ("walls", "landlock_abi", "machine", "system", "python", "numpy", "openblas_coretype", "evaluator")
log = logging.getLogger(__name__)


def evaluation_request(
    *, run: Run, by: By, bundle: Bundle, action_id: str = "", step: int = 0, problems: Sequence[str] = ()
) -> Evaluation:
    """Ask for an evaluation of a stored bundle, in the caller's transaction, with the run's row locked.

    Idempotent by the action (or by being the final one). A bundle that was scored already under the same task version
    is answered from the store at once; else the request is sent after the commit.
    """
    known = Q(run=run, action_id=action_id) if action_id else Q(run=run, by=By.FINAL)
    found = Evaluation.objects.filter(known).first()
    if found is not None:
        return found
    last = Evaluation.objects.filter(run=run).aggregate(last=Max("ordinal"))["last"] or 0
    evaluation = Evaluation.objects.create(
        run=run,
        ordinal=last + 1,
        by=by,
        action_id=action_id,
        step=step,
        nonce=secrets.token_urlsafe(24),
        bundle_sha256=bundle.sha256,
        bundle_bytes=bundle.size,
        penalty=hint_penalty(run),
        problems=list(problems),
        working_s=working_s(run),
        requested_at=timezone.now(),
    )
    stored = _scored_before(evaluation)
    if stored is not None:
        store_answer(evaluation, stored)
    else:
        transaction.on_commit(lambda: evaluation_send(evaluation.pk))
    return evaluation


def _scored_before(evaluation: Evaluation) -> Evaluation | None:
    """What the same bytes scored under the same task version, where scoring works now as it did then."""
    scored = Evaluation.objects.filter(state=EvaluationState.SCORED, from_store=None)
    same = scored.filter(bundle_sha256=evaluation.bundle_sha256, run__task_version=evaluation.run.task_version_id)
    found, newest = same.order_by("-pk").first(), scored.order_by("-pk").first()
    if found is None or newest is None or _environment(found) != _environment(newest):
        return None
    return found


def _environment(evaluation: Evaluation) -> tuple[object, ...]:
    """Isolation, machine and versions of a scoring: what another score than before may come from."""
    return (evaluation.sandbox_level, *(evaluation.facts.get(name) for name in ENVIRONMENT_FACTS))


def evaluation_send(evaluation_id: int) -> bool:
    """Hand an open request to the evaluator. False when the way is closed: the tick tries again."""
    evaluation = Evaluation.objects.select_related("run__task_version").get(pk=evaluation_id)
    if evaluation.state != EvaluationState.REQUESTED:
        return False
    try:
        ticket = evaluator().submit(sign(_request(evaluation), _site_key()))
    except (EvaluatorDown, BlobMissing, BlobsUnavailable, OSError) as problem:
        log.warning("evaluation %s was not sent: %s", evaluation_id, type(problem).__name__)
        return False
    Evaluation.objects.filter(pk=evaluation_id, try_no=evaluation.try_no).update(sent_at=timezone.now(), ticket=ticket)
    return True


def _request(evaluation: Evaluation) -> ScoreRequest:
    version = evaluation.run.task_version
    return ScoreRequest(
        evaluation=evaluation.pk,
        try_no=evaluation.try_no,
        nonce=evaluation.nonce,
        task_digest=version.digest,
        sealed_address=blobs().address(version.sealed_blob, ADDRESS_LIVES_S),
        sealed_sha256=version.sealed_sha256,
        bundle_address=blobs().address(bundle_key(evaluation.bundle_sha256), ADDRESS_LIVES_S),
        bundle_sha256=evaluation.bundle_sha256,
        size=evaluation.bundle_bytes,
        seed=_seed(version.digest),
        issued_at=timezone.now(),
    )


def _seed(task_digest: str) -> int:
    """The same for every scoring of a task here, so that the same bundle gets the same score; no agent can guess it."""
    digest = hashlib.sha256(_site_key() + task_digest.encode()).digest()
    return int.from_bytes(digest[:6], "big")


def results_take() -> int:
    """Take what the evaluator has answered; returns how many results were stored. Bad ones are dropped, and noted."""
    stored = 0
    for delivered in evaluator().results():
        stored += evaluation_record(envelope=delivered.envelope)
        evaluator().settle(delivered)
    return stored


def evaluation_record(*, envelope: bytes) -> bool:
    """Store one signed result with all that follows from it; False when it was dropped: altered, late, replayed, or the
    answer to a try that is no longer open.
    """
    try:
        result = verify(envelope, _evaluator_key())
        if not isinstance(result, ScoreResult):
            raise Malformed("a request came back instead of a result")
    except ContractError as problem:
        log.warning("a result was dropped: %s", type(problem).__name__)
        return False
    with transaction.atomic():
        open_one = Evaluation.objects.filter(pk=result.evaluation, state=EvaluationState.REQUESTED)
        run_id = open_one.values_list("run_id", flat=True).first()
        if run_id is None:
            log.info("a result for evaluation %s was dropped: none is open", result.evaluation)
            return False
        # The run's row first, then the evaluation's, as everywhere: two locks taken in one order never meet in a ring.
        run = Run.objects.select_for_update(no_key=True).get(pk=run_id)
        evaluation = open_one.select_for_update().first()
        if evaluation is None or not _answers(result, evaluation, run):
            log.warning("a result for evaluation %s was dropped: not the open try", result.evaluation)
            return False
        if result_settle(run, evaluation, result, envelope.decode()):
            transaction.on_commit(lambda: evaluation_send(evaluation.pk))
    return True


def _answers(result: ScoreResult, evaluation: Evaluation, run: Run) -> bool:
    return (
        result.try_no == evaluation.try_no
        and secrets.compare_digest(result.nonce, evaluation.nonce)
        and result.bundle_sha256 == evaluation.bundle_sha256
        and result.task_digest == run.task_version.digest
    )


def evaluations_resend() -> int:
    """Send again what the evaluator doesn't know of or hasn't answered in its time; returns how many went out."""
    now = timezone.now()
    looked = Q(sent_at=None, requested_at__lt=now - timedelta(seconds=1)) | Q(
        sent_at__lt=now - timedelta(seconds=LOOK_AFTER_S)
    )
    late = Evaluation.objects.filter(looked, state=EvaluationState.REQUESTED).select_related("run__task_version")
    return sum(_overdue(each) and evaluation_send(each.pk) for each in late.order_by("requested_at")[:100])


def _overdue(evaluation: Evaluation) -> bool:
    if evaluation.sent_at is None or not evaluator().holds(evaluation.ticket):
        return True
    patience = 2 * manifest_of(evaluation.run.task_version).sandbox.seconds + SLACK_S
    return (timezone.now() - evaluation.sent_at).total_seconds() > patience


def evaluation_reopen(*, evaluation: Evaluation) -> None:
    """Score a stored bundle again whose evaluation failed through us: three new tries. Twice is fine."""
    with transaction.atomic():
        changed = Evaluation.objects.filter(pk=evaluation.pk, state=EvaluationState.FAILED).update(
            state=EvaluationState.REQUESTED, try_no=1, nonce=secrets.token_urlsafe(24), sent_at=None, ticket=""
        )
        if changed:
            transaction.on_commit(lambda: evaluation_send(evaluation.pk))


def _site_key() -> bytes:
    return _pem(settings.SITE_KEY_PATH)


def _evaluator_key() -> bytes:
    return _pem(settings.EVALUATOR_PUBLIC_KEY_PATH)


@cache
def _pem(path: Path) -> bytes:
    return path.read_bytes()
