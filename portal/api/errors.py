"""Room: portal.api. Every refusal in one shape: `{"error": {"code", "message", "errors"?}}`."""

from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext as _
from django.views.defaults import page_not_found
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import exception_handler as framework_handler
from rest_framework.views import set_rollback

from portal.api.wishes import spec_faults
from portal.core.errors import FieldFault, SiteError, Unavailable
from runs.agent.spec import SpecErrors
from runs.states import MoveRefused

_CODES = {
    exceptions.ParseError: "malformed_request",
    exceptions.NotAuthenticated: "not_authenticated",
    exceptions.AuthenticationFailed: "bad_token",
    exceptions.PermissionDenied: "not_allowed",
    exceptions.NotFound: "not_found",
    exceptions.MethodNotAllowed: "method_not_allowed",
    exceptions.NotAcceptable: "not_acceptable",
    exceptions.UnsupportedMediaType: "unsupported_media_type",
    exceptions.Throttled: "throttled",
    exceptions.ValidationError: "invalid",
    Http404: "not_found",
    PermissionDenied: "not_allowed",
}


def error_body(code: str, message: str, errors: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """The one shape of a refusal; `errors` names fields or lines."""
    body: dict[str, Any] = {"code": code, "message": message}
    if errors:
        body["errors"] = errors
    return {"error": body}


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The site's answer for an address that leads nowhere: a page for people, our shape below /api/ for programs."""
    if not request.path.startswith("/api/"):
        return page_not_found(request, exception)
    message = "there is nothing at this address; /docs/api/ lists every address"
    return JsonResponse(error_body("not_found", message), status=404)


def exception_handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """REST framework's handler with our body; what it doesn't know stays a 500 without a detail."""
    ours = _of_ours(error)
    if ours is not None:
        set_rollback()
        return ours
    response = framework_handler(error, context)
    if response is None:
        return None
    code = next((name for kind, name in _CODES.items() if isinstance(error, kind)), "refused")
    response.data = error_body(code, _sentence(response.data), _fields(response.data))
    return response


def _of_ours(error: Exception) -> Response | None:
    match error:
        case FieldFault():
            faults = [{"path": error.field, "message": error.message}]
            return Response(error_body(error.code, error.sentence, faults), status=error.status)
        case SiteError():
            wait = error.facts.get("retry_after_s")
            headers = {} if wait is None else {"Retry-After": str(wait)}
            return Response(error_body(error.code, error.sentence), status=error.status, headers=headers)
        case SpecErrors():
            message = f"the agent config has {len(error.errors)} faults; see `errors`"
            return Response(error_body("config_invalid", message, spec_faults(error)), status=400)
        case MoveRefused():
            return Response(error_body("move_refused", str(error)), status=409)
        case OperationalError() | InterfaceError():
            away = Unavailable(thing=str(_("The database")))
            return Response(error_body(away.code, away.sentence), status=away.status, headers={"Retry-After": "5"})
        case _:
            return None


def _sentence(data: Any) -> str:
    if isinstance(data, dict) and "detail" in data:
        return str(data["detail"])
    return "The request has faults; see `errors`."


def _fields(data: Any, path: str = "") -> list[dict[str, Any]] | None:
    """Messages of the framework, flat: nested fields become `tasks.0`."""
    if isinstance(data, dict) and "detail" in data and not path:
        return None
    if isinstance(data, dict):
        named = [(f"{path}.{key}" if path else str(key), each) for key, each in data.items()]
        return [row for name, each in named for row in _fields(each, name) or []]
    if isinstance(data, list):
        return [row for each in data for row in _fields(each, path) or []]
    return [{"path": path, "message": str(data)}]
