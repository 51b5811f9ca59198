"""Room: portal.api. Runs: state, trace, evaluations, cancel."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.answers import answers
from portal.api.queries import answer_page, number_of, page_before, text_of
from portal.api.run_answers import EvaluationsAnswer, EventsAnswer, RunAnswer, RunsAnswer
from portal.api.scopes import ScopeRequired, user_of
from portal.api.shapes import evaluation_shape, event_line, run_shape
from runs.selectors import evaluations_of, events_after, run_get_for, runs_list_for
from runs.services.controls import run_cancel

PAGE = 500
PAGE_CHARS = 1_000_000


class RunList(APIView):
    """Runs one may read."""

    permission_classes = (ScopeRequired,)

    @extend_schema(
        responses=answers(RunsAnswer),
        operation_id="runs",
        parameters=[OpenApiParameter("status", str), OpenApiParameter("task", str), OpenApiParameter("before", int)],
    )
    def get(self, request: Request) -> Response:
        """Newest first, 50 a page; `next` is the `before` of the following page."""
        status = [text_of(request, "status")] if text_of(request, "status") else []
        found = runs_list_for(request.user, status=status, task=text_of(request, "task"))
        page, following = page_before(request, found)
        return Response(answer_page("runs", [run_shape(run) for run in page], following))


class RunDetail(APIView):
    """One run."""

    permission_classes = (ScopeRequired,)

    @extend_schema(responses=answers(RunAnswer, 404), operation_id="run")
    def get(self, request: Request, run_id: int) -> Response:
        """State, budgets, score."""
        return Response(run_shape(run_get_for(request.user, run_id)))


class RunEvents(APIView):
    """A run's trace."""

    permission_classes = (ScopeRequired,)

    @extend_schema(
        responses=answers(EventsAnswer, 404),
        operation_id="run_events",
        parameters=[OpenApiParameter("after", int), OpenApiParameter("limit", int)],
    )
    def get(self, request: Request, run_id: int) -> Response:
        """Events with a greater seq than `after`, in order, at most `limit` (500) and about a megabyte."""
        run = run_get_for(request.user, run_id)
        rows = events_after(run, number_of(request, "after", 0, 2**62), number_of(request, "limit", PAGE, PAGE) or PAGE)
        page = list(_fitting(event_line(row) for row in rows))
        return Response({"events": page, "last": page[-1]["seq"] if page else None})


class RunEvaluations(APIView):
    """A run's evaluations."""

    permission_classes = (ScopeRequired,)

    @extend_schema(responses=answers(EvaluationsAnswer, 404), operation_id="run_evaluations")
    def get(self, request: Request, run_id: int) -> Response:
        """In order; raw metrics as the evaluator signed them."""
        run = run_get_for(request.user, run_id)
        return Response({"evaluations": [evaluation_shape(row) for row in evaluations_of(run)]})


class RunCancel(APIView):
    """Cancel a run."""

    permission_classes = (ScopeRequired,)

    @extend_schema(request=None, responses=answers(RunAnswer, 401, 403, 404, 409), operation_id="run_cancel")
    def post(self, request: Request, run_id: int) -> Response:
        """Ends it without a further evaluation; refused for a run that has ended."""
        run = run_get_for(request.user, run_id, need="write")
        run_cancel(run=run, by=user_of(request))
        return Response(run_shape(run_get_for(request.user, run_id)))


def _fitting(events: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """As many as make an answer of moderate size; always at least one."""
    size = 0
    for event in events:
        length = len(json.dumps(event["body"]))
        if size and size + length > PAGE_CHARS:
            return
        size += length
        yield event
