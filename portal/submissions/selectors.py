"""Room: portal.submissions. What pages and API show of submissions."""

from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet
from django.http import Http404

from portal.accounts.models import User
from portal.accounts.permits import Person, may
from portal.accounts.roles import Thing, Verb
from portal.accounts.selectors import team_ids_of
from portal.submissions.models import Attempt, Submission
from runs.models.run import Run
from runs.selectors import runs_readable_by
from runs.states import End, Visibility


@dataclass(frozen=True)
class Place:
    """Where a run stands in its submission, and how many runs that has."""

    submission: int
    task: str
    repeat: int
    repeats: int
    attempt: int


def submissions_for(user: Person) -> QuerySet[Submission]:
    """Submissions of the teams of `user`, newest first."""
    mine = Submission.objects.filter(team__in=team_ids_of(user))
    return mine.select_related("team", "config", "created_by")


def submission_get_for(user: Person, submission_id: int) -> Submission:
    """One submission. Raises Http404 to strangers of a private one, and of one whose runs were all made private."""
    submission = Submission.objects.select_related("team", "config").filter(pk=submission_id).first()
    if submission is None:
        raise Http404
    if may(user, submission.team, Thing.PRIVATE_RUN, Verb.READ):
        return submission
    if submission.visibility != Visibility.PUBLIC or not attempts_for(user, submission).exists():
        raise Http404
    return submission


def attempts_for(user: Person, submission: Submission) -> QuerySet[Attempt]:
    """Those attempts whose run `user` may read (one of a public submission may have been made private), with runs and
    tasks, in the order of tasks, repeats, attempts.
    """
    reader = user if isinstance(user, User) else AnonymousUser()
    readable = runs_readable_by(reader).order_by().values("pk")
    return attempts_of(submission).filter(run__in=readable)


def attempts_of(submission: Submission) -> QuerySet[Attempt]:
    """All its attempts, for those who may read them all."""
    return submission.attempts.select_related("run", "task_version__task")


def retryable_ends(submission: Submission) -> frozenset[str]:
    """Ends of a run after which it may be tried again. On a board a cancelled run counts, or bad luck could be called
    off.
    """
    return frozenset({End.INFRASTRUCTURE} if submission.board else {End.INFRASTRUCTURE, End.CANCELLED})


def retries_for(user: Person, submission: Submission) -> frozenset[int]:
    """Runs of `submission` that `user` may try again: the newest attempt of its repeat, ended so that one may."""
    if not may(user, submission.team, Thing.CONFIG, Verb.WRITE):
        return frozenset()
    newest = {(each.task_version_id, each.repeat): each.run for each in attempts_of(submission)}
    return frozenset(run.pk for run in newest.values() if run.end_reason in retryable_ends(submission))


def place_of(run: Run) -> Place | None:
    """The place of `run` in a submission, or None for a run outside one."""
    attempt = Attempt.objects.filter(run=run).select_related("submission", "task_version__task").first()
    if attempt is None:
        return None
    return Place(
        submission=attempt.submission_id,
        task=attempt.task_version.task.slug,
        repeat=attempt.repeat,
        repeats=attempt.submission.repeats,
        attempt=attempt.attempt,
    )
