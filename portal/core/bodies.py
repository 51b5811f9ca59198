"""Room: portal.core. Bodies of requests before any door sees them: too large ones and unreadable forms are refused.

Django keeps a whole body on disk before it looks at the address, and reads a form again for its error pages: without
these two anybody could fill the disk, and a malformed form would be a fault of ours (500).
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from django.core.exceptions import BadRequest, SuspiciousOperation
from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.multipartparser import MultiPartParserError
from django.shortcuts import render
from django.urls import Resolver404, resolve
from django.utils.datastructures import MultiValueDict

MOST_BYTES = 8 * 1024 * 1024
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[..., Awaitable[None]]


class BodyLimit:
    """ASGI: answers 413 as soon as a body is, or says it is, larger than `most` bytes; the rest is never read."""

    def __init__(self, app: App, most: int = MOST_BYTES) -> None:
        self._app, self._most = app, most

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass the request on with its body counted."""
        size, started = _declared(scope), False

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            return {"type": "http.disconnect"} if size > self._most else message

        async def seen(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        if size <= self._most:
            size = 0
            await self._app(scope, counted, seen)
        if size > self._most and not started:
            await _refuse(send, self._most)


def _declared(scope: Message) -> int:
    raw: bytes = dict(scope["headers"]).get(b"content-length", b"")
    return int(raw) if raw.isdigit() and len(raw) < 19 else 0


async def _refuse(send: Send, most: int) -> None:
    text = f"The request is larger than the {most} bytes this site takes.\n".encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(text)).encode())]
    await send({"type": "http.response.start", "status": 413, "headers": [*headers, (b"connection", b"close")]})
    await send({"type": "http.response.body", "body": text})


def forms_readable(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Django middleware, the last one: a form that can't be read gets the page for that (400), wherever it is sent."""

    def middleware(request: HttpRequest) -> HttpResponse:
        if request.method != "POST" or _reads_itself(request.path_info):
            return get_response(request)
        try:
            request.POST  # noqa: B018  reading it is the test
        except (BadRequest, MultiPartParserError, SuspiciousOperation, LookupError, UnicodeError):
            request.encoding = "utf-8"  # LookupError, UnicodeError: it may be no charset of a text (base64, undefined)
            request._post, request._files = QueryDict(), MultiValueDict()  # type: ignore[attr-defined]  # as Django
            return render(request, "400.html", status=400)
        return get_response(request)

    return middleware


def _reads_itself(path: str) -> bool:
    """The API's doors do: they take JSON only, and answer in their own shape."""
    try:
        return bool(getattr(resolve(path).func, "csrf_exempt", False))
    except Resolver404:
        return False
