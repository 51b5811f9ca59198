"""Room: portal.api. Boards and tasks, readable by anyone."""

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.answers import BoardAnswer, BoardsAnswer, TaskAnswer, TasksAnswer, answers
from portal.api.evidence_shapes import evidence_shape
from portal.api.queries import number_of, text_of
from portal.api.run_answers import EntryAnswer
from portal.api.scopes import ScopeRequired
from portal.api.shapes import board_shape
from portal.api.task_shapes import task_line, task_shape
from portal.catalog.selectors import task_get, tasks_by_domain
from portal.leaderboard.evidence import entry_evidence
from portal.leaderboard.order import SORTS
from portal.leaderboard.presenters import TIERS, Query, page_of
from portal.leaderboard.selectors import board_get, boards_list

ROWS = 1_000


class BoardList(APIView):
    """The boards."""

    permission_classes = (ScopeRequired,)

    @extend_schema(responses=answers(BoardsAnswer), operation_id="boards")
    def get(self, _request: Request) -> Response:
        """All boards, the first to show first."""
        plain = ("slug", "title", "hint_rule", "open_for_runs")
        rows = [
            {**{name: getattr(board, name) for name in plain}, "url": board.get_absolute_url()}
            for board in boards_list()
        ]
        return Response({"boards": rows})


class BoardDetail(APIView):
    """One board with its rows."""

    permission_classes = (ScopeRequired,)

    @extend_schema(
        responses=answers(BoardAnswer, 404),
        operation_id="board",
        parameters=[
            OpenApiParameter("sort", str, description=f"a column: {', '.join(SORTS)}, or domain:NAME"),
            OpenApiParameter("desc", str, enum=["1"], description="1: the greatest first"),
            OpenApiParameter("dir", str, enum=["asc", "desc"], deprecated=True, description="older spelling of desc"),
            OpenApiParameter("q", str, description="text in team, agent, model or note"),
            OpenApiParameter("tier", str, enum=[*TIERS], description="rows scored here or better; rows run here"),
            OpenApiParameter("offset", int),
            OpenApiParameter("limit", int, description=f"at most and by default {ROWS}"),
        ],
    )
    def get(self, request: Request, slug: str) -> Response:
        """Rows that match, in the order asked for: the query string is that of the page and of its CSV."""
        offset, limit = number_of(request, "offset", 0, 2**31), number_of(request, "limit", ROWS, ROWS) or ROWS
        older = {"desc": "1"} if text_of(request, "dir") == "desc" else {}
        query = Query.of({**older, **request.query_params.dict()})
        page = page_of(board_get(slug), query, slice(offset, offset + limit))
        return Response(board_shape(page, following=offset + limit))


class EntryDetail(APIView):
    """Why a row can be trusted."""

    permission_classes = (ScopeRequired,)

    @extend_schema(responses=answers(EntryAnswer, 404), operation_id="board_entry")
    def get(self, _request: Request, slug: str, entry_id: int) -> Response:
        """Digests, versions, node class and levels, model as returned, interventions, all runs of the team."""
        return Response(evidence_shape(entry_evidence(slug, entry_id)))


class TaskList(APIView):
    """The tasks."""

    permission_classes = (ScopeRequired,)

    @extend_schema(responses=answers(TasksAnswer), operation_id="tasks")
    def get(self, _request: Request) -> Response:
        """Every shown task, by domain."""
        return Response({"tasks": [task_line(task) for group in tasks_by_domain() for task in group.tasks]})


class TaskDetail(APIView):
    """One task."""

    permission_classes = (ScopeRequired,)

    @extend_schema(responses=answers(TaskAnswer, 404), operation_id="task")
    def get(self, _request: Request, slug: str) -> Response:
        """Text, limits, scoring and versions of a task; never its hint."""
        return Response(task_shape(task_get(slug)))
