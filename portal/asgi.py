"""The ASGI application: HTTP by Django, `/ws/` by Channels. Composition root; knows every room, holds no logic."""

import os

from channels.routing import ProtocolTypeRouter, URLRouter
from channels.sessions import CookieMiddleware
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings.embedded")

http = get_asgi_application()

from django.urls import path, re_path  # noqa: E402  Django must be set up before any room is imported

from portal.core.bodies import BodyLimit  # noqa: E402
from portal.core.hosts import OwnPages, refuse  # noqa: E402
from runs.live.consumers import LiveConsumer  # noqa: E402

# The cookie is read here and no user kept: who holds a socket is asked anew for as long as it is open.
live = CookieMiddleware(LiveConsumer.as_asgi())
sockets = URLRouter([path("ws/", live), re_path("", refuse)])  # type: ignore[arg-type]  # ASGI, where views are usual
application = ProtocolTypeRouter({"http": BodyLimit(http), "websocket": OwnPages(sockets)})
