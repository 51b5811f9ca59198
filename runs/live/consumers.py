"""Room: runs. The WebSocket: a door. Reads subscriptions, lets viewing.py do the work, shapes errors."""

import asyncio
import logging
from collections.abc import Hashable
from typing import Any

from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings

from portal.core.plainjson import NotPlain, json_plain
from runs.live.hub import hub, run_key, terminal_key
from runs.live.reader import NotAllowed, Reader
from runs.live.viewing import Viewer
from runs.streaming import Piece, Source, message_text

MOST_SUBSCRIPTIONS = 32
MOST_CHARS = 4_096
MISSING = ("not_found", "There is no such run, or it is not yours to see.")
log = logging.getLogger(__name__)


class BadMessage(Exception):
    """What the client sent is not of the protocol."""


class LiveConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]  # channels ships no types
    """One socket, of one page; any number of subscriptions on it."""

    async def connect(self) -> None:
        self.tasks: dict[Hashable, asyncio.Task[None]] = {}
        self.turn = asyncio.Lock()
        self.reader = Reader(self.scope["cookies"].get(settings.SESSION_COOKIE_NAME, ""))
        await self.accept()

    async def disconnect(self, code: int) -> None:
        for task in self.tasks.values():
            task.cancel()

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        try:
            await self._take(_parsed(text_data))
        except BadMessage as problem:
            await self._error("bad_message", str(problem))

    async def _take(self, message: dict[str, Any]) -> None:
        run_id = _whole(message, "run")
        match message.get("type"):
            case "subscribe":
                key, source = run_key(run_id, _language(message))
                self._start(("run", run_id), run_id, key, source, position=_whole(message, "after", 0))
            case "subscribe_terminal":
                key, source = terminal_key(run_id, _name(message))
                self._start(key, run_id, key, source, position=_whole(message, "offset", 0))
            case "unsubscribe":
                self._stop(("terminal", run_id, _name(message)) if "session" in message else ("run", run_id))
            case _:
                raise BadMessage("type is subscribe, subscribe_terminal or unsubscribe")

    def _start(self, name: Hashable, run_id: int, key: Hashable, source: Source, *, position: int) -> None:
        self._stop(name)
        if len(self.tasks) >= MOST_SUBSCRIPTIONS:
            raise BadMessage(f"one socket has at most {MOST_SUBSCRIPTIONS} subscriptions; close others first")
        self.tasks[name] = asyncio.create_task(self._follow(name, run_id, key, source, position))

    def _stop(self, name: Hashable) -> None:
        task = self.tasks.pop(name, None)
        if task is not None:
            task.cancel()

    async def _follow(self, name: Hashable, run_id: int, key: Hashable, source: Source, position: int) -> None:
        async def give(piece: Piece) -> None:
            # Asked when the turn has come: a piece may have waited long behind others of a socket that is slow.
            async with self.turn:
                await self.reader.demand(run_id, anew=piece.recheck)
                await self._send(piece.text)

        try:
            await self.reader.demand(run_id)  # before anything of the run is read
            await Viewer(give=give, position=position).follow(hub(), key, source)
        except NotAllowed:
            self.tasks.pop(name, None)
            await self._error(*MISSING)
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("a subscription to run %s ended", run_id)
            self.tasks.pop(name, None)
            await self._error("interrupted", "The stream was interrupted; subscribe again.")

    async def _error(self, code: str, message: str) -> None:
        # One at a time: two subscriptions of a socket must not write into each other's frames.
        async with self.turn:
            await self._send(message_text({"type": "error", "code": code, "message": message}))

    async def _send(self, text: str) -> None:
        await self.base_send({"type": "websocket.send", "text": text})


def _parsed(text: str | None) -> dict[str, Any]:
    if text is None or len(text) > MOST_CHARS:
        raise BadMessage(f"a message is JSON text of at most {MOST_CHARS} characters")
    try:
        message = json_plain(text)
    except NotPlain:
        raise BadMessage("a message is a JSON object") from None
    if not isinstance(message, dict):
        raise BadMessage("a message is a JSON object")
    return message


def _whole(message: dict[str, Any], name: str, default: int | None = None) -> int:
    value = message.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise BadMessage(f"{name} is a whole number")
    return value


def _language(message: dict[str, Any]) -> str:
    """The language that the page was made in; one that the site does not speak is its own."""
    wanted = message.get("language", "")
    if not isinstance(wanted, str):
        raise BadMessage("language is the code of a language")
    return wanted.lower() if wanted.lower() in dict(settings.LANGUAGES) else settings.LANGUAGE_CODE


def _name(message: dict[str, Any]) -> str:
    value = message.get("session")
    if not isinstance(value, str) or not 0 < len(value) <= 120 or "\0" in value:
        raise BadMessage("session is the name of a session")
    return value
