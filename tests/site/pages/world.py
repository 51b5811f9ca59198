"""A world for the pages: a task that runs here, an agent, a run with every kind of event."""

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.utils import timezone

from portal.accounts.models import Team, User
from portal.catalog.models import TaskVersion
from portal.catalog.packed import packed_read
from portal.catalog.services import domain_rows_ensure, task_version_import
from portal.pages.example import EXAMPLE_CONFIG
from runs.eventlog import Change, event_append
from runs.models.evaluation import Evaluation
from runs.models.log import TerminalChunk
from runs.models.run import Run
from runs.services.configs import config_create
from runs.services.queueing import run_queue
from tests.site.catalog.packages import packed_folder

HOSTILE = "<img src=x onerror=alert(1)></script><svg onload=alert(2)>javascript:alert(3)"


def version_made(folder: Path, *, description: str = "") -> TaskVersion:
    """A published version of the example task."""
    domain_rows_ensure()
    files = {"task_description.md": (description or "# Task\n\nBeat it.").encode(), "workspace/run.py": b"print(1)\n"}
    return task_version_import(packed=packed_read(packed_folder(folder, files=files)), by=None)


def run_made(team: Team, by: User, version: TaskVersion, *, visibility: str = "public") -> Run:
    """A queued run of the example agent."""
    config = config_create(team=team, text=EXAMPLE_CONFIG, by=by)
    return run_queue(team=team, config=config, task_version=version, by=by, visibility=visibility)


def run_started(run: Run) -> Run:
    """The same run, running."""
    Run.objects.filter(pk=run.pk).update(status="running", started_at=timezone.now(), isolation="namespace")
    run.refresh_from_db()
    return run


def task_given(run: Run, text: str = "the task") -> None:
    body = {"system": "You are a researcher.", "task": text, "task_id": "example-task", "task_version": 1}
    event_append(run.pk, "task_given", {**body, "engine_version": "1"}, epoch=None)


def step_made(
    run: Run, name: str = "run_command", *, text: str = "Look first.", arguments: Any = None, out: str = "hello\n"
) -> int:
    """One whole step; returns its number."""
    given = arguments if arguments is not None else {"command": "ls", "session_id": "main"}
    number = Run.objects.values_list("steps", flat=True).get(pk=run.pk) + 1
    call = {"id": f"c{number}", "name": name, "arguments": "{}", "index": 0}
    usage = {"input": 1200, "cached": 1100, "output": 90, "reasoning": 0}
    reply = {"text": text, "reasoning": "", "calls": [call], "model": "scripted", "usage": usage, "usd": "0.0012"}
    event_append(run.pk, "replied", reply, epoch=None, change=Change(steps=1, tokens=1290, usd=Decimal("0.0012")))
    sent = {"call_id": call["id"], "action_id": f"{run.pk}.{number}.0", "name": name, "arguments": given}
    event_append(run.pk, "action_sent", sent, epoch=None)
    seen = {**sent, "outcome": "ok", "message": "exit 0", "text": f"exit 0\n{out}", "observation": {"exit_code": 0}}
    event_append(run.pk, "observed", seen, epoch=None)
    return number


def evaluation_made(run: Run, ordinal: int, score: str, *, by: str = "agent") -> Evaluation:
    """A scored evaluation, with its event."""
    now = timezone.now()
    facts = {"ordinal": ordinal, "by": by, "state": "scored", "nonce": "n", "bundle_sha256": "0" * 64, "valid": True}
    shown = {"metrics": {"accuracy": 0.61}, "score": Decimal(score), "seconds": 1.5, "sandbox_level": 1}
    made = Evaluation.objects.create(
        run=run, step=1, working_s=30.0 * ordinal, requested_at=now, scored_at=now, **facts, **shown
    )
    body = {"evaluation": made.pk, "ordinal": ordinal, "by": by, "score": score, "metrics": {"accuracy": 0.61}}
    event_append(run.pk, "evaluation_scored", body, epoch=None, change=Change(evaluations=1))
    Run.objects.filter(pk=run.pk).update(score=Decimal(score), best=Decimal(score))
    return made


def terminal_made(run: Run, data: bytes, *, session: str = "main", offset: int = 0) -> None:
    TerminalChunk.objects.create(run=run, session=session, offset=offset, at=timezone.now(), data=data)


def run_full(run: Run) -> Run:
    """A run with a bit of everything, finished."""
    run_started(run)
    task_given(run)
    step_made(run)
    step_made(run, "create_file", arguments={"path": "a.py", "content": "x = 1\n" * 60})
    event_append(run.pk, "compacted", {"summary": "so far", "tokens_before": 61204, "tokens_after": 9880}, epoch=None)
    step_made(run, "eval", arguments={})
    evaluation_made(run, 1, "11.7")
    for kind in ("paused", "resumed", "node_lost", "something_newer"):
        event_append(run.pk, kind, {"reason": "why"}, epoch=None)
    terminal_made(run, b"\x1b[32mok\x1b[0m\r\n50%\r100%\n")
    end = timezone.now() + timedelta(minutes=5)
    Run.objects.filter(pk=run.pk).update(status="finished", end_reason="finish", ended_at=end, charged_s=290.0)
    run.refresh_from_db()
    return run
