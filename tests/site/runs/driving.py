"""Drives runs as worker and beat would, one after the other, in the test's own thread."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from runs.models.run import Run
from runs.services.stepping import run_advance
from runs.services.ticking import tick
from runs.states import TERMINAL

CONFIG = """\
name: scripted-reference
agent: react
model: {provider: scripted, name: reference}
tools: innovatorbench
"""


def drive(run: Run, *, until: Callable[[Run], bool] | None = None, seconds: float = 120.0) -> Run:
    """Tick and advance until the run is over and its nodes are given back, or until `until` says so."""
    stop = until or (lambda each: each.status in TERMINAL and not each.leased)
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        tick()
        run_advance(run_id=run.pk)
        run.refresh_from_db()
        if stop(run):
            return run
        time.sleep(0.02)
    raise AssertionError(f"{run} is {run.status} {run.waiting_reason} after {seconds} s")


def file_below(home: Path, name: str) -> Path:
    """The file of this name; folders of a node at work come and go while one looks."""
    return next(Path(top, name) for top, _folders, names in os.walk(home) if name in names)


def trace(run: Run) -> list[tuple[str, dict]]:
    """Kinds and bodies of all events, in order."""
    return [(event.kind, event.body) for event in run.events.order_by("seq")]


def kinds(run: Run) -> list[str]:
    """The kinds alone."""
    return [kind for kind, _ in trace(run)]
