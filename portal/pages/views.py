"""Room: portal.pages. Doors of the public pages: read input, call one presenter, shape the answer."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_safe

from portal.accounts.people import me
from portal.catalog.selectors import task_get
from portal.pages.agents import agent_lines, agent_page
from portal.pages.docs import docs_page
from portal.pages.home import home_page, live_lines
from portal.pages.submit import Sent, SubmitPage, submit_page, submit_try
from portal.pages.tasks import task_page, tasks_page
from runs.selectors import config_get_for


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """The first page."""
    return render(request, "pages/home.html", {"page": home_page(request.user)})


@require_safe
def home_live(request: HttpRequest) -> HttpResponse:
    """The runs under way alone: the first page asks for them again every few seconds."""
    lines, count = live_lines(request.user)
    return render(request, "pages/live.html", {"live": lines, "live_count": count})


@require_safe
def tasks(request: HttpRequest) -> HttpResponse:
    """All tasks by domain."""
    suite = request.GET.get("suite", "")
    return render(request, "pages/tasks.html", {"domains": tasks_page(suite), "suite": suite})


@require_safe
def task(request: HttpRequest, slug: str) -> HttpResponse:
    """One task; `?v=` shows an older version."""
    asked = request.GET.get("v", "")
    number = int(asked) if asked.isdecimal() and len(asked) < 7 else None
    return render(request, "pages/task.html", {"page": task_page(task_get(slug), number)})


@require_safe
def agents(request: HttpRequest) -> HttpResponse:
    """All agents the reader may see."""
    return render(request, "pages/agents.html", {"agents": agent_lines(request.user)})


@require_safe
def agent(request: HttpRequest, config_id: int) -> HttpResponse:
    """One version of an agent."""
    config = config_get_for(request.user, config_id)
    return render(request, "pages/agent.html", {"page": agent_page(request.user, config), "config": config})


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def submit(request: HttpRequest) -> HttpResponse:
    """A config, tasks and repeats become queued runs; or the page again with every fault."""
    user = me(request)
    if request.method != "POST":
        return render(request, "pages/submit.html", {"page": submit_page(user, request.GET.dict())})
    made = submit_try(user, request.POST, request.FILES)
    if isinstance(made, SubmitPage):
        status = 200 if made.checked and not made.refused and not made.form.errors else 400
        return render(request, "pages/submit.html", {"page": made}, status=status)
    return _queued(request, made)


def _queued(request: HttpRequest, made: Sent) -> HttpResponse:
    runs = [attempt.run for attempt in made.submission.attempts.select_related("run")]
    if made.again:
        messages.info(request, _("This form was queued once. Open the page anew to queue the same again."))
    else:
        messages.success(request, ngettext("{n} run is queued.", "{n} runs are queued.", len(runs)).format(n=len(runs)))
    return redirect(runs[0]) if len(runs) == 1 else redirect("submission", submission_id=made.submission.pk)


@require_safe
def docs(request: HttpRequest, section: str = "") -> HttpResponse:
    """The docs, made from the code that enforces them. Raises Http404 for a section there is none of."""
    page = docs_page(section)
    return render(request, page.template, {"page": page})
