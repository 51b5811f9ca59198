"""Room: runs. From a wish to a run with nodes: queueing, and who starts next.

Fair share: the team with the fewest active runs first, among equals first come. Every start is a transaction of its own
under one advisory lock, so that any number of workers may ask at once. Quotas are the submissions' business.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from django.db import connection, transaction
from django.db.models import Count
from django.utils import timezone

from evaluator.manifest import Manifest
from portal.accounts.models import Team, User
from portal.catalog.models import TaskVersion
from portal.nodes.leasing import nodes_lease
from portal.nodes.needs import NodeNeed
from runs.agent.spec import AgentSpec
from runs.agent.spec_parts import Limits as SpecLimits
from runs.enqueue import advance_enqueue
from runs.eventlog import clock_switch
from runs.ledger import Clock
from runs.models.config import AgentConfig
from runs.models.run import Run
from runs.services.moves import run_locked
from runs.states import STARTED, Status, Visibility, move_check
from runs.version import ENGINE_VERSION

SCHEDULER_LOCK = 0x1B5C_4ED0
LOOK_AGAIN_S = 1.0
AT_MOST = 2_000


@dataclass(frozen=True)
class Queued:
    """A queued run as the scheduler sees it. Runs of one `kind` need the same nodes."""

    run_id: int
    team_id: int
    kind: tuple[int, int, bool]


def fair_order(queued: Iterable[Queued], active: Mapping[int, int]) -> list[Queued]:
    """Queued runs in the order in which they should be tried now: fewest active runs of the team, then first come."""
    return sorted(queued, key=lambda each: (active.get(each.team_id, 0), each.run_id))


def manifest_of(version: TaskVersion) -> Manifest:
    """The typed manifest of a stored task version."""
    return Manifest.model_validate(version.manifest)


def needs_of(version: TaskVersion) -> tuple[NodeNeed, ...]:
    """What the task asks of the nodes, one entry a role."""
    return tuple(
        NodeNeed(
            role=need.role,
            count=need.count,
            gpus=need.gpus,
            gpu_memory_gb=need.gpu_memory_gb,
            memory_gb=need.memory_gb,
            cpus=need.cpus,
            labels=tuple(need.labels),
            internet=need.internet,
        )
        for need in manifest_of(version).nodes
    )


def run_queue(
    *,
    team: Team,
    config: AgentConfig,
    task_version: TaskVersion,
    by: User,
    board: str | None = None,
    visibility: str = Visibility.PRIVATE,
) -> Run:
    """Queue one run, in the caller's transaction; a worker hears of it after the commit. A board makes it public."""
    now = timezone.now()
    run = Run(
        team=team,
        created_by=by,
        config=config,
        task_version=task_version,
        board=board or "",
        visibility=Visibility.PUBLIC if board else visibility,
        engine_version=ENGINE_VERSION,
        wake_at=now,
        clock_kind=Clock.QUEUE,
        clock_since=now,
    )
    _limit(run, manifest_of(task_version), AgentSpec.model_validate(config.spec).limits)
    run.save(force_insert=True)
    advance_enqueue(run.pk)
    return run


def _limit(run: Run, manifest: Manifest, spec: SpecLimits) -> None:
    """The lower of the task's and the config's limits holds; the task sets none on money and tokens."""
    run.limit_s = min(manifest.limits.hours, spec.hours or manifest.limits.hours) * 3600
    run.limit_steps = min(manifest.limits.steps, spec.steps or manifest.limits.steps)
    run.limit_usd = spec.usd
    run.limit_tokens = spec.tokens
    run.limit_evaluations = manifest.evaluations.by_agent


def queue_start() -> list[int]:
    """Lease nodes for as many queued runs as can be had now, fairly; returns the runs that start."""
    started: list[int] = []
    hopeless: set[tuple[int, int, bool]] = set()
    while True:
        with transaction.atomic():
            found = _start_next(hopeless)
        if found is None:
            break
        if isinstance(found, int):
            started.append(found)
        else:
            hopeless.add(found)
    if hopeless:
        again = timezone.now() + timedelta(seconds=LOOK_AGAIN_S)
        Run.objects.filter(status=Status.QUEUED).update(wake_at=again)
    return started


def _start_next(hopeless: Collection[tuple[int, int, bool]]) -> int | tuple[int, int, bool] | None:
    """Start one run and name it; or name the kind that finds no nodes; or None when nothing is left to try."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [SCHEDULER_LOCK])
        if not cursor.fetchone()[0]:
            return None
    waiting = [each for each in queue_order() if each.kind not in hopeless]
    if not waiting:
        return None
    with run_locked(waiting[0].run_id) as run:
        if run.status != Status.QUEUED:
            return None
        leases = nodes_lease(
            run_key=run.key, team=run.team, needs=needs_of(run.task_version), site_only=waiting[0].kind[2]
        )
        if leases is None:
            return waiting[0].kind
        _started(run)
    return run.pk


def _started(run: Run) -> None:
    """Queued -> preparing. No event: the first one of every run is the task. Time until the agent starts is ours."""
    move_check(run.pk, run.status, Status.PREPARING)
    now = timezone.now()
    clock_switch(run.pk, Clock.INFRASTRUCTURE, epoch=None)
    Run.objects.filter(pk=run.pk).update(
        status=Status.PREPARING, leased=True, started_at=now, wake_at=now, job_sent_at=now
    )
    advance_enqueue(run.pk)


def queue_order() -> list[Queued]:
    """All queued runs in the order in which they are tried: what the queue page calls their position."""
    rows = (
        Run.objects.filter(status=Status.QUEUED).order_by("pk").values_list("pk", "team_id", "task_version_id", "board")
    )
    queued = [Queued(pk, team, (team, version, bool(board))) for pk, team, version, board in rows[:AT_MOST]]
    counts = Run.objects.filter(status__in=STARTED).values_list("team_id").annotate(Count("pk")).order_by()
    return fair_order(queued, dict(counts))


def queue_place(run: Run) -> int | None:
    """The place of `run` in the queue, from 1; None when it isn't in it."""
    return next((place for place, each in enumerate(queue_order(), 1) if each.run_id == run.pk), None)


def queue_poke() -> None:
    """Nodes were given back: look at the queue now."""
    Run.objects.filter(status=Status.QUEUED).update(wake_at=timezone.now())
