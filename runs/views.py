"""Room: runs. Doors of the run pages: read input, call one selector or service, shape the answer."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from portal.accounts.people import me
from portal.core.doors import telling
from runs.downloads import streamed
from runs.lists import Filters, runs_page
from runs.machine import machine_views
from runs.presenters import PAGE, raw_step, run_page, steps_page
from runs.selectors import may_write, run_get_for
from runs.services.controls import run_cancel, run_message, run_pause, run_resume, run_share
from runs.states import MoveRefused, Visibility
from runs.terminal_log import session_tail, terminal_raw, terminal_text


def _number(text: str, default: int | None = None) -> int | None:
    """A whole number from an address, or `default` for anything else."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else default


@require_safe
def runs(request: HttpRequest) -> HttpResponse:
    """Queue and history."""
    return render(request, "runs/runs.html", {"page": runs_page(request.user, Filters.of(request.GET.dict()))})


@require_safe
def run(request: HttpRequest, run_id: int) -> HttpResponse:
    """The run page; `?from=` shows the steps from that number on."""
    found = run_get_for(request.user, run_id)
    first = _number(request.GET.get("from", ""))
    shown = {
        "run": found,
        "page": run_page(found, first),
        "machines": machine_views(found),
        "from_step": first is not None,
        "domain": found.task_version.task.domain,
        "can_write": may_write(request.user, found),
    }
    return render(request, "runs/run.html", shown)


@require_safe
def run_steps(request: HttpRequest, run_id: int) -> HttpResponse:
    """Some steps as markup, for a page that has others already."""
    found = run_get_for(request.user, run_id)
    first = max(1, _number(request.GET.get("from", ""), 1) or 1)
    count = min(PAGE, _number(request.GET.get("count", ""), PAGE) or PAGE)
    items = steps_page(found, first, count)
    at_end = first + count > found.steps
    return render(request, "runs/steps_fragment.html", {"run": found, "items": items, "at_end": at_end})


@require_safe
def run_step(request: HttpRequest, run_id: int, number: int) -> HttpResponse:
    """The events of one step, word for word."""
    found = run_get_for(request.user, run_id)
    return render(request, "runs/step_raw.html", {"run": found, "number": number, "events": raw_step(found, number)})


@require_safe
def run_terminal(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """A session's log: a page of its end (or the part before `?end=`), or all its bytes with `?raw=1`.

    With these, `X-Bytes-Missing` says how many of the log are not stored; a line `[... N bytes left out ...]` stands
    where each stretch of them was.
    """
    found = run_get_for(request.user, run_id)
    session = request.GET.get("session", "")
    tail = session_tail(found, session, _number(request.GET.get("end", "")))
    if request.GET.get("raw"):
        log = terminal_raw(found, session)
        answer = streamed(request, log.parts, "application/octet-stream")
        answer["Content-Disposition"] = f'attachment; filename="run-{found.pk}-terminal.log"'
        answer["X-Bytes-Missing"] = str(log.missing)
        return answer
    shown = {"run": found, "session": session, "tail": terminal_text(found, tail)}
    return render(request, "runs/terminal.html", shown)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@telling(MoveRefused)
def cancel(request: HttpRequest, run_id: int) -> HttpResponse:
    """Ask, then cancel."""
    found = run_get_for(request.user, run_id, need="write")
    if request.method != "POST":
        return render(request, "runs/cancel.html", {"run": found})
    run_cancel(run=found, by=me(request))
    messages.success(request, _("Run {run} is being cancelled.").format(run=found.pk))
    return redirect(found)


@require_POST
@login_required
@telling(MoveRefused)
def pause(request: HttpRequest, run_id: int) -> HttpResponse:
    """Pause: the clock stands still, processes are frozen."""
    found = run_get_for(request.user, run_id, need="write")
    run_pause(run=found, by=me(request))
    return redirect(found)


@require_POST
@login_required
@telling(MoveRefused)
def resume(request: HttpRequest, run_id: int) -> HttpResponse:
    """Go on after a pause."""
    found = run_get_for(request.user, run_id, need="write")
    run_resume(run=found, by=me(request))
    return redirect(found)


@require_POST
@login_required
@telling(MoveRefused)
def message(request: HttpRequest, run_id: int) -> HttpResponse:
    """Send the agent a message; the run is assisted from then on."""
    found = run_get_for(request.user, run_id, need="write")
    text = request.POST.get("text", "").strip()[:8000]
    if text:
        run_message(run=found, by=me(request), text=text)
        messages.success(request, _("Sent. The agent reads it before its next step; the run will not rank."))
    return redirect(found)


@require_POST
@login_required
@telling(MoveRefused)
def share(request: HttpRequest, run_id: int) -> HttpResponse:
    """Make a run public, or private again."""
    found = run_get_for(request.user, run_id, need="write")
    to = Visibility.PUBLIC if request.POST.get("to") == "public" else Visibility.PRIVATE
    run_share(run=found, by=me(request), visibility=to)
    return redirect(found)
