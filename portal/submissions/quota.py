"""Room: portal.submissions. How many runs a team may queue in any 24 hours.

What counts: every run it queued, less those that ended by a failure of the machinery (refunded).
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from portal.accounts.models import Team
from portal.core.errors import LimitReached, Plain
from runs.models.run import Run
from runs.states import End

WINDOW = timedelta(hours=24)


class QuotaUsedUp(LimitReached):
    """More runs than the team has left."""

    code = "quota_used_up"
    template = _(
        "{team} has {left} of {limit} runs left in these 24 hours and asks for {wanted}; they are free at {next}."
    )


class QuotaTooSmall(LimitReached):
    """More runs at once than a team ever has."""

    code = "quota_too_small"
    template = _(
        "{team} may queue {limit} runs in 24 hours and asks for {wanted}; submit fewer tasks or repeats at once."
    )


@dataclass(frozen=True)
class Quota:
    """Where a team stands. `next_at`: when the next run becomes free again; None while some are left."""

    limit: int
    used: int
    next_at: datetime | None

    @property
    def left(self) -> int:
        return max(0, self.limit - self.used)


def quota_of(team: Team) -> Quota:
    """The team's quota now."""
    counted = _counted(team)
    used = counted.count()
    limit = settings.TEAM_RUNS_PER_DAY
    oldest = counted.order_by("created_at").values_list("created_at", flat=True).first()
    next_at = oldest + WINDOW if oldest is not None and used >= limit else None
    return Quota(limit=limit, used=used, next_at=next_at)


def quota_take(*, team: Team, runs: int) -> None:
    """Make sure that `team` may queue `runs` more, in the caller's transaction: until it ends, no other submission of
    the team gets past this line. Raises QuotaUsedUp.
    """
    Team.objects.select_for_update(no_key=True).get(pk=team.pk)
    quota = quota_of(team)
    if quota.left >= runs:
        return
    free_at = _free_at(team, quota, runs)
    facts: dict[str, Plain] = {"team": team.shown_name, "left": quota.left, "limit": quota.limit, "wanted": runs}
    if free_at is None:
        raise QuotaTooSmall(**facts)
    wait = max(1, ceil((free_at - timezone.now()).total_seconds()))
    raise QuotaUsedUp(**facts, next=f"{free_at:%Y-%m-%d %H:%M} UTC", retry_after_s=wait)


def _free_at(team: Team, quota: Quota, runs: int) -> datetime | None:
    """When `runs` will be free; None: more than there ever are."""
    if runs > quota.limit:
        return None
    must_go = quota.used + runs - quota.limit
    times = _counted(team).order_by("created_at").values_list("created_at", flat=True)
    return times[must_go - 1] + WINDOW


def _counted(team: Team) -> QuerySet[Run]:
    recent = Run.objects.filter(team=team, created_at__gt=timezone.now() - WINDOW)
    return recent.exclude(end_reason=End.INFRASTRUCTURE)
