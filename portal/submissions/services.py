"""Room: portal.submissions. From a wish to queued runs: all checked first, then all are queued or none."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.utils.translation import gettext_lazy as _

from portal.accounts.models import Team, User
from portal.accounts.permits import demand
from portal.accounts.roles import Thing, Verb
from portal.accounts.vault import SecretMissing, secret_demand
from portal.catalog.models import TaskVersion
from portal.core.errors import FieldFault, Missing
from portal.submissions.models import Attempt, Submission
from portal.submissions.quota import quota_take
from portal.submissions.selectors import retryable_ends
from runs.agent.spec import AgentSpec
from runs.agent.spec_parts import Provider
from runs.models.run import Run
from runs.services.configs import config_create
from runs.services.queueing import run_queue
from runs.states import Visibility

MOST_REPEATS = 10


class StillGoing(FieldFault):
    """A retry of something that has not failed."""

    code = "not_to_be_retried"


@dataclass(frozen=True)
class Wish:
    """What somebody asks for. `config` is the text of an agent config; `tasks` are frozen versions, each once."""

    config: str
    tasks: Sequence[TaskVersion]
    repeats: int = 1
    visibility: str = Visibility.PRIVATE
    board: str = ""


def submission_create(*, team: Team, wish: Wish, by: User) -> Submission:
    """Queue every run of `wish` for `team`, or none.

    Raises SpecErrors (faults of the config, each with its line), FieldFault (tasks, repeats, a key), QuotaUsedUp,
    Http404 or PermissionDenied when `by` may not use the team's configs.
    """
    demand(by, team, Thing.CONFIG, Verb.WRITE)
    _checked(wish)
    with transaction.atomic():
        quota_take(team=team, runs=len(wish.tasks) * wish.repeats)
        config = config_create(team=team, text=wish.config, by=by)
        key_demand(team, AgentSpec.model_validate(config.spec))
        submission = Submission.objects.create(
            team=team,
            config=config,
            board=wish.board,
            visibility=Visibility.PUBLIC if wish.board else wish.visibility,
            repeats=wish.repeats,
            created_by=by,
        )
        for repeat in range(1, wish.repeats + 1):
            for version in wish.tasks:
                place = Attempt(submission=submission, task_version=version, repeat=repeat)
                _attempt(place, by, submission.visibility)
    return submission


def attempt_retry(*, run: Run, by: User) -> Run:
    """A new attempt of the repeat that `run` was, after a failure that was not the agent's. The old trace stays, and
    who may see the new one is what was last said of the old one.

    Raises Missing (a run outside submissions), StillGoing (not ended, ended by the agent's own doing, or tried again
    already), QuotaUsedUp.
    """
    place = Attempt.objects.filter(run=run).select_related("submission__config", "submission__team").first()
    if place is None:
        raise Missing(thing=str(_("submission of run")), name=run.pk)
    submission = place.submission
    demand(by, submission.team, Thing.CONFIG, Verb.WRITE)
    if run.end_reason not in retryable_ends(submission):
        message = _("run {run} did not end by a failure of the machinery; a further run is a submission of its own")
        raise StillGoing(field="run", message=str(message).format(run=run.pk))
    with transaction.atomic():
        quota_take(team=submission.team, runs=1)
        same = Attempt.objects.filter(submission=submission, task_version=place.task_version, repeat=place.repeat)
        number = same.count() + 1
        if number != place.attempt + 1:
            message = _("run {run} was tried again already; its newest attempt is number {newest}")
            raise StillGoing(field="run", message=str(message).format(run=run.pk, newest=number - 1))
        run.refresh_from_db(fields=["visibility"])
        again = Attempt(submission=submission, task_version=place.task_version, repeat=place.repeat, attempt=number)
        return _attempt(again, by, run.visibility)


def key_demand(team: Team, spec: AgentSpec) -> None:
    """Raises FieldFault when the config names a key that the team's vault lacks: its runs would only fail later."""
    if spec.model.provider is Provider.SCRIPTED or spec.model.api_key is None:
        return
    try:
        secret_demand(team=team, name=spec.model.api_key.removeprefix("secret:"))
    except SecretMissing as missing:
        raise FieldFault(field="config", message=missing.sentence) from missing


def _attempt(place: Attempt, by: User, visibility: str) -> Run:
    """Queue the run of `place`, which is saved with it. A board's run is public whatever `visibility` says."""
    submission = place.submission
    place.run = run_queue(
        team=submission.team,
        config=submission.config,
        task_version=place.task_version,
        by=by,
        board=submission.board or None,
        visibility=visibility,
    )
    place.save(force_insert=True)
    return place.run


def _checked(wish: Wish) -> None:
    if not wish.tasks:
        raise FieldFault(field="tasks", message=str(_("choose at least one task")))
    if len({version.task_id for version in wish.tasks}) != len(wish.tasks):
        raise FieldFault(field="tasks", message=str(_("each task once; use repeats to run one more often")))
    if not 1 <= wish.repeats <= MOST_REPEATS:
        message = str(_("1 to {most} repeats, not {given}")).format(most=MOST_REPEATS, given=wish.repeats)
        raise FieldFault(field="repeats", message=message)
    if wish.visibility not in Visibility.values:
        raise FieldFault(field="visibility", message=str(_("public or private")))
