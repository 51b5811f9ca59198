"""Room: portal.api. Configs and submissions: check a config, submit it, look at what became of it."""

from typing import Any

from django.db import transaction
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.accounts.permits import demand
from portal.accounts.roles import Thing, Verb
from portal.accounts.selectors import team_for_work
from portal.api.answers import answers
from portal.api.once import answered_once
from portal.api.queries import answer_page, page_before
from portal.api.run_answers import (
    ConfigCheckAnswer,
    ConfigLine,
    ConfigsAnswer,
    SubmissionAnswer,
    SubmissionsAnswer,
)
from portal.api.scopes import ScopeRequired, user_of
from portal.api.shapes import ConfigText, ConfigWish, SubmissionWish, submission_shape
from portal.api.wishes import config_checked, config_line, wish_of
from portal.submissions.selectors import submission_get_for, submissions_for
from portal.submissions.services import submission_create
from runs.selectors import configs_list_for
from runs.services.configs import config_create

BEFORE = OpenApiParameter("before", int, description="`next` of the page before")
KEY = OpenApiParameter("Idempotency-Key", str, OpenApiParameter.HEADER, description="the same key acts once")


class ConfigCheck(APIView):
    """Check a config without storing it."""

    permission_classes = (ScopeRequired,)

    @extend_schema(request=ConfigText, responses=answers(ConfigCheckAnswer, 400, 401, 403), operation_id="config_check")
    def post(self, request: Request) -> Response:
        """Every fault with its line and column, or what a sound config is."""
        shape = ConfigText(data=request.data)
        shape.is_valid(raise_exception=True)
        return Response(config_checked(shape.validated_data["config"]))


class ConfigList(APIView):
    """Agent configs."""

    permission_classes = (ScopeRequired,)

    @extend_schema(responses=answers(ConfigsAnswer), operation_id="configs", parameters=[BEFORE])
    def get(self, request: Request) -> Response:
        """Configs one may read, newest first, 50 a page; the text is on the agent's page."""
        page, following = page_before(request, configs_list_for(request.user))
        return Response(answer_page("configs", [config_line(row) for row in page], following))

    @extend_schema(
        request=ConfigWish, responses=answers(ConfigLine, 400, 401, 403, status=201), operation_id="config_create"
    )
    def post(self, request: Request) -> Response:
        """Store a config as the next version of its name; the same config again is the version it was."""
        shape = ConfigWish(data=request.data)
        shape.is_valid(raise_exception=True)
        team = team_for_work(user_of(request), shape.validated_data["team"])
        demand(request.user, team, Thing.CONFIG, Verb.WRITE)
        made = config_create(team=team, text=shape.validated_data["config"], by=user_of(request))
        return Response(config_line(made), status=201)


class SubmissionList(APIView):
    """Submit, and list one's own submissions."""

    permission_classes = (ScopeRequired,)
    private = True

    @extend_schema(responses=answers(SubmissionsAnswer, 401), operation_id="submissions", parameters=[BEFORE])
    def get(self, request: Request) -> Response:
        """Submissions of one's teams, newest first, 50 a page."""
        page, following = page_before(request, submissions_for(request.user))
        return Response(answer_page("submissions", [submission_shape(row, request.user) for row in page], following))

    @extend_schema(
        request=SubmissionWish,
        responses=answers(SubmissionAnswer, 400, 401, 403, 404, 409, status=201),
        operation_id="submit",
        parameters=[KEY],
    )
    def post(self, request: Request) -> Response:
        """Queue the runs of one config on some tasks, all or none. The same Idempotency-Key acts once."""
        shape = SubmissionWish(data=request.data)
        shape.is_valid(raise_exception=True)
        wanted: dict[str, Any] = shape.validated_data
        team_for_work(user_of(request), wanted["team"])  # a kept answer too is only for who may still act for the team
        answer = answered_once(request, wanted, lambda: _submitted(request, wanted))
        return Response(answer.body, status=answer.status)


@transaction.atomic
def _submitted(request: Request, wanted: dict[str, Any]) -> dict[str, Any]:
    team = team_for_work(user_of(request), wanted["team"])
    made = submission_create(team=team, wish=wish_of(wanted), by=user_of(request))
    return submission_shape(made, request.user)


class SubmissionDetail(APIView):
    """One submission."""

    permission_classes = (ScopeRequired,)

    @extend_schema(responses=answers(SubmissionAnswer, 404), operation_id="submission")
    def get(self, request: Request, submission_id: int) -> Response:
        """Its runs by task, repeat and attempt."""
        return Response(submission_shape(submission_get_for(request.user, submission_id), request.user))
