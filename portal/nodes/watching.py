"""Room: portal.nodes. One node watched: a long poll for what changed there, and the new bytes of its terminals.

Nothing is lost when collector, database or node restart: a change counts as seen once every sink has taken it, bytes
are asked for from where the store ends. What a sink refuses is offered again. A session that goes quiet is told too.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from django.db import connection
from django.utils import timezone
from pydantic import BaseModel, ConfigDict, JsonValue

from gymnode.errors import NodeError, NoSuchRun, NoSuchSession, RequestRefused, refusal_from
from gymnode.transport.base import NodeLink, Reply
from portal.nodes.health import failure_code, node_answered, node_greeted, node_lost
from portal.nodes.links import Dial
from portal.nodes.models import Node, NodeState
from portal.nodes.samples import sample_store
from portal.nodes.sinks import Change, Quiet, TerminalBytes, change_put, quiet_put, terminal_end, terminal_put

PIECE_BYTES = 256 * 1024
LEAST_BYTES = 64 * 1024  # of every change come at once, so that the end of a flood is always there
OUTPUT = "output"
STATUS_S = 10.0


@dataclass(frozen=True)
class Timing:
    """In seconds; tests use shorter ones."""

    poll: float = 20.0
    lost_after: float = 30.0
    pause: float = 1.0
    pause_most: float = 10.0
    sample: float = 10.0
    quiet: float = 1.0


@dataclass(frozen=True)
class Flow:
    """How fast one session may fill the store: a burst, then so many bytes a second. Faster output shows as a gap; the
    node's log has it whole, and the gap is filled from there before the run's files are removed.
    """

    burst: int = 4 * 1024 * 1024
    per_s: int = 1024 * 1024


class _Seen(BaseModel):
    """One entry of `GET /v1/watch`."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    n: int
    kind: str
    run: str = ""
    session: str = ""
    total: int = 0


class _Watched(BaseModel):
    """The answer of `GET /v1/watch`."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    cursor: int
    changes: tuple[_Seen, ...] = ()


@dataclass
class _Tail:
    """How far one session's log was handed on, and how many bytes may follow at once."""

    end: int
    allowance: float
    at: float


class NodeWatcher:
    """Watches one node until told to stop. `turn` is one long poll; `sample` one reading of the machine."""

    def __init__(self, node_id: int, dial: Dial, *, timing: Timing, flow: Flow) -> None:
        self.node_id = node_id
        self.stop = threading.Event()
        self._dial = dial
        self._timing = timing
        self._flow = flow
        self._tails: dict[tuple[str, str], _Tail] = {}
        self._printed: dict[tuple[str, str], float] = {}  # when a session's last bytes came, until it is quiet
        self._greeted: NodeLink | None = None
        self._answered_at = time.monotonic()

    def turn(self) -> float:
        """One long poll with all it brings; returns the seconds to wait before the next one.

        Raises what sinks and database raise; the same changes come again then.
        """
        self._quieten()
        node = Node.objects.get(pk=self.node_id)
        try:
            link = self._link(node)
            watched = _Watched.model_validate(self._ask(link, node, self._watch_path(node)).body)
            self._hand_on(link, node, watched)
        except (NodeError, RequestRefused) as problem:
            return self._failed(node, problem)
        self._answered_at = time.monotonic()
        node_answered(node=Node.objects.get(pk=self.node_id))
        return 0.0

    def sample(self) -> None:
        """Read the machine's state once, if it answers."""
        node = Node.objects.get(pk=self.node_id)
        try:
            reply = self._ask(self._dial(node), node, "/v1/status", timeout_s=STATUS_S)
        except (NodeError, RequestRefused):
            return
        sample_store(node=node, status=reply.body)

    def _link(self, node: Node) -> NodeLink:
        """The link; a new one is greeted first, so that the row says what the node is."""
        link = self._dial(node)
        if link is not self._greeted:
            node_greeted(node=node, hello=self._ask(link, node, "/v1/hello").body)
            self._greeted = link
        return link

    def _watch_path(self, node: Node) -> str:
        wait_s = min(self._timing.poll, self._timing.quiet) if self._printed else self._timing.poll
        return f"/v1/watch?after={node.watch_cursor}&wait_s={wait_s:g}"

    def _ask(self, link: NodeLink, node: Node, path: str, *, timeout_s: float | None = None) -> Reply:
        # No database connection is held while a node takes its time.
        if not connection.in_atomic_block:
            connection.close()
        reply = link.request("GET", path, timeout_s=timeout_s or self._timing.poll + 20)
        if reply.status >= 400:
            code, message = (str(reply.body.get(key, "")) for key in ("code", "message"))
            raise refusal_from(node.name, reply.status, code, message)
        return reply

    def _hand_on(self, link: NodeLink, node: Node, watched: _Watched) -> None:
        """Bytes first: whoever is told that a job ended finds its output."""
        outputs = {(one.run, one.session): one.total for one in watched.changes if one.kind == OUTPUT}
        for (run, session), total in outputs.items():
            self._pull(link, node, (run, session), total)
        for one in watched.changes:
            if one.kind != OUTPUT:
                change_put(Change(one.kind, node.pk, one.run, one.session, timezone.now()))
        if watched.changes or watched.cursor != node.watch_cursor:
            Node.objects.filter(pk=node.pk).update(watch_cursor=watched.cursor)

    def _quieten(self) -> None:
        """Tell of sessions after whose last bytes nothing came for a moment."""
        for key, at in list(self._printed.items()):
            if time.monotonic() - at >= self._timing.quiet:
                quiet_put(Quiet(*key, timezone.now()))
                del self._printed[key]

    def _pull(self, link: NodeLink, node: Node, key: tuple[str, str], total: int) -> None:
        """Hand on the new bytes of one session, at most as many as `Flow` allows, the newest ones where not all."""
        tail = self._tail(key)
        begin = max(tail.end, total - max(LEAST_BYTES, int(tail.allowance)))
        while begin < total:
            path = f"/v1/runs/{quote(key[0])}/sessions/{quote(key[1])}/log?offset={begin}&limit={PIECE_BYTES}"
            try:
                reply = self._ask(link, node, path)
            except (NoSuchRun, NoSuchSession):
                self._tails.pop(key, None)
                return
            if not reply.payload:
                break
            start = _whole(reply.body, "start_offset", begin)
            terminal_put(TerminalBytes(key[0], node.pk, key[1], start, reply.payload, timezone.now()))
            begin = max(start + len(reply.payload), _whole(reply.body, "next_offset", 0))
            self._printed[key] = time.monotonic()
            tail.allowance -= len(reply.payload)
            tail.end = begin

    def _tail(self, key: tuple[str, str]) -> _Tail:
        now = time.monotonic()
        tail = self._tails.get(key)
        if tail is None:
            tail = self._tails[key] = _Tail(terminal_end(*key), self._flow.burst, now)
        tail.allowance = min(self._flow.burst, tail.allowance + (now - tail.at) * self._flow.per_s)
        tail.at = now
        return tail

    def _failed(self, node: Node, problem: NodeError | RequestRefused) -> float:
        """After `lost_after` seconds without an answer the node counts as lost; a foreign host key counts at once."""
        self._greeted = None
        silent = time.monotonic() - self._answered_at
        code = failure_code(problem) if isinstance(problem, NodeError) else problem.code
        if silent >= self._timing.lost_after or code.startswith("host_key"):
            node_lost(node=Node.objects.get(pk=node.pk), code=code)
        return min(self._timing.pause_most, max(self._timing.pause, silent / 4))


def watched_ids() -> Sequence[int]:
    """The nodes that are to be watched: all in service, and the lost ones, which may come back."""
    states = (NodeState.ONLINE, NodeState.DRAINING, NodeState.LOST)
    return list(Node.objects.filter(state__in=states).values_list("pk", flat=True))


def _whole(body: Mapping[str, JsonValue], name: str, default: int) -> int:
    value = body.get(name)
    return value if isinstance(value, int) else default
