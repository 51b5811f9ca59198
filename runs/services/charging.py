"""Room: runs. Nobody trains for free: waiting for us is charged where a job of the run really ran meanwhile.

The ledger may then hold overlapping pieces; its sums are unions, so a second is charged once.
"""

from collections.abc import Iterable
from datetime import UTC, datetime

from django.db.models import F
from django.utils import timezone

from gymnode.sessions import Job, Session
from runs.ledger import CHARGED, Clock, Span, clip, union_seconds
from runs.models.log import Interval
from runs.models.run import Run


def jobs_charge(run: Run, sessions: Iterable[Session]) -> float:
    """Charge what the newest job of each session ran during the piece of uncharged time that is open now; returns the
    seconds. Under the run's lock, before its clock goes on. Times are the node's, clipped to the piece.
    """
    if run.clock_since is None or run.clock_kind in CHARGED or run.clock_kind == Clock.PAUSED:
        return 0.0
    now = timezone.now()
    spans = [_ran(each.job, now) for each in sessions if each.job is not None and each.job.started_at]
    held = [kept for kept in (clip(span, run.clock_since, now) for span in spans) if kept is not None]
    seconds = union_seconds(held)
    if seconds:
        Interval.objects.bulk_create(
            Interval(run=run, kind=span.kind, started_at=span.started_at, ended_at=span.ended_at) for span in held
        )
        Run.objects.filter(pk=run.pk).update(charged_s=F("charged_s") + seconds)
    return seconds


def _ran(job: Job, now: datetime) -> Span:
    begun = datetime.fromtimestamp(job.started_at or 0, UTC)
    ended = datetime.fromtimestamp(job.ended_at, UTC) if job.ended_at else now
    return Span(Clock.ACTION, begun, ended)
