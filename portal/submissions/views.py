"""Room: portal.submissions. Doors of a submission: its runs by task and repeat, and another attempt of a failed one."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from portal.accounts.people import me
from portal.core.doors import tell_errors
from portal.submissions.selectors import attempts_for, retries_for, submission_get_for, submissions_for
from portal.submissions.services import attempt_retry
from runs.selectors import run_get_for


@require_safe
@login_required
def submissions(request: HttpRequest) -> HttpResponse:
    """The newest submissions of the reader's teams."""
    found = submissions_for(request.user).select_related("config", "team")[:50]
    return render(request, "submissions/submissions.html", {"submissions": found})


@require_safe
def submission(request: HttpRequest, submission_id: int) -> HttpResponse:
    """One submission with its attempts."""
    found = submission_get_for(request.user, submission_id)
    attempts, retries = attempts_for(request.user, found), retries_for(request.user, found)
    shown = {"submission": found, "attempts": attempts, "retries": retries}
    return render(request, "submissions/submission.html", shown)


@require_POST
@login_required
@tell_errors
def retry(request: HttpRequest, run_id: int) -> HttpResponse:
    """A further attempt of a repeat whose run was lost or called off."""
    run = run_get_for(request.user, run_id, need="write")
    return redirect(attempt_retry(run=run, by=me(request)))
