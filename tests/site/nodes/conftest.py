"""Machines for tests: rows that nobody connects to, and a real gymd with sinks that remember."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from portal.nodes import sinks
from portal.nodes.models import Node, NodeState
from portal.nodes.services import NodeFacts, node_add
from portal.nodes.sinks import Change, Quiet, TerminalBytes
from portal.nodes.states import node_state_move
from tests.site.nodes.gym import Gym


@pytest.fixture
def machine(db: None) -> Callable[..., Node]:
    """Makes an online node; keywords are NodeFacts, and `owner`."""

    def make(name: str, *, owner=None, state: NodeState = NodeState.ONLINE, **facts) -> Node:
        plain = {"host": f"{name}.example.org", "user": "ib", "cpus": 4, "memory_gb": 8}
        node = node_add(facts=NodeFacts(name=name, **{**plain, **facts}), by=None, owner=owner)
        if state != NodeState.OFFLINE:
            node_state_move(node=node, to=NodeState.ONLINE)
        if state not in {NodeState.OFFLINE, NodeState.ONLINE}:
            node_state_move(node=node, to=state)
        return node

    return make


@pytest.fixture
def gym() -> Iterator[Gym]:
    """A gymd of the test's own."""
    folder = Path(tempfile.mkdtemp(prefix="ib-gym-"))
    folder.chmod(0o711)  # as root, runs have users of their own
    running = Gym(folder)
    yield running
    running.stop("run-1", "run-2")
    shutil.rmtree(folder, ignore_errors=True)


class Heard:
    """What the sinks were handed. `broken` makes them fail so many times."""

    def __init__(self) -> None:
        self.pieces: list[TerminalBytes] = []
        self.quiet: list[str] = []
        self.changes: list[Change] = []
        self.broken = 0

    def take_piece(self, piece: TerminalBytes) -> None:
        self._perhaps_break()
        self.pieces.append(piece)

    def take_quiet(self, quiet: Quiet) -> None:
        self._perhaps_break()
        self.quiet.append(quiet.session)

    def take_change(self, change: Change) -> None:
        self._perhaps_break()
        self.changes.append(change)

    def text(self, run: str) -> bytes:
        return b"".join(piece.data for piece in self.pieces if piece.run == run)

    def end(self, run: str, session: str) -> int:
        ends = (p.offset + len(p.data) for p in self.pieces if (p.run, p.session) == (run, session))
        return max(ends, default=0)

    def kinds(self) -> list[str]:
        return [change.kind for change in self.changes]

    def _perhaps_break(self) -> None:
        if self.broken:
            self.broken -= 1
            raise ConnectionError("the bell is out of order")


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Heard:
    """The only sinks of a test."""
    sink = Heard()
    monkeypatch.setattr(sinks, "_terminal", [sink.take_piece])
    monkeypatch.setattr(sinks, "_quiet", [sink.take_quiet])
    monkeypatch.setattr(sinks, "_change", [sink.take_change])
    monkeypatch.setattr(sinks, "_ends", [sink.end])
    return sink
