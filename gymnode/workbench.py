"""Room: gymnode. All that an action may touch: the nodes of one run, through their links, and a clock.

`Bench` is made by the engine for one action. `Desk` is a bench at one node: the actions work at desks.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, JsonValue, ValidationError

from gymnode.errors import ProtocolMismatch, refusal_from
from gymnode.observations import FileCursor, Observation, Outcome
from gymnode.screen import visible
from gymnode.transport.base import NodeLink

MAX_CHARS = 30_000  # of one observation, as the model reads it
ANSWER_S = 30.0  # seconds an answer may take beyond what the operation itself waits
ACTING = frozenset(
    {
        "session.create",
        "session.run",
        "session.input",
        "session.clear",
        "session.close",
        "session.close_all",
        "session.kill",
        "file.write",
    }
)

Args = dict[str, JsonValue]
T = TypeVar("T", bound=BaseModel)
O = TypeVar("O", bound=Observation)  # noqa: E741 - O for observation


@dataclass(frozen=True)
class Bench:
    """The nodes of a run in order (the first is the default), as one action sees them.

    `epoch` fences: a node refuses what a former holder of the run sends. `resend` says that the action may have been
    sent before; the node then answers from its journal or says that the outcome is unknown.
    """

    run: str
    epoch: int
    action_id: str
    resend: bool
    nodes: Mapping[str, NodeLink]
    cursor: FileCursor | None
    clock: Callable[[], datetime]
    max_chars: int = MAX_CHARS
    _reads: Iterator[int] = field(default_factory=lambda: itertools.count(1), repr=False, compare=False)

    @property
    def default_node(self) -> str:
        """The run's first node."""
        return next(iter(self.nodes))

    def op(
        self, node: str | None, op: str, args: Mapping[str, JsonValue], *, wait_s: float = 0.0
    ) -> Mapping[str, JsonValue]:
        """Carry out one operation on a node (None: the first) and return its result.

        An action acts at most once, under its own id; what it reads before goes under ids derived from it, in order, so
        that a repeated action reads what it read the first time. Raises KeyError for a node the run doesn't have,
        NodeError and RequestRefused as the tree in `gymnode.errors` says.
        """
        link = self.nodes[node or self.default_node]
        acts = op in ACTING
        body: dict[str, JsonValue] = {
            "epoch": self.epoch,
            "action_id": self.action_id if acts else f"{self.action_id}.r{next(self._reads)}",
            "op": op,
            "args": dict(args),
            "resend": self.resend and acts,
        }
        reply = link.request("POST", f"/v1/runs/{quote(self.run, safe='')}/ops", body, timeout_s=wait_s + ANSWER_S)
        if reply.status >= 400:
            code, message = str(reply.body.get("code", "")), str(reply.body.get("message", ""))
            raise refusal_from(link.name, reply.status, code, message or f"{op} was refused ({code or reply.status})")
        result = reply.body.get("result")
        if not isinstance(result, Mapping):
            raise ProtocolMismatch(link.name, f"gymd on {link.name} answered {op} without a result")
        return result


@dataclass(frozen=True)
class Desk:
    """One action at work on one node since `started_at`."""

    bench: Bench
    node: str
    started_at: datetime

    def ask(self, op: str, answer: type[T], args: Mapping[str, JsonValue], *, wait_s: float = 0.0) -> T:
        """The typed result of an operation here. Raises as `Bench.op`, ProtocolMismatch for an unreadable result."""
        result = self.bench.op(self.node, op, args, wait_s=wait_s)
        try:
            return answer.model_validate(result)
        except ValidationError as error:
            fault = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in fault["loc"])
            text = f"gymd on {self.node} answered {op} in a form this release can't read: {where}: {fault['msg']}"
            raise ProtocolMismatch(self.node, text) from error

    def answer(self, kind: type[O], message: str, *, outcome: Outcome = Outcome.OK, **fields: Any) -> O:
        """An observation that ends now. Control characters of paths and names in the message become visible."""
        times = {"started_at": self.started_at, "finished_at": self.bench.clock(), "node": self.node}
        return kind(outcome=outcome, message=visible(message), **times, **fields)
