"""Room: runs. From a claim to a run on its nodes: links of the lease, the isolation, the workspace, the first event."""

import hashlib
from collections.abc import Callable
from io import BytesIO

from django.utils import timezone

from evaluator.manifest import Manifest
from gymnode.actions.registry import PRESETS
from gymnode.errors import BadRequest, EpochTooLow, NotPermitted, RequestRefused, StorageFull
from portal.catalog.selectors import hint_open, workspace_tar
from portal.core.blobs import BlobMissing, BlobsUnavailable
from portal.nodes.leasing import leases_of
from portal.nodes.links import link_for
from runs.agent.events import Kind, NodeBrief
from runs.agent.prompt import first_prompt
from runs.agent.spec import AgentSpec
from runs.agent.spec_parts import HintMode
from runs.agent.taskbrief import TaskBrief
from runs.database import connection_give_back
from runs.environment import Environment, Opened, Opening, Place
from runs.eventlog import Change, event_append
from runs.failures import Code, Outage, RunFailed
from runs.ledger import Clock
from runs.models.run import Run
from runs.services.claims import Claim
from runs.services.moves import run_locked, run_move
from runs.services.queueing import manifest_of
from runs.services.session import node_errors
from runs.services.troubles import away_for
from runs.states import Status
from runs.version import ENGINE_VERSION

VIEW_HINT = "view_hint"


def environment_of(claim: Claim, run: Run) -> Environment:
    """The run on the nodes it has leased. Raises RunFailed when it holds none, Outage when one can't be reached."""
    leases = leases_of(run_key=run.key)
    if not leases:
        raise RunFailed(Code.NODE_LOST, **away_for(run))
    with node_errors():
        places = tuple(
            Place(
                name=lease.node.name,
                role=lease.role,
                link=link_for(lease.node),
                gpus=tuple(lease.gpus),
                task_env=lease.node.task_env or None,
            )
            for lease in leases
        )
    return Environment(run.key, claim.epoch, places, _steps_of(run.pk))


def _steps_of(run_id: int) -> Callable[[], int]:
    return lambda: Run.objects.values_list("steps", flat=True).get(pk=run_id)


def opening_of(manifest: Manifest) -> Opening:
    """How the task wants its nodes opened."""
    network = "proxy" if any(need.internet for need in manifest.nodes) else "none"
    return Opening(network=network, disk_gb=manifest.limits.disk_gb)


def environment_open(environment: Environment, opening: Opening) -> tuple[Opened, ...]:
    """Open the run on its nodes under this claim's epoch. Raises Outage, LeaseLost, RunFailed for a node's refusal."""
    connection_give_back()
    with node_errors():
        try:
            return environment.open(opening)
        except EpochTooLow:
            raise
        except (BadRequest, NotPermitted) as refusal:
            raise RunFailed(Code.NODE_REFUSED, node=environment.places[0].name, reason=refusal.code) from refusal


def tools_of(spec: AgentSpec) -> frozenset[str]:
    """The actions this config may call: what dispatch enforces."""
    names = PRESETS[spec.tools] if isinstance(spec.tools, str) else spec.tools
    offered = set(names) - {VIEW_HINT}
    return frozenset(offered | ({VIEW_HINT} if spec.hint is HintMode.ON_DEMAND else set()))


def run_prepare(claim: Claim, run: Run, environment: Environment) -> None:
    """Preparing -> running: workspace on the nodes, then the first event. Doing it again after a crash is harmless."""
    manifest = manifest_of(run.task_version)
    opened = environment_open(environment, opening_of(manifest))
    try:
        tar = workspace_tar(run.task_version)
    except BlobMissing as problem:
        raise RunFailed(Code.TASK_BROKEN, reason="blob_missing") from problem
    except BlobsUnavailable as problem:
        raise Outage(Code.STORE_DOWN) from problem
    connection_give_back()
    with node_errors():
        try:
            environment.upload(BytesIO(tar), hashlib.sha256(tar).hexdigest())
            # The first entry of each node's journal: from here on a node can tell an action that never came from one
            # whose memory it lost.
            environment.sessions()
        except (EpochTooLow, StorageFull):
            raise
        except RequestRefused as refusal:
            raise RunFailed(Code.TASK_BROKEN, reason=refusal.code) from refusal
    _started(claim, run, environment, opened)


def _started(claim: Claim, run: Run, environment: Environment, opened: tuple[Opened, ...]) -> None:
    spec = AgentSpec.model_validate(run.config.spec)
    given = first_prompt(_brief(run, spec, environment, opened), spec)
    with run_locked(claim.run_id, epoch=claim.epoch) as locked:
        event_append(run.pk, Kind.TASK_GIVEN, given.stored(), epoch=claim.epoch, change=Change(clock=Clock.ENGINE))
        run_move(
            locked,
            Status.RUNNING,
            None,
            clock=None,
            prepared_at=timezone.now(),
            isolation=opened[0].level,
            workspace=opened[0].workspace,
            outage_since=None,
            outage_tries=0,
            failure_code="",
            failure_args={},
        )


def _brief(run: Run, spec: AgentSpec, environment: Environment, opened: tuple[Opened, ...]) -> TaskBrief:
    version, manifest = run.task_version, manifest_of(run.task_version)
    return TaskBrief(
        task_id=version.task.slug,
        task_version=version.number,
        description=version.description,
        engine_version=ENGINE_VERSION,
        nodes=tuple(_node_brief(place, each, manifest) for place, each in zip(environment.places, opened, strict=True)),
        outputs=tuple(each.path for each in manifest.outputs),
        hint=hint_open(version) if spec.hint is HintMode.UPFRONT else None,
        hours=run.limit_s / 3600,
        steps=run.limit_steps,
        usd=run.limit_usd,
        tokens=run.limit_tokens,
        disk_gb=manifest.limits.disk_gb,
        evaluations_by_agent=run.limit_evaluations,
        final_evaluation=bool(manifest.evaluations.final),
    )


def _node_brief(place: Place, opened: Opened, manifest: Manifest) -> NodeBrief:
    need = next((need for need in manifest.nodes if need.role == place.role), manifest.nodes[0])
    return NodeBrief(
        name=place.name,
        role=place.role,
        cpus=need.cpus,
        memory_gb=need.memory_gb,
        gpus=len(place.gpus),
        gpu_memory_gb=need.gpu_memory_gb or None,
        network="filtered" if need.internet else "none",
        workspace=opened.workspace,
        labels=tuple(need.labels),
    )
