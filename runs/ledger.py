"""Room: runs. The clock ledger: kinds of time, who is charged for them, and sums that are unions of intervals. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class Clock(TextChoices):
    """Every second of a run belongs to one of these."""

    MODEL = "model", _("model")
    ACTION = "action", _("action")
    SLEEP = "sleep", _("sleep")
    EVALUATION = "evaluation", _("evaluation")
    ENGINE = "engine", _("engine")
    QUEUE = "queue", _("queue")
    PAUSED = "paused", _("paused")
    INFRASTRUCTURE = "infrastructure", _("infrastructure")


CHARGED = frozenset({Clock.MODEL, Clock.ACTION, Clock.SLEEP, Clock.EVALUATION, Clock.ENGINE})


@dataclass(frozen=True)
class Span:
    """A piece of time of one kind, `[started_at, ended_at)`, both UTC."""

    kind: str
    started_at: datetime
    ended_at: datetime


def union_seconds(spans: Iterable[Span]) -> float:
    """Length of the union of the spans in seconds: overlaps count once, inverted spans not at all, never negative."""
    total = 0.0
    reached: datetime | None = None
    for span in sorted(spans, key=lambda each: each.started_at):
        begin = span.started_at if reached is None else max(reached, span.started_at)
        if span.ended_at > begin:
            total += (span.ended_at - begin).total_seconds()
            reached = span.ended_at
    return total


@dataclass(frozen=True)
class ClockSums:
    """Seconds of a run by kind; `charged_s` is the union of the charged kinds: the working time."""

    by_kind: Mapping[str, float]
    charged_s: float
    total_s: float


def clock_sums(spans: Iterable[Span]) -> ClockSums:
    """Sums over any spans, overlapping or not."""
    held = list(spans)
    by_kind = {kind.value: union_seconds(span for span in held if span.kind == kind) for kind in Clock}
    charged = union_seconds(span for span in held if span.kind in CHARGED)
    return ClockSums(by_kind=by_kind, charged_s=charged, total_s=union_seconds(held))


def clip(span: Span, begin: datetime, end: datetime) -> Span | None:
    """The part of `span` inside `[begin, end)`; None when nothing is left."""
    started, ended = max(span.started_at, begin), min(span.ended_at, end)
    return Span(span.kind, started, ended) if ended > started else None
