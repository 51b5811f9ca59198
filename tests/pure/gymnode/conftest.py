"""A node in memory that speaks the port: real file operations on a folder, scripted sessions, a journal."""

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gymnode.actions.base import Action
from gymnode.actions.registry import KNOWN, action_parse
from gymnode.observations import FileCursor, Observation
from gymnode.remote.files import FileOps
from gymnode.remote.refusals import Refusal
from gymnode.workbench import Bench


@dataclass(frozen=True)
class Answer:
    """Same shape as the transport's reply."""

    status: int
    body: Mapping[str, Any]
    payload: bytes = b""


@dataclass
class MemoryNode:
    """`script` answers session operations: op -> result, or an exception to raise."""

    name: str
    files: FileOps
    script: dict[str, Any] = field(default_factory=dict)
    sent: list[dict[str, Any]] = field(default_factory=list)
    journal: dict[str, Answer] = field(default_factory=dict)
    carried_out: int = 0

    def request(self, method, path, body=None, *, payload=b"", timeout_s=30.0):
        self.sent.append({**body, "path": path, "timeout_s": timeout_s})
        if body["action_id"] not in self.journal:
            self.carried_out += 1
            self.journal[body["action_id"]] = self._answer(body["op"], body["args"])
        return self.journal[body["action_id"]]

    def _answer(self, op: str, args: dict[str, Any]) -> Answer:
        result = self.script.get(op)
        if isinstance(result, Exception) and not isinstance(result, Refusal):
            raise result
        try:
            if isinstance(result, Refusal):
                raise result
            return Answer(200, {"result": result if result is not None else self.files.call(op, args)})
        except Refusal as refusal:
            return Answer(refusal.status, {"code": refusal.code, "message": refusal.message})

    def close(self) -> None:
        pass


def piece(text: bytes, *, omitted: int = 0, tail: bytes = b"", start: int = 0) -> dict[str, Any]:
    """A stretch of a log as gymd sends it."""
    end = start + len(text) + omitted + len(tail)
    return {
        "head": base64.b64encode(text).decode(),
        "tail": base64.b64encode(tail).decode(),
        "omitted": omitted,
        "start_offset": start,
        "next_offset": end,
        "total_bytes": end,
    }


def job(state: str = "exited", exit_code: int | None = 0, **more: Any) -> dict[str, Any]:
    """A job as gymd sends it."""
    return {"id": "412.17.0", "state": state, "exit_code": exit_code, "duration_s": 0.42, **more}


@dataclass
class Gym:
    """A run with one or more nodes, driven by calls as a model makes them. The cursor is folded as the engine does."""

    nodes: dict[str, MemoryNode]
    root: Path
    cursor: FileCursor | None = None
    calls: int = 0
    max_chars: int = 30_000

    @property
    def node(self) -> MemoryNode:
        return next(iter(self.nodes.values()))

    def bench(self, action_id: str | None = None, *, resend: bool = False) -> Bench:
        self.calls += 1
        clock = _ticking(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
        name = action_id or f"412.{self.calls}.0"
        return Bench("412", 3, name, resend, self.nodes, self.cursor, clock, self.max_chars)

    def perform(self, action: Action, **how: Any) -> Observation:
        seen = action.perform(self.bench(**how))
        self.cursor = seen.cursor or self.cursor
        return seen

    def call(self, name: str, arguments: str = "{}", **how: Any) -> Observation:
        return self.perform(action_parse(name, arguments, allowed=KNOWN), **how)


def _ticking(start: datetime) -> Callable[[], datetime]:
    times = iter(start + timedelta(milliseconds=250 * step) for step in range(100))
    return lambda: next(times)


@pytest.fixture
def gym(tmp_path: Path) -> Gym:
    return Gym({"n1": MemoryNode("n1", FileOps(str(tmp_path)))}, tmp_path)


@pytest.fixture
def two_nodes(tmp_path: Path) -> Gym:
    roots = [tmp_path / name for name in ("n1", "n2")]
    for root in roots:
        root.mkdir()
    return Gym({root.name: MemoryNode(root.name, FileOps(str(root))) for root in roots}, tmp_path)


@pytest.fixture
def as_piece() -> Callable[..., dict[str, Any]]:
    return piece


@pytest.fixture
def as_job() -> Callable[..., dict[str, Any]]:
    return job
