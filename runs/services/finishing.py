"""Room: runs. The end of a run: stop what runs, collect and store the outputs, ask for the final evaluation, give the
nodes back. Each part may be done again by another worker; the final evaluation's row says how far it came.
"""

import logging
from datetime import datetime, timedelta

from django.utils import timezone

from gymnode.errors import EpochTooLow, RequestRefused
from portal.nodes.leasing import lease_release
from runs.database import connection_give_back
from runs.environment import Environment
from runs.eventlog import clock_switch
from runs.failures import Code, Outage, RunFailed
from runs.ledger import Clock
from runs.models.evaluation import By, Evaluation
from runs.models.run import Run
from runs.outputs import outputs_collect
from runs.services.claims import Claim
from runs.services.evaluating import evaluation_request
from runs.services.moves import Fact, run_end, run_locked
from runs.services.preparing import environment_of, environment_open, opening_of
from runs.services.queueing import manifest_of, queue_poke
from runs.services.session import node_errors
from runs.services.terminals import terminals_pull
from runs.services.troubles import away_for
from runs.states import End, Status

CLEAN_FOR = timedelta(hours=1)
CLEAN_AGAIN = timedelta(seconds=10)
log = logging.getLogger(__name__)


def run_finish(claim: Claim, run: Run) -> datetime | None:
    """Finishing: collect and ask, once; then give the nodes back and leave the rest to the evaluator's answer."""
    manifest = manifest_of(run.task_version)
    asked = Evaluation.objects.filter(run=run, by=By.FINAL).exists()
    if not asked and run.leased:
        _collect_and_ask(claim, run)
    elif not asked and manifest.evaluations.final:
        # Its nodes are gone and nothing was collected: no score can come of it, and none is invented.
        raise RunFailed(Code.NODE_LOST, **away_for(run))
    if run.leased:
        nodes_give_back(claim, run)
    if not manifest.evaluations.final:
        _end_unscored(claim)
    return None


def _collect_and_ask(claim: Claim, run: Run) -> None:
    manifest = manifest_of(run.task_version)
    environment = environment_of(claim, run)
    environment_open(environment, opening_of(manifest))
    connection_give_back()
    with node_errors():
        environment.thaw()
        environment.kill()
        terminals_pull(environment, run.pk)
        if not manifest.evaluations.final:
            return
        collected = outputs_collect(environment, manifest)
    with run_locked(claim.run_id, epoch=claim.epoch) as locked:
        clock_switch(locked.pk, Clock.QUEUE, epoch=claim.epoch)
        evaluation_request(
            run=locked, by=By.FINAL, bundle=collected.bundle, step=locked.steps, problems=collected.problems
        )


def _end_unscored(claim: Claim) -> None:
    """A task without a final evaluation: the run is over once its nodes are given back."""
    with run_locked(claim.run_id, epoch=claim.epoch) as run:
        failed = run.end_reason == End.AGENT_ERROR
        to = Status.FAILED if failed else Status.FINISHED
        body = {"reason": run.end_reason, "status": to.value, "code": run.failure_code}
        run_end(run, to, Fact("run_ended", body))


def run_clean(claim: Claim, run: Run) -> datetime | None:
    """A run that is over and still holds nodes: nothing of it stays there. A node that doesn't answer is asked again
    for an hour, then the lease ends all the same; its doctor lists what was left.
    """
    if not run.leased:
        return None
    ended_at = run.ended_at or timezone.now()
    try:
        nodes_give_back(claim, run)
    except Outage:
        if timezone.now() - ended_at < CLEAN_FOR:
            return timezone.now() + CLEAN_AGAIN
        _release(claim, run)
    return None


def nodes_give_back(claim: Claim, run: Run) -> None:
    """End everything of the run on its nodes, remove its files, end the leases. Raises Outage, LeaseLost."""
    environment = environment_of(claim, run)
    connection_give_back()
    with node_errors():
        _last_bytes(environment, run.pk)
        environment.close(remove=True)
    _release(claim, run)


def _last_bytes(environment: Environment, run_id: int) -> None:
    """What the sessions printed to the very end, once nothing prints any more. A node that knows nothing of the run has
    nothing to tell.
    """
    try:
        environment.kill()
        terminals_pull(environment, run_id)
    except EpochTooLow:
        raise
    except RequestRefused as refusal:
        log.info("run %s: no terminal bytes at the end (%s)", run_id, refusal.code)


def _release(claim: Claim, run: Run) -> None:
    with run_locked(claim.run_id, epoch=claim.epoch) as locked:
        lease_release(run_key=run.key)
        locked.leased = False
        locked.save(update_fields=["leased"])
    run.leased = False
    queue_poke()
