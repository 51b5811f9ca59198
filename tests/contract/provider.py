"""A provider that answers as it is told: what no well-behaved server would send."""

import json
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Answers(ThreadingHTTPServer):
    """A provider that answers every request with the next (status, headers, body) of a list, and keeps what it was
    sent.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.next: list[tuple[int, dict[str, str], bytes | Iterable[bytes]]] = []
        self.got: list[tuple[dict[str, Any], dict[str, str]]] = []

    @classmethod
    @contextmanager
    def running(cls) -> Iterator["Answers"]:
        """A server on a free port, ended with the block."""
        with cls() as server:
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
            yield server
            server.shutdown()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what some tests are about."""

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


class _Answer(BaseHTTPRequestHandler):
    server: Answers

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.got.append((body, {name.lower(): value for name, value in self.headers.items()}))
        status, headers, data = self.server.next.pop(0)
        if status == 0:
            time.sleep(3)
        self.send_response(status or 200)
        for name, value in {"Content-Type": "text/event-stream", **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        for piece in [data] if isinstance(data, bytes) else data:
            self.wfile.write(piece)
            self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Silent."""


def stream(*chunks: dict[str, Any], done: bool = True) -> tuple[int, dict[str, str], bytes]:
    lines = [f"data: {json.dumps({'id': 'r', 'model': 'real-model-1', **chunk})}\n\n" for chunk in chunks]
    return 200, {}, "".join([*lines, "data: [DONE]\n\n" if done else ""]).encode()


def choice(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def failure(status: int, code: str = "", message: str = "no", **headers: str) -> tuple[int, dict[str, str], bytes]:
    body = json.dumps({"error": {"message": message, "code": code, "type": code}}).encode()
    return status, {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}, body
