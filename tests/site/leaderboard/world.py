"""Rows of a board made by hand: ended runs with evaluations, leases and places as the engine would have stored them."""

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.utils import timezone

from portal.accounts.models import Team, User
from portal.catalog.models import TaskVersion
from portal.catalog.packed import packed_read
from portal.catalog.services import domain_rows_ensure, task_version_import
from portal.leaderboard.boards import boards_ensure
from portal.leaderboard.models import Board, LeaderboardEntry, Tier
from portal.nodes.models import Lease, Node
from runs.models.evaluation import Evaluation
from runs.models.run import Run
from runs.services.configs import config_create
from runs.services.queueing import run_queue
from tests.site.catalog.packages import packed_folder

CONFIG = """\
name: reasoner
agent: react
model: {provider: scripted, name: reference}
tools: innovatorbench
"""


def version_made(folder: Path, task: str = "example-task", **manifest: Any) -> TaskVersion:
    """A published version of a nano task; the manifest's other fields as given."""
    domain_rows_ensure()
    packed = packed_folder(folder, manifest={"id": task, "title": task, **manifest})
    return task_version_import(packed=packed_read(packed), by=None)


def board_made(slug: str = "nano-public") -> Board:
    boards_ensure()
    return Board.objects.get(slug=slug)


def run_made(team: Team, by: User, version: TaskVersion, *, text: str = CONFIG, board: str = "nano-public") -> Run:
    """A queued run."""
    return run_queue(
        team=team, config=config_create(team=team, text=text, by=by), task_version=version, by=by, board=board
    )


def ended(run: Run, score: str | None = "50", *, end: str = "finish", status: str = "finished", **columns: Any) -> Run:
    """The run, over; with a score it has a scored final evaluation at sandbox level 1."""
    now = timezone.now()
    points = None if score is None else Decimal(score)
    facts = {"status": status, "end_reason": end, "ended_at": now, "score": points, "best": points}
    facts |= {"isolation": "namespace", "charged_s": 1800.0, "usd": Decimal("0.5")}
    facts |= {"failure_code": "fault_streak"} if status == "failed" else {}
    Run.objects.filter(pk=run.pk).update(**{**facts, **columns})
    if points is not None:
        evaluation_made(run, points)
    run.refresh_from_db()
    return run


def evaluation_made(run: Run, score: Decimal | None, *, state: str = "scored", by: str = "final", level: int = 1):
    now = timezone.now()
    scored = {"valid": True, "score": score, "scored_at": now, "sandbox_level": level} if state == "scored" else {}
    ordinal = run.evaluations.count() + 1
    return Evaluation.objects.create(
        run=run, ordinal=ordinal, by=by, state=state, nonce="n", bundle_sha256="0" * 64, requested_at=now, **scored
    )


def leased(run: Run, *, owner: Team | None = None) -> Node:
    """The run held a machine of the site, or of `owner`, and gave it back."""
    facts = {"host": "192.0.2.9", "user": "ib", "key_sealed": b"", "key_public": "", "owner": owner}
    node, _made = Node.objects.get_or_create(name=f"box-{owner.pk if owner else 'site'}", defaults=facts)
    Lease.objects.create(node=node, team=run.team, run_key=run.key, slot=0, released_at=timezone.now())
    return node


def reported(board: Board, count: int, **columns: Any) -> None:
    """`count` rows as others reported them, one cell each, all with different means."""
    start = timezone.now()
    for number in range(count):
        mean = Decimal(number) / 100
        entry = LeaderboardEntry.objects.create(
            board=board,
            key=f"r{number}",
            agent="agent",
            model=f"model-{number}",
            tier=Tier.REPORTED,
            scored_at=start + timedelta(seconds=number),
            **{"mean_final": mean, "mean_best": mean, **columns},
        )
        entry.cells.create(task=board.columns.all()[0].task, final=mean, best=mean)
