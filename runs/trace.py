"""Room: runs. Selectors of a run's trace for its page: steps by number, marks of the strip. They only read.

Nothing here grows with the length of a run but the strip, which takes three short columns per step.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import F, Sum
from django.db.models.fields.json import KT

from runs.models.log import Event
from runs.models.run import Run


@dataclass(frozen=True)
class Mark:
    """One action on the strip."""

    step: int
    name: str
    malformed: bool


def steps_touched(run: Run, first_seq: int, last_seq: int) -> list[int]:
    """Numbers of the steps that these events belong to, ascending."""
    rows = Event.objects.filter(run=run, seq__gte=first_seq, seq__lte=last_seq)
    return sorted(set(rows.order_by().values_list("step", flat=True)))


def steps_of(run: Run, numbers: Collection[int]) -> list[Event]:
    """Every event of these steps."""
    return list(Event.objects.filter(run=run, step__in=numbers).order_by("seq"))


def strip_marks(run: Run) -> list[Mark]:
    """The first call of every step, by what came back or was sent; in order of steps."""
    rows = (
        Event.objects.filter(run=run, kind="observed", step__gt=0)
        .annotate(name=KT("body__name"), action=KT("body__action_id"))
        .order_by("step", "seq")
        .values_list("step", "name", "action")
    )
    marks: dict[int, Mark] = {}
    for step, name, action in rows:
        marks.setdefault(step, Mark(step, name or "null", malformed=action is None))
    return list(marks.values())


def compaction_steps(run: Run) -> list[int]:
    """After which steps the conversation was compacted."""
    return list(Event.objects.filter(run=run, kind="compacted").order_by("seq").values_list("step", flat=True))


def newest_events(run: Run, count: int) -> Sequence[tuple[int, datetime, str, int]]:
    """(seq, at, kind, step) of the last `count` events, newest first."""
    rows = Event.objects.filter(run=run).order_by("-seq")[:count]
    return list(rows.values_list("seq", "at", "kind", "step"))


def interval_sums(run: Run) -> dict[str, float]:
    """Closed seconds by kind of the ledger, added up in the database: a long run has tens of thousands of pieces."""
    rows = run.intervals.order_by().values("kind").annotate(spent=Sum(F("ended_at") - F("started_at")))
    return {row["kind"]: row["spent"].total_seconds() for row in rows}
