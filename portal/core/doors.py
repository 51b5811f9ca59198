"""Room core: what every door does alike: a refused request is told as a sentence on the page it came from."""

import sys
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec
from urllib.parse import urlsplit

from django.contrib import messages
from django.db import InterfaceError, OperationalError
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.defaults import server_error

from portal.core.errors import FieldFault, SiteError

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponse]


def came_from(request: HttpRequest, fallback: str = "home") -> str:
    """The path of this site that the request was made on, or `fallback`."""
    referer = request.headers.get("Referer", "")
    if url_has_allowed_host_and_scheme(referer, allowed_hosts={request.get_host()}):
        parts = urlsplit(referer)
        path = f"/{parts.path.lstrip('/')}"  # //host would lead to another site
        return f"{path}?{parts.query}" if parts.query else path
    return fallback


def telling(*also: type[Exception]) -> Callable[[View[P]], View[P]]:
    """A decorator: a SiteError, or one of `also` by its text, becomes a message on the page before (POST), or a page of
    its own with its status (GET).
    """

    caught: tuple[type[Exception], ...] = (SiteError, *also)

    def decorate(view: View[P]) -> View[P]:
        @wraps(view)
        def door(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            try:
                return view(request, *args, **kwargs)
            except caught as error:
                return _told(request, error)

        return door

    return decorate


def tell_errors(view: View[P]) -> View[P]:
    """`telling` for doors whose services raise SiteErrors only."""
    return telling()(view)


def _told(request: HttpRequest, error: Exception) -> HttpResponse:
    sentence = error.sentence if isinstance(error, SiteError) else str(error)
    if request.method == "POST":
        messages.error(request, sentence)
        return redirect(came_from(request))
    status, code = (error.status, error.code) if isinstance(error, SiteError) else (409, "conflict")
    return _page(request, sentence, status, code)


def _page(request: HttpRequest, sentence: str, status: int, code: str) -> HttpResponse:
    facts = {"sentence": sentence, "status": status, "code": code}
    return render(request, "site_error.html", facts, status=status)


def failed(request: HttpRequest) -> HttpResponse:
    """The page for what nobody caught: 500; 503 while the database is away, because the same request works later; a
    SiteError, raised where no door of ours stands around (in a library's view), by its own sentence and status.
    """
    error = sys.exc_info()[1]
    if isinstance(error, SiteError):
        return _page(request, error.sentence, error.status, error.code)
    away = isinstance(error, OperationalError | InterfaceError)
    answer = server_error(request, "503.html" if away else "500.html")
    if away:
        answer.status_code = 503
        answer["Retry-After"] = "5"
    return answer


def field_fault_into(form: Form, fault: FieldFault) -> None:
    """Put a service's complaint at the field it is about; one without such a field stands above the form."""
    form.add_error(fault.field if fault.field in form.fields else None, fault.message)
