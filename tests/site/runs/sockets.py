"""Sockets as a browser opens them: through the site's own door, with the cookie of somebody who signed in."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.test import Client

from portal.accounts.models import User
from portal.asgi import application

# What comes sooner or later is waited for as long as a busy machine may need.
PATIENCE_S = 60
HERE = {"host": "testserver", "origin": "http://testserver"}


def handshake(headers: dict[str, str], path: str = "/ws/", scheme: str = "ws") -> WebsocketCommunicator:
    """One that is not connected yet."""
    pairs = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    talk = WebsocketCommunicator(application, path, headers=pairs)
    talk.scope["scheme"] = scheme
    return talk


def signed_in(user: User) -> Client:
    """A browser of `user`."""
    client = Client()
    client.force_login(user)
    return client


@asynccontextmanager
async def socket(who: User | Client | None, *messages: dict[str, Any]) -> AsyncIterator[WebsocketCommunicator]:
    """An open socket of a person, a browser or a visitor, with `messages` sent."""
    client = await sync_to_async(signed_in)(who) if isinstance(who, User) else who
    cookies = {name: client.cookies[name].value for name in [settings.SESSION_COOKIE_NAME]} if client else {}
    cookie = "; ".join(f"{name}={value}" for name, value in cookies.items())
    talk = handshake({**HERE, "cookie": cookie})
    assert (await talk.connect(timeout=PATIENCE_S))[0]
    for message in messages:
        await talk.send_json_to(message)
    try:
        yield talk
    finally:
        await talk.disconnect(timeout=PATIENCE_S)


async def told(talk: WebsocketCommunicator) -> dict[str, Any]:
    """The next message."""
    found: dict[str, Any] = json.loads(await talk.receive_from(timeout=PATIENCE_S))
    return found


async def first_events(talk: WebsocketCommunicator) -> dict[str, Any]:
    """The first message with events; one that tells of a change of the head alone may come before."""
    while not (message := await told(talk)).get("events"):
        pass
    return message


async def seqs(talk: WebsocketCommunicator, upto: int) -> list[int]:
    """Event numbers as they come, until `upto`."""
    found: list[int] = []
    while not found or found[-1] < upto:
        message = await told(talk)
        if message["type"] == "events":
            found += [event["seq"] for event in message["events"]]
    return found
