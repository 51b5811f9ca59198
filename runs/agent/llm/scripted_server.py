"""Room: runs.agent. The scripted model on a wire: an OpenAI-compatible HTTP server that plays playbooks. Standard
library only.

`python -m runs.agent.llm.scripted_server --host 127.0.0.1 --port 8031 --tasks tasks` serves `POST
/v1/chat/completions` (streamed and whole), `GET /v1/models` and `GET /healthz`. A playbook lies at `<tasks>/<task
id>/playbooks/<kind>.yaml`; the model's name is the kind, the task stands on the prompt's `Task: ID` line. Stateless
but for the count of played faults (see `scripted.py`).
"""

import argparse
import json
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from gymnode.actions.registry import ACTIONS, action_parse
from gymnode.errors import CallRefused
from runs.agent.llm.playbook import Fault, Playbook, read_playbook
from runs.agent.llm.scripted import FaultCount, Library, Played, Turn, play, summary_wanted, task_named
from runs.agent.protocols import UnknownModel
from runs.agent.yaml_core import SourceErrors

MAX_BODY = 64 * 1024 * 1024
PIECE = 48
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class WireError(Exception):
    """An answer other than a reply, in the wire's form."""

    def __init__(self, status: int, code: str, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.retry_after = retry_after


def folder_library(folder: Path) -> Library:
    """Playbooks of a tasks folder; read again when a file has changed."""

    def find(task: str, kind: str) -> Playbook:
        path = folder / task / "playbooks" / f"{kind}.yaml"
        if not _NAME.fullmatch(task) or not _NAME.fullmatch(kind) or not path.is_file():
            known = ", ".join(kinds_in(folder / task)) if _NAME.fullmatch(task) else ""
            raise UnknownModel(f"task `{task[:100]}` has no playbook `{kind[:100]}`; it has: {known or 'none'}")
        return _read(path, path.stat().st_mtime_ns)

    return find


@lru_cache(maxsize=64)
def _read(path: Path, changed_ns: int) -> Playbook:
    return read_playbook(path.read_text(encoding="utf-8"))


def kinds_in(task_folder: Path) -> list[str]:
    """The kinds of playbook that a task has."""
    return sorted(path.stem for path in (task_folder / "playbooks").glob("*.yaml"))


def turns_of(messages: Any) -> list[Turn]:
    """The wire's messages as turns. Raises `WireError` where a call has no result: real providers refuse that too."""
    if not isinstance(messages, list) or not messages:
        raise WireError(400, "invalid_request_error", "`messages` must be a list with at least one message")
    turns: list[Turn] = []
    open_calls: list[str] = []
    for message in messages:
        role, text = str(message.get("role", "")), message.get("content") or ""
        if role == "tool":
            if message.get("tool_call_id") not in open_calls:
                raise WireError(400, "invalid_request_error", "a `tool` message must follow the call that it answers")
            open_calls.remove(message["tool_call_id"])
        elif open_calls:
            raise WireError(400, "invalid_request_error", f"tool calls without a result: {', '.join(open_calls)}")
        calls = message.get("tool_calls") or []
        for call in calls:
            if not isinstance(json.loads(call["function"]["arguments"]), dict):
                raise WireError(400, "invalid_request_error", "arguments of a tool call must be a JSON object")
        open_calls += [str(call["id"]) for call in calls]
        turns.append(
            Turn(role, text if isinstance(text, str) else json.dumps(text), tuple(str(c["id"]) for c in calls))
        )
    if open_calls:
        raise WireError(400, "invalid_request_error", f"tool calls without a result: {', '.join(open_calls)}")
    return turns


class ScriptedServer(ThreadingHTTPServer):
    """The server with its library and the count of played faults. `requests` counts completions, for tests and
    benchmarks.
    """

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, address: tuple[str, int], library: Library, kinds: Sequence[str] = ()) -> None:
        super().__init__(address, Handler)
        self.library = library
        self.kinds = tuple(kinds)
        self.faults = FaultCount()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news; anything else is told as the base class tells it."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def answer(self, body: Mapping[str, Any], client_id: str) -> tuple[Played, Fault | None]:
        """What to reply, and the fault to play before it. Raises `WireError`."""
        kind, turns = str(body.get("model", "")), turns_of(body.get("messages"))
        task = task_named(turns)
        if task is None:
            raise WireError(
                400, "invalid_request_error", "the prompt has no `Task: ID` line that says which playbook to play"
            )
        try:
            book = self.library(task, kind)
        except UnknownModel as error:
            raise WireError(404, "model_not_found", error.message) from error
        except SourceErrors as error:
            raise WireError(422, "invalid_playbook", f"{task}/{kind}: {error}") from error
        if book.task != task:
            raise WireError(422, "invalid_playbook", f"the playbook {task}/{kind} is for task `{book.task}`")
        played = play(book, turns, with_tools=bool(body.get("tools")))
        if played.position is None or summary_wanted(turns):
            return played, None
        key = (task, kind, played.position.step, client_id)
        return played, played.fault if self.faults.due(played.fault, key) else None


class Handler(BaseHTTPRequestHandler):
    """One connection. HTTP/1.1, kept alive."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: ScriptedServer

    def do_GET(self) -> None:
        """`/v1/models` and `/healthz`."""
        if self.path == "/v1/models":
            models = [
                {"id": kind, "object": "model", "created": 0, "owned_by": "scripted"} for kind in self.server.kinds
            ]
            self._json(200, {"object": "list", "data": models})
        elif self.path == "/healthz":
            self._json(200, {"status": "ok"})
        else:
            self._json(
                404, _error("not_found", f"{self.path[:100]} is not served; see /v1/models, /v1/chat/completions")
            )

    def do_POST(self) -> None:
        """`/v1/chat/completions`."""
        try:
            if self.path != "/v1/chat/completions":
                raise WireError(404, "not_found", f"{self.path[:100]} is not served; POST to /v1/chat/completions")
            body = self._body()
            played, fault = self.server.answer(body, self.headers.get("X-Client-Request-Id", ""))
            self._reply(body, played, fault)
        except WireError as error:
            headers = {} if error.retry_after is None else {"Retry-After": f"{error.retry_after:g}"}
            self._json(error.status, _error(error.code, error.message), headers)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            self._json(
                400, _error("invalid_request_error", f"the request can't be read: {type(error).__name__}: {error}")
            )

    def _body(self) -> dict[str, Any]:
        length = int(self.headers.get("Content-Length", "0"))
        if not 0 < length <= MAX_BODY:
            self.close_connection = True
            raise WireError(
                413, "invalid_request_error", f"a body of 1 to {MAX_BODY} bytes with a Content-Length is needed"
            )
        body: dict[str, Any] = json.loads(self.rfile.read(length))
        return body

    def _reply(self, body: Mapping[str, Any], played: Played, fault: Fault | None) -> None:
        if fault is not None:
            time.sleep(fault.slow_s)
            if fault.status is not None:
                message = fault.message or f"scripted fault {fault.status}"
                raise WireError(fault.status, fault.code or "scripted_fault", message, retry_after=fault.retry_after)
            if fault.empty:
                played = Played("", (), played.position, None, played.usage)
        head = {"id": f"scripted-{played.position.call_id() if played.position else 'summary'}", "created": 0}
        head["model"] = f"scripted/{body.get('model')}"
        if body.get("stream"):
            usage_wanted = (body.get("stream_options") or {}).get("include_usage", False)
            self._stream(list(_chunks(head, played, with_usage=usage_wanted)), cut=fault is not None and fault.cut)
        else:
            self._json(200, _whole(head, played))

    def _stream(self, chunks: Sequence[Mapping[str, Any]], *, cut: bool) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for chunk in chunks[: max(1, len(chunks) // 2)] if cut else chunks:
            self._chunk(f"data: {json.dumps(chunk)}\n\n")
        if cut:
            self.close_connection = True
            return
        self._chunk("data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _json(self, status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the base class's
        """Silent: the runs' events say what was asked and answered."""


def _error(code: str, message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": code, "code": code, "param": None}}


def _usage(played: Played) -> dict[str, Any]:
    usage = played.usage
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.total,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    }


def _finish(played: Played) -> str:
    return "tool_calls" if played.calls else "stop"


def _whole(head: Mapping[str, Any], played: Played) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": played.text or None}
    if played.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in played.calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": _finish(played), "logprobs": None}
    return {**head, "object": "chat.completion", "choices": [choice], "usage": _usage(played)}


def _chunks(head: Mapping[str, Any], played: Played, *, with_usage: bool) -> Iterator[dict[str, Any]]:
    def chunk(delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return {**head, "object": "chat.completion.chunk", "choices": [choice]}

    yield chunk({"role": "assistant", "content": ""})
    for start in range(0, len(played.text), PIECE):
        yield chunk({"content": played.text[start : start + PIECE]})
    for index, call in enumerate(played.calls):
        opening = {"name": call.name, "arguments": ""}
        yield chunk({"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": opening}]})
        for start in range(0, len(call.arguments), PIECE * 20):
            piece = {"arguments": call.arguments[start : start + PIECE * 20]}
            yield chunk({"tool_calls": [{"index": index, "function": piece}]})
    yield chunk({}, _finish(played))
    if with_usage:
        yield {**head, "object": "chat.completion.chunk", "choices": [], "usage": _usage(played)}


def check(folder: Path) -> int:
    """Read every playbook of a folder and print its faults; the number of bad ones."""
    bad = 0
    for path in sorted(folder.glob("*/playbooks/*.yaml")):
        faults = faults_of(path)
        bad += bool(faults)
        print(f"{path}: {'; '.join(faults) or 'fine'}", file=sys.stderr if faults else sys.stdout)
    return bad


def faults_of(path: Path) -> list[str]:
    """What is wrong with a playbook: its form, its task, and calls that no run would carry out (raw ones are meant)."""
    try:
        book = read_playbook(path.read_text(encoding="utf-8"))
    except SourceErrors as error:
        return [str(error)]
    faults = [] if book.task == path.parent.parent.name else [f"it is for task `{book.task}`"]
    for index, step in enumerate(book.steps):
        for name, arguments in ((name, given) for call in step.all_calls() for name, given in call.items()):
            if isinstance(arguments, str):
                continue
            try:
                action_parse(name, json.dumps(arguments or {}), allowed=ACTIONS)
            except CallRefused as refused:
                faults.append(f"step {index}: {refused}")
    return faults


def main(argv: Sequence[str] | None = None) -> int:
    """The command. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="scripted_server", description="The scripted model, OpenAI-compatible.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8031)
    parser.add_argument("--tasks", type=Path, required=True, help="folder with <task id>/playbooks/<kind>.yaml")
    parser.add_argument("--check", action="store_true", help="read all playbooks, print their faults, and end")
    options = parser.parse_args(argv)
    if options.check:
        return 1 if check(options.tasks) else 0
    kinds = (
        sorted({kind for task in options.tasks.iterdir() for kind in kinds_in(task)}) if options.tasks.is_dir() else []
    )
    with ScriptedServer((options.host, options.port), folder_library(options.tasks), kinds) as server:
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
