"""Room: runs. A run's trace as JSON lines: one event a line, in order, whole. Reads through selectors.

Hint texts stay out, as everywhere. The first line says which run, task, agent and engine this is.
"""

import json
from collections.abc import Iterator

from django.core.serializers.json import DjangoJSONEncoder

from runs.eventlog import whole_body
from runs.models.run import Run
from runs.selectors import PAGE, events_after
from runs.wire import shown_body

SCHEMA = 1


def run_lines(run: Run) -> Iterator[str]:
    """The lines of the export, each ending with a newline. Memory stays at one page of events."""
    yield _line(_head(run))
    seq = 0
    while events := events_after(run, seq, PAGE):
        for event in events:
            body = shown_body(event.kind, whole_body(event))
            yield _line({"seq": event.seq, "step": event.step, "at": event.at, "kind": event.kind, "body": body})
        seq = events[-1].seq


def _head(run: Run) -> dict[str, object]:
    version = run.task_version
    return {
        "schema": SCHEMA,
        "run": run.pk,
        "task": version.task.slug,
        "task_version": version.number,
        "task_digest": version.digest,
        "agent": run.config.name,
        "agent_version": run.config.version,
        "agent_digest": run.config.digest,
        "engine_version": run.engine_version,
        "model": run.model_returned,
        "status": run.status,
        "end": run.end_reason,
        "score": run.score,
    }


def _line(value: dict[str, object]) -> str:
    return json.dumps(value, cls=DjangoJSONEncoder, ensure_ascii=False, separators=(",", ":")) + "\n"
