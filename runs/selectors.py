"""Room: runs. What others may know of runs: fetch and permission in one call, lists, events, budgets, the clock."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Literal

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import Http404
from django.utils import timezone

from portal.accounts.models import User
from runs.agent.events import Kind
from runs.agent.spec import AgentSpec
from runs.ledger import CHARGED, ClockSums, Span, clock_sums
from runs.models.config import AgentConfig
from runs.models.evaluation import By, Evaluation, EvaluationState
from runs.models.log import Event, Interval
from runs.models.run import Run
from runs.states import LIVE, Status, Visibility

Viewer = User | AnonymousUser
PAGE = 1_000


def runs_readable_by(user: Viewer) -> QuerySet[Run]:
    """Runs this person may read: public ones, their teams', and everything for staff."""
    runs = Run.objects.select_related("team", "config", "task_version__task__domain", "created_by")
    if user.is_authenticated and user.is_staff:
        return runs
    public = Q(visibility=Visibility.PUBLIC)
    if not user.is_authenticated:
        return runs.filter(public)
    return runs.filter(public | Q(team__in=user.teams.all()))


def run_get_for(user: Viewer, run_id: int, *, need: Literal["read", "write"] = "read") -> Run:
    """The run, if this person may know of it. Raises Http404 for strangers, PermissionDenied for mere readers."""
    run = runs_readable_by(user).filter(pk=run_id).first()
    if run is None:
        raise Http404(f"there is no run {run_id}")
    if need == "write" and not may_write(user, run):
        raise PermissionDenied
    return run


def run_may_read(user: Viewer, run_id: int) -> bool:
    """Whether this person may know of the run; False for one that is not there."""
    return runs_readable_by(user).filter(pk=run_id).exists()


def run_keys_readable(user: Viewer, keys: Collection[str]) -> frozenset[str]:
    """Those of `keys`, the names under which nodes know runs, whose run this person may know of."""
    numbers = [key.removeprefix("run-") for key in keys if key.startswith("run-")]
    ids = [int(number) for number in numbers if number.isdecimal()]
    found = runs_readable_by(user).filter(pk__in=ids).values_list("pk", flat=True)
    return frozenset(f"run-{pk}" for pk in found)


def may_write(user: Viewer, run: Run) -> bool:
    """Whether this person may control the run: members of its team, and staff."""
    return user.is_authenticated and (user.is_staff or user.teams.filter(pk=run.team_id).exists())


def runs_list_for(
    user: Viewer,
    *,
    status: Sequence[str] = (),
    team: int | None = None,
    task: str = "",
    config: int | None = None,
    board: str = "",
) -> QuerySet[Run]:
    """Runs this person may read, newest first, narrowed by what is given."""
    runs = runs_readable_by(user)
    if status:
        runs = runs.filter(status__in=status)
    if team is not None:
        runs = runs.filter(team=team)
    if task:
        runs = runs.filter(task_version__task__slug=task)
    if config is not None:
        runs = runs.filter(config=config)
    if board:
        runs = runs.filter(board=board)
    return runs.order_by("-pk")


def runs_live_for(user: Viewer) -> QuerySet[Run]:
    """Runs under way that this person may read, newest first; queued ones too, after the others."""
    runs = runs_readable_by(user).filter(status__in=LIVE).alias(idle=Q(status=Status.QUEUED))
    return runs.order_by("idle", "-pk")


def config_get_for(user: Viewer, config_id: int) -> AgentConfig:
    """The agent config, if this person may read it: its team and staff, and everybody once a public run used it.

    Raises Http404.
    """
    configs = AgentConfig.objects.select_related("team", "created_by").filter(pk=config_id)
    if not (user.is_authenticated and user.is_staff):
        mine = Q(team__in=user.teams.all()) if user.is_authenticated else Q(pk__in=[])
        public = Run.objects.filter(config=config_id, visibility=Visibility.PUBLIC)
        configs = configs.filter(mine | Q(pk__in=public.values("config")))
    config = configs.first()
    if config is None:
        raise Http404(f"there is no agent {config_id}")
    return config


def configs_list_for(user: Viewer) -> QuerySet[AgentConfig]:
    """Agent configs this person may read, newest version first."""
    configs = AgentConfig.objects.select_related("team").order_by("team", "name", "-version")
    if user.is_authenticated and user.is_staff:
        return configs
    public = Q(pk__in=Run.objects.filter(visibility=Visibility.PUBLIC).values("config"))
    if not user.is_authenticated:
        return configs.filter(public)
    return configs.filter(public | Q(team__in=user.teams.all()))


def config_spec(config: AgentConfig) -> AgentSpec:
    """The typed spec of a stored config."""
    return AgentSpec.model_validate(config.spec)


def events_after(run: Run, seq: int, limit: int = PAGE) -> Sequence[Event]:
    """Events with a greater seq, in order, at most `limit`."""
    return list(Event.objects.filter(run=run, seq__gt=seq).order_by("seq")[:limit])


def events_of_steps(run: Run, first: int, last: int) -> Sequence[Event]:
    """All events of the steps `first` to `last`; step 0 is what came before the first reply."""
    return list(Event.objects.filter(run=run, step__gte=first, step__lte=last).order_by("seq"))


def evaluations_of(run: Run) -> Sequence[Evaluation]:
    """All evaluations of a run, in order."""
    return list(Evaluation.objects.filter(run=run).select_related("revision", "from_store").order_by("ordinal"))


@dataclass(frozen=True)
class Budget:
    """How much of one limit is used, in its own unit. `limit` None: there is none."""

    used: Decimal | float | int
    limit: Decimal | float | int | None

    @property
    def left(self) -> Decimal | float | int | None:
        """What is left, never negative; None without a limit."""
        if self.limit is None:
            return None
        return max(Decimal(str(self.limit)) - Decimal(str(self.used)), Decimal(0))


@dataclass(frozen=True)
class Budgets:
    """All budgets of a run. Time in seconds of working time, money in USD; `unpriced`: some call had no known price."""

    time_s: Budget
    steps: Budget
    evaluations: Budget
    usd: Budget
    tokens: Budget
    unpriced: bool


def working_s(run: Run, now: datetime | None = None) -> float:
    """Charged seconds so far, the open piece included."""
    if run.clock_since is None or run.clock_kind not in CHARGED:
        return run.charged_s
    return run.charged_s + max(0.0, ((now or timezone.now()) - run.clock_since).total_seconds())


def run_budgets(run: Run) -> Budgets:
    """What is used and what is left, now."""
    return Budgets(
        time_s=Budget(working_s(run), run.limit_s),
        steps=Budget(run.steps, run.limit_steps),
        evaluations=Budget(run.evaluations_used, run.limit_evaluations),
        usd=Budget(run.usd, run.limit_usd),
        tokens=Budget(run.tokens, run.limit_tokens),
        unpriced=run.unpriced,
    )


def run_spans(run: Run, now: datetime | None = None) -> list[Span]:
    """Every piece of the run's time, the open one up to now."""
    rows = Interval.objects.filter(run=run).order_by("started_at").values_list("kind", "started_at", "ended_at")
    spans = [Span(*row) for row in rows]
    if run.clock_kind and run.clock_since is not None:
        spans.append(Span(run.clock_kind, run.clock_since, max(run.clock_since, now or timezone.now())))
    return spans


def run_clock(run: Run) -> ClockSums:
    """The clock ledger as sums by kind."""
    return clock_sums(run_spans(run))


def evaluations_spent(run: Run) -> int:
    """Evaluations of the agent's own that count or may still count."""
    return Evaluation.objects.filter(run=run, by=By.AGENT).exclude(state=EvaluationState.FAILED).count()


def hint_penalty(run: Run) -> Decimal:
    """Points off each evaluation from now on: what the hint cost, if the agent has viewed it."""
    shown = Event.objects.filter(run=run, kind=Kind.HINT_REVEALED).order_by("seq").first()
    return Decimal(str(shown.body.get("penalty", 0))) if shown is not None else Decimal(0)


def queue_position(run: Run, order: Sequence[int]) -> int | None:
    """Place of a queued run in `order` (from 1); None when it isn't queued."""
    return order.index(run.pk) + 1 if run.status == Status.QUEUED and run.pk in order else None
