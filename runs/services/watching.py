"""Room: runs. What the collector tells: bytes of terminals, jobs that ended, nodes that went and came back.

Registered with portal.nodes by the composition root. Called in the collector's threads: quick, and never fatal to it.
"""

from django.utils import timezone

from portal.nodes.models import Lease
from portal.nodes.sinks import Change, Quiet, TerminalBytes
from runs.enqueue import advance_enqueue
from runs.failures import Code
from runs.ledger import Clock
from runs.models.run import Run
from runs.services.moves import Fact, run_locked, run_wait
from runs.services.terminals import terminal_quiet, terminal_take
from runs.states import Status, Waiting
from runs.terminal_log import terminal_end

WAKING = frozenset({"job_ended", "session_closed", "session_lost"})
_LOSSES = {"host_key_changed": Code.NODE_KEY_CHANGED, "host_key_unknown": Code.NODE_KEY_UNKNOWN}


def run_id_of(key: str) -> int | None:
    """The run behind the name under which nodes know it; None for names of somebody else."""
    number = key.removeprefix("run-")
    return int(number) if number != key and number.isdecimal() else None


def terminal_took(piece: TerminalBytes) -> None:
    """Store bytes of a session's log, masked."""
    run_id = run_id_of(piece.run)
    if run_id is not None:
        terminal_take(run_id=run_id, session=piece.session, offset=piece.offset, data=piece.data, at=piece.at)


def terminal_paused(quiet: Quiet) -> None:
    """Store what was kept back of a session's log, because it might have begun a secret."""
    run_id = run_id_of(quiet.run)
    if run_id is not None:
        terminal_quiet(run_id=run_id, session=quiet.session, at=quiet.at)


def terminal_stored(run: str, session: str) -> int:
    """The byte up to which a session's log is stored: where a restarted collector goes on."""
    run_id = run_id_of(run)
    return 0 if run_id is None else terminal_end(run_id, session)


def change_took(change: Change) -> None:
    """Wake who waits for this session; show and lift the loss of a node."""
    if change.kind in WAKING:
        _wake_sleeper(change)
    elif change.kind == "node_lost":
        _node_lost(change.node)
    elif change.kind == "node_back":
        _node_back(change.node)


def _wake_sleeper(change: Change) -> None:
    run_id = run_id_of(change.run)
    if run_id is None:
        return
    waiting = Run.objects.filter(pk=run_id, status=Status.WAITING, waiting_reason=Waiting.SLEEP)
    now = timezone.now()
    if waiting.filter(conditions__session=change.session).update(wake_at=now, job_sent_at=now):
        advance_enqueue(run_id)


def _node_lost(node_id: int) -> None:
    """Waiting runs say that their node is lost, also paused ones; running ones find out by themselves."""
    for lease in _leases_on(node_id):
        run_id = run_id_of(lease.run_key)
        if run_id is None:
            continue
        with run_locked(run_id) as run:
            if run.status != Status.WAITING or run.waiting_reason not in {Waiting.PAUSED, Waiting.SLEEP}:
                continue
            fact = Fact("node_lost", {"node": lease.node.name})
            since = run.outage_since or timezone.now()
            run_wait(
                run,
                Waiting.NODE_LOST,
                fact,
                clock=Clock.INFRASTRUCTURE,
                wake_at=None if run.conditions.get("paused") else run.wake_at,
                outage_since=since,
                failure_code=_LOSSES.get(lease.node.state_code, Code.NODE_UNREACHABLE),
                failure_args={"node": lease.node.name},
            )


def _node_back(node_id: int) -> None:
    """Whoever waits for the node is looked at now: a paused run goes back to being paused, others go on."""
    now = timezone.now()
    for lease in _leases_on(node_id):
        run_id = run_id_of(lease.run_key)
        if run_id is None:
            continue
        lost = Run.objects.filter(pk=run_id, status=Status.WAITING, waiting_reason=Waiting.NODE_LOST)
        if lost.update(wake_at=now, job_sent_at=now):
            advance_enqueue(run_id)


def _leases_on(node_id: int) -> list[Lease]:
    return list(Lease.objects.filter(node=node_id, released_at=None).select_related("node"))
