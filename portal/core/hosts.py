"""Room: portal.core. Which Host a request may name, and from whose pages a WebSocket may be opened.

Django asks for the host only where a page needs it, so files were served under any name; Channels compares the name in
Origin with ALLOWED_HOSTS, so any port, any scheme and any Host would do.
"""

import re
from collections.abc import Awaitable, Callable, MutableMapping
from io import BytesIO
from typing import Any

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[..., Awaitable[None]]
_ORIGIN = re.compile(r"(?P<scheme>https?)://(?P<named>[a-z0-9.-]+(:\d{1,5})?)")
_WEB = {"ws": "http", "wss": "https"}


def host_known(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Django middleware, the first one: a Host that isn't ours gets 400, whatever would have answered."""

    def middleware(request: HttpRequest) -> HttpResponse:
        request.get_host()
        return get_response(request)

    return middleware


class OwnPages:
    """ASGI, for WebSockets: lets in what comes from a page of this site, by the rule of Django's CSRF check: Host is
    allowed, and Origin is its scheme, host and port or one of CSRF_TRUSTED_ORIGINS. Everything else gets 403.
    """

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass the handshake on, or refuse it."""
        await (self._app if _from_here(scope) else refuse)(scope, receive, send)


async def refuse(_scope: Message, _receive: Receive, send: Send) -> None:
    """ASGI: a WebSocket that is closed before it was accepted; the server answers 403."""
    await send({"type": "websocket.close"})


def _from_here(scope: Message) -> bool:
    web = {"method": "GET", "path": "/", "query_string": b"", "scheme": _WEB.get(scope.get("scheme", "ws"), "")}
    request = ASGIRequest({**scope, **web}, BytesIO())
    try:
        host = request.get_host()
    except DisallowedHost:
        return False
    origin = request.headers.get("Origin", "")
    return origin == f"{request.scheme}://{host}" or any(_is(origin, one) for one in settings.CSRF_TRUSTED_ORIGINS)


def _is(origin: str, trusted: str) -> bool:
    """Whether `origin` is the trusted one, or below it (`https://*.example.org`)."""
    scheme, _, host = trusted.partition("://*.")
    if not host:
        return origin == trusted
    parts = _ORIGIN.fullmatch(origin)
    return parts is not None and parts["scheme"] == scheme and parts["named"].endswith(f".{host}")
