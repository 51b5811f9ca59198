"""Room: portal.leaderboard. Why a row can be trusted: everything a reader needs to check it, read from stored rows.

Runs for a board are public from their first event, so the whole list is for everybody. Logs, hints, node addresses and
keys are no part of it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.conf import settings

from portal.leaderboard.models import Board, BoardTask, LeaderboardEntry, Tier
from portal.leaderboard.rowruns import Fate, RowRun, board_runs, leases_by_run, row_runs
from portal.leaderboard.selectors import BoardPage, BoardRow, entry_get
from portal.leaderboard.trust import run_here, unranked_because
from portal.nodes.models import Lease
from runs.models.evaluation import Evaluation
from runs.models.log import Event
from runs.models.run import Run
from runs.states import End, Status

# Facts of a sandbox that a reader may know. Never the seed of a scoring: with it one could prepare for the next.
FACTS = ("walls", "landlock_abi", "own_user", "machine", "system", "python", "numpy", "openblas_coretype", "evaluator")
INTERVENTIONS = ("message_sent", "paused", "resumed", "extended", "shared", "cancelled")


@dataclass(frozen=True)
class ScoringEvidence:
    """One evaluation. `sandbox_level` 1 is best; `from_store`: the same bundle was scored before."""

    ordinal: int
    by: str
    state: str
    valid: bool | None
    score: Decimal | None
    bundle_sha256: str
    sandbox_level: int | None
    revision: int | None
    from_store: bool
    versions: Mapping[str, str]
    scored_at: datetime | None


@dataclass(frozen=True)
class NodeEvidence:
    """One machine of a run, by class and not by name or address. `owner`: site or team."""

    role: str
    owner: str
    cpus: int
    memory_gb: int
    gpus: int
    gpu_memory_gb: int


@dataclass(frozen=True)
class Intervention:
    """Something people did to a run, by the event that says so."""

    run: int
    seq: int
    kind: str
    at: datetime
    by: str


@dataclass(frozen=True)
class RunEvidence:
    """One run of the team on the board. `mine`: of this row (same config version and engine version)."""

    id: int
    url: str
    task: str
    task_version: int
    task_digest: str
    config: int
    engine_version: str
    mine: bool
    fate: str
    submission: int | None
    repeat: int
    attempt: int
    status: str
    end_reason: str
    failure: str
    score: Decimal | None
    best: Decimal | None
    model_returned: str
    isolation: str
    run_here: bool
    unranked_because: tuple[str, ...]
    nodes: tuple[NodeEvidence, ...]
    evaluations: tuple[ScoringEvidence, ...]


@dataclass(frozen=True)
class RepeatCount:
    """Repeats of one task: declared before the first run, and what became of them."""

    task: str
    planned: int
    done: int
    failed: int
    infrastructure: int
    pending: int


@dataclass(frozen=True)
class FrozenTask:
    """A column of the board: what exactly was run, and the revision that turns metrics into points."""

    task: str
    version: int | None
    digest: str
    size: str
    seed: str
    revision: int | None


@dataclass(frozen=True)
class Evidence:
    """The evidence page of one row. `shared_os_user`: site and evaluator of this installation run as one OS user, so
    the wall between them is not the operating system's.
    """

    page: BoardPage
    row: BoardRow
    config_digest: str
    config_version: int | None
    model_asked: str
    model_host: str
    models_returned: tuple[str, ...]
    frozen: tuple[FrozenTask, ...]
    repeats: tuple[RepeatCount, ...]
    runs: tuple[RunEvidence, ...]
    interventions: tuple[Intervention, ...]
    shared_os_user: bool


def entry_evidence(board_slug: str, entry_id: int) -> Evidence:
    """Everything behind one row; for a reported row its source and cells, with no runs. Raises Http404."""
    page, row = entry_get(board_slug, entry_id)
    entry = LeaderboardEntry.objects.select_related("config").get(pk=row.id)
    columns = list(page.board.columns.select_related("task", "version").prefetch_related("version__scoring_revisions"))
    found = list(board_runs(page.board, entry.team_id)) if row.tier != Tier.REPORTED and entry.team_id else []
    rows = row_runs(found, [column.task_id for column in columns])
    mine = [one for one in rows if _of_row(one.run, entry)]
    spec = entry.config.spec if entry.config else {}
    model = spec.get("model") or {}
    return Evidence(
        page=page,
        row=row,
        config_digest=entry.config.digest if entry.config else "",
        config_version=entry.config.version if entry.config else None,
        model_asked=str(model.get("name", "")),
        model_host=str(model.get("base_url") or model.get("provider") or ""),
        models_returned=tuple(dict.fromkeys(one.run.model_returned for one in mine if one.run.model_returned)),
        frozen=tuple(_frozen(column) for column in columns),
        repeats=_repeats(mine),
        runs=_runs(rows, entry, page.board, columns),
        interventions=_interventions([one.run for one in mine]),
        shared_os_user=bool(settings.SHARED_OS_USER),
    )


def _of_row(run: Run, entry: LeaderboardEntry) -> bool:
    return run.config_id == entry.config_id and run.engine_version == entry.engine_version


def _frozen(column: BoardTask) -> FrozenTask:
    version = column.version
    if version is None:
        return FrozenTask(column.task.slug, None, "", "", "", None)
    revision = max((one.number for one in version.scoring_revisions.all()), default=None)
    return FrozenTask(column.task.slug, version.number, version.digest, version.size, version.seed_kind, revision)


def _repeats(mine: Iterable[RowRun]) -> tuple[RepeatCount, ...]:
    """By task. A superseded attempt is not a repeat of its own; a run outside submissions is one that was planned."""
    counts: dict[str, dict[str, int]] = {}
    for one in mine:
        if one.fate in {Fate.SUPERSEDED, Fate.OFF_BOARD}:
            continue
        count = counts.setdefault(one.run.task_version.task.slug, dict.fromkeys(("done", "failed", "lost", "open"), 0))
        count[_outcome(one)] += 1
    return tuple(
        RepeatCount(task, sum(count.values()), count["done"], count["failed"], count["lost"], count["open"])
        for task, count in counts.items()
    )


def _outcome(one: RowRun) -> str:
    if one.fate is Fate.INFRASTRUCTURE:
        return "lost"
    if one.fate in {Fate.UNDER_WAY, Fate.PENDING}:
        return "open"
    failed = one.run.status == Status.FAILED or one.run.end_reason == End.CANCELLED
    return "failed" if failed else "done"


def _runs(
    rows: Sequence[RowRun], entry: LeaderboardEntry, board: Board, columns: Sequence[BoardTask]
) -> tuple[RunEvidence, ...]:
    leases = leases_by_run(one.run for one in rows)
    by_task = {column.task_id: column for column in columns}
    return tuple(_run(one, entry, leases[one.run.pk], board, by_task.get(one.task)) for one in rows)


def _run(
    one: RowRun, entry: LeaderboardEntry, leases: Sequence[Lease], board: Board, column: BoardTask | None
) -> RunEvidence:
    run, version = one.run, one.run.task_version
    return RunEvidence(
        id=run.pk,
        url=run.get_absolute_url(),
        task=version.task.slug,
        task_version=version.number,
        task_digest=version.digest,
        config=run.config_id,
        engine_version=run.engine_version,
        mine=_of_row(run, entry),
        fate=one.fate.value,
        submission=one.submission,
        repeat=one.repeat,
        attempt=one.attempt,
        status=run.status,
        end_reason=run.end_reason,
        failure=run.failure_code,
        score=run.score,
        best=run.best,
        model_returned=run.model_returned,
        isolation=run.isolation,
        run_here=run_here(run, leases),
        unranked_because=tuple(unranked_because(run, board, column)),
        nodes=tuple(_node(lease) for lease in leases),
        evaluations=tuple(_scoring(each) for each in run.evaluations.all()),
    )


def _node(lease: Lease) -> NodeEvidence:
    node = lease.node
    owner = "site" if node.owner_id is None else "team"
    return NodeEvidence(lease.role, owner, node.cpus, node.memory_gb, len(lease.gpus), node.gpu_memory_gb)


def _scoring(one: Evaluation) -> ScoringEvidence:
    facts = one.facts if isinstance(one.facts, dict) else {}
    plain = {name: str(facts[name])[:80] for name in FACTS if name in facts}
    return ScoringEvidence(
        ordinal=one.ordinal,
        by=one.by,
        state=one.state,
        valid=one.valid,
        score=one.score,
        bundle_sha256=one.bundle_sha256,
        sandbox_level=one.sandbox_level,
        revision=one.revision.number if one.revision else None,
        from_store=one.from_store_id is not None,
        versions=plain,
        scored_at=one.scored_at,
    )


def _interventions(runs: Sequence[Run]) -> tuple[Intervention, ...]:
    """What people did, who by; resumptions of the engine's own name nobody and are no intervention."""
    events = Event.objects.filter(run__in=runs, kind__in=INTERVENTIONS).order_by("run", "seq")
    rows = (Intervention(e.run_id, e.seq, e.kind, e.at, str(e.body.get("by") or "")) for e in events)
    return tuple(row for row in rows if row.by)
