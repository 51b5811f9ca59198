"""Room: gymnode.transport. Requests and replies over one stream of frames, many at once, with reconnection.

What leads to gymd (SSH channel, subprocess) is a `Stream`; everything else is the same for both. A request that was
outstanding when a stream broke is sent again on the next one if gymd is still the one it was: its journal then answers
and nothing runs twice.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import JsonValue

from gymnode.errors import NodeUnreachable, PathTooLarge, ProtocolMismatch
from gymnode.remote.frames import PROTOCOL, READY, Frame, FrameError, FrameReader, frame_pack
from gymnode.transport.base import Reply

RECEIVE = 1 << 18
MAX_NOISE = 64 * 1024
PROTOCOLS = (PROTOCOL,)
RETRY_S = 0.2
MIN_DIAL_S, MAX_DIAL_S = 2.0, 20.0


class Stream(Protocol):
    """Bytes to and from `gymd connect`."""

    def send(self, data: bytes) -> None:
        """Send all of it. Raises OSError or EOFError when the stream is broken."""
        ...

    def receive(self, size: int) -> bytes:
        """At most `size` bytes; empty at the end. May raise OSError, TimeoutError when nothing came for a while."""
        ...

    def close(self) -> None:
        """Break the stream; a blocked `receive` returns."""
        ...

    def last_words(self) -> str:
        """What the far end said on standard error, for the message."""
        ...


@dataclass
class _Pending:
    done: threading.Event = field(default_factory=threading.Event)
    frame: Frame | None = None


class Conversation:
    """One stream in use: a reader thread hands each reply to who waits for it."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._pending: dict[int, _Pending] = {}
        self._next = 0
        self.broken = ""
        self.heard_at = time.monotonic()
        self.instance = ""

    def start(self, rest: bytes) -> None:
        """Begin to read; `rest` came with the greeting."""
        threading.Thread(target=self._read, args=(rest,), daemon=True, name="gymd-reader").start()

    def send(self, header: dict[str, JsonValue], payload: bytes) -> tuple[int, _Pending]:
        """Send a request. Raises NodeUnreachable-worthy OSError when the stream is broken, FrameError for what no frame
        can hold; the stream stays as it is then."""
        pending = _Pending()
        with self._lock:
            self._next += 1
            number = self._next
        data = frame_pack({"id": number, **header}, payload)
        with self._lock:
            if self.broken:
                raise OSError(self.broken)
            self._pending[number] = pending
        try:
            # Not under the state's lock: a send may block on a dead peer, and must not keep others from breaking it.
            with self._sending:
                self._stream.send(data)
        except (OSError, EOFError) as error:
            self.close(str(error) or type(error).__name__)
            raise OSError(self.broken) from error
        return number, pending

    def forget(self, number: int) -> None:
        """Nobody waits for that reply any more."""
        with self._lock:
            self._pending.pop(number, None)

    def close(self, why: str) -> None:
        """Break it; all who wait are told."""
        with self._lock:
            first = not self.broken
            self.broken = self.broken or why or "closed"
            pending, self._pending = self._pending, {}
        for entry in pending.values():
            entry.done.set()
        if first:
            self._stream.close()

    def last_words(self) -> str:
        """What the far end said on standard error."""
        return self._stream.last_words()

    def _read(self, rest: bytes) -> None:
        reader = FrameReader()
        why = "the node hung up"
        try:
            data = rest
            while True:
                for frame in reader.feed(data):
                    self._deliver(frame)
                try:
                    data = self._stream.receive(RECEIVE)
                except TimeoutError:
                    data = b""
                    continue
                if not data:
                    break
                self.heard_at = time.monotonic()
        except (OSError, EOFError, FrameError) as error:
            why = str(error) or type(error).__name__
        self.close(why)

    def _deliver(self, frame: Frame) -> None:
        with self._lock:
            pending = self._pending.pop(int(frame.header.get("id", 0)), None)
        if pending is not None:
            pending.frame = frame
            pending.done.set()


class FramedLink:
    """A NodeLink over streams that `dial(seconds)` makes; it raises NodeError and is called again after a break."""

    def __init__(self, name: str, dial: Callable[[float], Stream], *, keepalive_s: float = 10.0) -> None:
        self.name = name
        self._dial = dial
        self._keepalive_s = keepalive_s
        self._lock = threading.Lock()
        self._conversation: Conversation | None = None
        self._closed = False

    def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, JsonValue] | None = None,
        *,
        payload: bytes = b"",
        timeout_s: float = 30.0,
    ) -> Reply:
        """As NodeLink.request."""
        deadline = time.monotonic() + timeout_s
        header: dict[str, JsonValue] = {"method": method, "path": path, "body": dict(body or {})}
        instance = ""
        while True:
            conversation = self._live(deadline)
            if instance and conversation.instance != instance:
                text = f"{self.name}: gymd was started anew while an answer was outstanding"
                raise NodeUnreachable(self.name, text)
            instance = conversation.instance
            try:
                frame = self._exchange(conversation, header, payload, deadline)
            except FrameError as error:
                text = f"this is too large to be sent to a node at once ({error}): send less, in several pieces"
                return Reply(413, {"code": PathTooLarge.code, "message": text})
            if frame is not None:
                return _reply(frame)
            if time.monotonic() + RETRY_S >= deadline:
                raise NodeUnreachable(self.name, f"{self.name}: the link was lost ({conversation.broken})")

    def close(self) -> None:
        """Hang up for good."""
        with self._lock:
            self._closed = True
            if self._conversation is not None:
                self._conversation.close("closed here")

    def break_link(self) -> None:
        """Drop the connection as a network fault would; the next request dials again."""
        with self._lock:
            if self._conversation is not None:
                self._conversation.close("broken on purpose")

    def _live(self, deadline: float) -> Conversation:
        with self._lock:
            if self._closed:
                raise NodeUnreachable(self.name, f"{self.name}: this link was closed here")
            if self._conversation is None or self._conversation.broken:
                self._conversation = self._connect(max(MIN_DIAL_S, min(MAX_DIAL_S, deadline - time.monotonic())))
            return self._conversation

    def _connect(self, seconds: float) -> Conversation:
        stream = self._dial(seconds)
        conversation = Conversation(stream)
        try:
            conversation.start(_greeting_wait(stream, self.name, time.monotonic() + MAX_DIAL_S))
            header: dict[str, JsonValue] = {"method": "GET", "path": "/v1/hello", "body": {}}
            frame = self._exchange(conversation, header, b"", time.monotonic() + MAX_DIAL_S)
        except (OSError, EOFError) as error:
            stream.close()
            raise NodeUnreachable(self.name, f"{self.name}: {error} {stream.last_words()}".strip()) from error
        if frame is None:
            text = f"{self.name}: gymd doesn't answer ({conversation.broken}) {stream.last_words()}"
            raise NodeUnreachable(self.name, text.strip())
        hello = frame.header.get("body", {})
        if hello.get("protocol") not in PROTOCOLS:
            conversation.close("other protocol")
            spoken = hello.get("protocol")
            raise ProtocolMismatch(self.name, f"{self.name}: gymd speaks protocol {spoken}; this release {PROTOCOLS}")
        conversation.instance = str(hello.get("instance", ""))
        return conversation

    def _exchange(
        self, conversation: Conversation, header: dict[str, JsonValue], payload: bytes, deadline: float
    ) -> Frame | None:
        """The reply's frame; None when the stream broke. Raises NodeUnreachable at the deadline."""
        try:
            number, pending = conversation.send(header, payload)
        except OSError:
            return None
        while not pending.done.wait(max(0.0, min(self._keepalive_s, deadline - time.monotonic()))):
            if time.monotonic() >= deadline:
                conversation.forget(number)
                what = f"{header['method']} {header['path']}"
                raise NodeUnreachable(self.name, f"{self.name}: no answer to {what} in time; the link itself stands")
            self._keep_alive(conversation)
        return pending.frame

    def _keep_alive(self, conversation: Conversation) -> None:
        """Ask for a sign of life; without one for two intervals the stream counts as broken."""
        silent = time.monotonic() - conversation.heard_at
        if silent >= 2 * self._keepalive_s:
            conversation.close(f"silent for {silent:.0f} s")
        elif silent >= self._keepalive_s * 0.9:
            try:
                conversation.send({"method": "GET", "path": "/v1/ping", "body": {}}, b"")
            except OSError:
                return


def _greeting_wait(stream: Stream, name: str, deadline: float) -> bytes:
    """Skip what a login shell may print before gymd's greeting; what follows it is the first frames."""
    seen = b""
    while READY not in seen:
        try:
            data = stream.receive(RECEIVE)
        except TimeoutError:
            if time.monotonic() > deadline:
                raise
            continue
        if not data:
            raise OSError("the node ended the connection before gymd answered")
        seen += data
        if len(seen) > MAX_NOISE:
            raise ProtocolMismatch(name, f"{name}: {len(seen)} bytes of other text instead of gymd's greeting")
    return seen[seen.index(READY) + len(READY) :]


def _reply(frame: Frame) -> Reply:
    body = frame.header.get("body")
    return Reply(int(frame.header.get("status", 500)), body if isinstance(body, dict) else {}, frame.payload)
