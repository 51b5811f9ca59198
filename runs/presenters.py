"""Room: runs. What the run page and the live stream show of a run: values and ready markup. Reads through selectors.

The same templates make the page and the pieces that the stream puts into it, so an ended run looks like a live one.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.http import Http404
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.translation import gettext as _

from portal.core import charts
from runs import trace
from runs.eventlog import whole_body
from runs.failures import failure_of
from runs.lanes import LANES
from runs.ledger import CHARGED, Clock
from runs.models.evaluation import Evaluation
from runs.models.log import Event
from runs.models.run import Run
from runs.selectors import evaluations_of, events_of_steps, working_s
from runs.services.queueing import queue_place
from runs.states import End, Status, Waiting
from runs.steps import NoteView, Shown, StepView, step_views
from runs.terminal_log import MOST_SESSIONS, SessionTail, session_names, terminal_sessions, terminal_text
from runs.wire import shown_body

PAGE = 30  # steps on one page
MOST_RAW = 400_000  # characters of one event on the page of a step
MOST_PIECES = 60  # steps in one batch of the stream; a viewer that is further behind gets the newest
_LANES = ("eval", "command", "file", "read", "think", "wait")


@dataclass(frozen=True)
class EventLine:
    """One line of the list of events."""

    seq: int
    at: datetime
    kind: str
    step: int
    clock_s: float


@dataclass(frozen=True)
class Share:
    """One kind of the clock ledger: seconds, and its place in the bar."""

    kind: str
    word: str
    seconds: float


@dataclass(frozen=True)
class RunHead:
    """Header and budgets of a run at one moment."""

    run: Run
    reason: str
    elapsed_s: float
    left_s: float
    evaluations: Sequence[Evaluation]
    by_agent: int
    metric_names: tuple[str, ...]
    spark: charts.Spark
    plot: charts.Plot
    plot_unit_s: float
    reference: float
    ledger: tuple[charts.Segment, ...]
    shares: tuple[Share, ...]
    uncharged: tuple[Share, ...]
    scripted: bool
    hint: str
    place: int | None

    @property
    def noted(self) -> bool:
        """Whether the reason stands in the note below, so that the line of the state leaves it out."""
        failed = self.run.status == Status.FAILED
        return failed or (self.run.status == Status.WAITING and bool(self.run.failure_code))


@dataclass(frozen=True)
class RunPage:
    """Everything the run page shows."""

    head: RunHead
    steps: tuple[StepView | NoteView, ...]
    first: int
    last: int
    at_end: bool
    before: int
    after: int
    strip: charts.Strip
    strip_lanes: tuple[str, ...]
    sessions: Sequence[SessionTail]
    terminal: SessionTail | None
    events: tuple[EventLine, ...]

    @property
    def sessions_cut(self) -> bool:
        """Whether there may be sessions beyond those that are listed."""
        return len(self.sessions) >= MOST_SESSIONS


def score_points(run: Run) -> list[tuple[float, Decimal | None]]:
    """(working seconds, score) of every scored evaluation."""
    return [(e.working_s, e.score) for e in run.evaluations.all() if e.score is not None]


def reason_text(run: Run) -> str:
    """Why the run waits, failed or ended, in the reader's language; empty where the state says it all."""
    if run.failure_code and run.status in (Status.FAILED, Status.WAITING):
        return failure_of(run.failure_code).text(run.failure_args)
    if run.status == Status.WAITING:
        return _wait_text(run)
    if run.end_reason in ("", End.FINISH, End.CANCELLED):
        return ""
    return str(run.get_end_reason_display())


def _wait_text(run: Run) -> str:
    session = run.conditions.get("session") if isinstance(run.conditions, dict) else None
    if run.waiting_reason == Waiting.SLEEP and session:
        return str(_("asleep until session {session} is idle")).format(session=session)
    if run.waiting_reason == Waiting.SLEEP and run.wake_at:
        return str(_("asleep until {time} UTC")).format(time=f"{run.wake_at:%H:%M:%S}")
    if run.waiting_reason == Waiting.EVALUATION:
        return str(_("its outputs are being scored"))
    return str(run.get_waiting_reason_display())


def _ledger(run: Run) -> tuple[tuple[Share, ...], tuple[Share, ...]]:
    sums = trace.interval_sums(run)
    if run.clock_kind and run.clock_since is not None and not run.ended:
        sums[run.clock_kind] = sums.get(run.clock_kind, 0.0) + (timezone.now() - run.clock_since).total_seconds()
    shares = tuple(Share(kind.value, str(kind.label), sums.get(kind.value, 0.0)) for kind in Clock)
    return tuple(s for s in shares if s.kind in CHARGED), tuple(s for s in shares if s.kind not in CHARGED)


def run_head_view(run: Run) -> RunHead:
    """The header's values."""
    evaluations = evaluations_of(run)
    points = [(e.working_s, e.score) for e in evaluations if e.score is not None]
    score = run.task_version.manifest.get("score", {})
    reference = charts.finite(score.get("reference")) or 80.0
    elapsed = working_s(run)
    unit = 3600.0 if run.limit_s > 3 * 3600 else 60.0
    shares, uncharged = _ledger(run)
    model = run.config.spec.get("model", {})
    return RunHead(
        run=run,
        reason=reason_text(run),
        elapsed_s=elapsed,
        left_s=max(0.0, run.limit_s - elapsed),
        evaluations=evaluations,
        by_agent=sum(1 for e in evaluations if e.by == "agent"),
        metric_names=tuple(dict.fromkeys(name for e in evaluations for name in e.metrics)),
        spark=charts.spark(points, now=elapsed, limit=run.limit_s, reference=reference),
        plot=charts.score_plot(points, now=elapsed, limit=run.limit_s, unit_s=unit, reference=reference),
        plot_unit_s=unit,
        reference=reference,
        ledger=charts.ledger({s.kind: s.seconds for s in shares}, total=run.limit_s),
        shares=shares,
        uncharged=uncharged,
        scripted=model.get("provider") == "scripted",
        hint=str(run.config.spec.get("hint", "none")),
        place=queue_place(run) if run.status == Status.QUEUED else None,
    )


_PIECES = {
    "run-state": "runs/head_state.html",
    "run-budgets": "runs/head_budgets.html",
    "run-ledger": "runs/head_ledger.html",
    "run-notes": "runs/head_notes.html",
    "run-evaluations": "runs/panel_evaluations.html",
}


def run_head(run: Run) -> dict[str, Any]:
    """The `head` of a message of the stream: figures, and markup by the id of the element that takes it."""
    view = run_head_view(run)
    return {
        "score": None if run.score is None else f"{run.score:.4f}",
        "best": None if run.best is None else f"{run.best:.4f}",
        "status": run.status,
        "status_text": str(run.get_status_display()),
        "reason": view.reason,
        "waiting": run.waiting_reason,
        "steps": run.steps,
        "evaluations_used": run.evaluations_used,
        "evaluations_total": run.limit_evaluations,
        "elapsed_s": round(view.elapsed_s, 1),
        "limit_s": run.limit_s,
        "usd": str(run.usd),
        "tokens": run.tokens,
        "ended": run.ended,
        "sessions": [{"name": name, "start": 0} for name in session_names(run)],
        "scores": [{"step": e.step, "score": _score_text(e)} for e in view.evaluations if e.score is not None],
        "html": {place: render_to_string(name, {"head": view, "run": run}) for place, name in _PIECES.items()},
    }


def _score_text(evaluation: Evaluation) -> str:
    return "" if evaluation.score is None else f"{evaluation.score:.1f}"


def steps_html(run: Run, events: Sequence[Event]) -> list[dict[str, Any]]:
    """Whole items of every step that these new events belong to, oldest first; the page puts them in by id."""
    if not events:
        return []
    numbers = trace.steps_touched(run, events[0].seq, events[-1].seq)[-MOST_PIECES:]
    fresh = {event.seq for event in events}
    views = _views(run, trace.steps_of(run, numbers))
    return [_piece(run, view) for view in views if isinstance(view, StepView) or view.seq in fresh]


def _views(run: Run, rows: Sequence[Event]) -> tuple[StepView | NoteView, ...]:
    """The rows as steps, without what readers may not see."""
    shown = (Shown(r.seq, r.step, r.kind, r.at, shown_body(r.kind, r.body, cut=bool(r.blob))) for r in rows)
    return step_views(shown, lanes=LANES, started_at=run.started_at)


def _piece(run: Run, view: StepView | NoteView) -> dict[str, Any]:
    html = render_to_string("runs/item.html", {"item": view, "run": run})
    if isinstance(view, StepView):
        return {"n": view.number, "seq": view.seq, "lane": view.lane, "html": html}
    return {"n": None, "seq": view.seq, "lane": None, "html": html}


def steps_page(run: Run, first: int, count: int) -> tuple[StepView | NoteView, ...]:
    """`count` steps from number `first` on; the first page has what came before the first reply, too."""
    begin = 0 if first <= 1 else first
    rows = events_of_steps(run, begin, max(first, 1) + min(count, MOST_PIECES) - 1)
    return _views(run, rows)


@dataclass(frozen=True)
class RawEvent:
    """One event as stored, its body as indented JSON."""

    seq: int
    at: datetime
    kind: str
    text: str


def raw_step(run: Run, number: int) -> tuple[RawEvent, ...]:
    """The events of one step, whole; the text of a hint is left out. Raises Http404 for a step there is none of."""
    rows = events_of_steps(run, number, number)
    if not rows:
        raise Http404
    return tuple(RawEvent(row.seq, row.at, row.kind, _raw_text(row)) for row in rows)


def _raw_text(row: Event) -> str:
    body = shown_body(row.kind, whole_body(row))
    return json.dumps(body, indent=2, ensure_ascii=False)[:MOST_RAW]


def run_strip(run: Run, evaluations: Sequence[Evaluation]) -> charts.Strip:
    """The strip: one mark per step, in the lane of its first call."""
    lanes: dict[str, list[int]] = {name: [] for name in _LANES}
    faults: list[int] = []
    for mark in trace.strip_marks(run):
        lane = "null" if mark.malformed else LANES.get(mark.name, "null")
        lanes.get(lane, faults).append(mark.step)
    scores = [(e.step, _score_text(e)) for e in evaluations if e.score is not None]
    drawn = [(name, lanes[name]) for name in _LANES]
    return charts.strip(drawn, steps=run.steps, evaluations=scores, folds=trace.compaction_steps(run), faults=faults)


def run_page(run: Run, first: int | None) -> RunPage:
    """The page from step `first` on; without it the newest steps."""
    newest = max(1, run.steps - PAGE + 1)
    begin = newest if first is None else max(1, min(first, run.steps or 1))
    last = min(run.steps, begin + PAGE - 1)
    head = run_head_view(run)
    sessions = terminal_sessions(run)
    start = run.started_at or run.created_at
    events = trace.newest_events(run, 40)
    return RunPage(
        head=head,
        steps=steps_page(run, begin, PAGE),
        first=begin,
        last=last,
        at_end=last >= run.steps,
        before=max(1, begin - PAGE),
        after=last + 1,
        strip=run_strip(run, head.evaluations),
        strip_lanes=_LANES,
        sessions=sessions,
        terminal=terminal_text(run, sessions[0]) if sessions else None,
        events=tuple(EventLine(seq, at, kind, step, (at - start).total_seconds()) for seq, at, kind, step in events),
    )
