"""Room: runs. The list of runs as a page shows it: filters from the address, places in the queue, pages of it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.core.paginator import Page, Paginator

from portal.accounts.models import Team, User
from portal.accounts.selectors import teams_of
from runs.models.run import Run
from runs.presenters import reason_text
from runs.selectors import Viewer, runs_list_for
from runs.services.queueing import queue_order
from runs.states import LIVE, Status

ROWS_PER_PAGE = 50
SLUG = re.compile(r"[-\w/]+")
STATES: Mapping[str, tuple[str, ...]] = {
    "live": tuple(sorted(LIVE)),
    "queued": (Status.QUEUED,),
    "finished": (Status.FINISHED,),
    "failed": (Status.FAILED,),
    "cancelled": (Status.CANCELLED,),
}


@dataclass(frozen=True)
class Filters:
    """What the address asks for; unknown values count as not given."""

    state: str = ""
    team: str = ""
    task: str = ""
    board: str = ""
    number: str = "1"

    @classmethod
    def of(cls, given: Mapping[str, str]) -> "Filters":
        """Read a query string."""
        state = given.get("state", "")
        return cls(
            state=state if state in STATES else "",
            team=_slug(given.get("team", "")),
            task=_slug(given.get("task", "")),
            board=_slug(given.get("board", "")),
            number=given.get("p", "1"),
        )


def _slug(text: str) -> str:
    """Names in addresses are short and without spaces or NUL, which the database refuses; others are nobody's."""
    return text if len(text) <= 180 and SLUG.fullmatch(text) else ""


@dataclass(frozen=True)
class Row:
    """A run in the list. `place`: from 1, None when it does not wait in the queue."""

    run: Run
    reason: str
    place: int | None


@dataclass(frozen=True)
class RunsPage:
    """One page of the list."""

    rows: tuple[Row, ...]
    pages: Page[Run]
    filters: Filters
    teams: Sequence[Team]


def runs_page(user: Viewer, filters: Filters) -> RunsPage:
    """The runs this person may see, newest first, narrowed by the filters."""
    teams = list(teams_of(user)) if isinstance(user, User) else []
    team = next((t.pk for t in teams if t.slug == filters.team), None)
    found = runs_list_for(user, status=STATES.get(filters.state, ()), team=team, task=filters.task, board=filters.board)
    page = Paginator(found, ROWS_PER_PAGE).get_page(filters.number)
    runs = list(page.object_list)
    queued = any(run.status == Status.QUEUED for run in runs)
    order = {each.run_id: place for place, each in enumerate(queue_order(), 1)} if queued else {}
    rows = tuple(Row(run, reason_text(run), order.get(run.pk)) for run in runs)
    return RunsPage(rows, page, filters, teams)
