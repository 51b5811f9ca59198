"""Room: runs. A run's place on its nodes: open the isolation, upload the workspace, build benches, fetch outputs, end.

The one file of this room that speaks gymd's paths. Everything that acts carries the epoch of the claim; what a node
refuses because of it is `EpochTooLow`, which the slice takes for `LeaseLost`.
"""

import hashlib
import itertools
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import IO, Any
from urllib.parse import quote

from django.utils import timezone

from gymnode.errors import NodeUnreachable, NoSuchRun, ProtocolMismatch, refusal_from
from gymnode.observations import FileCursor
from gymnode.sessions import Answer, Session
from gymnode.transport.base import NodeLink, Reply
from gymnode.workbench import Bench

CHUNK_BYTES = 4 * 1024 * 1024
OPEN_TIMEOUT_S = 120.0
END_TIMEOUT_S = 60.0
SPOOL_BYTES = 32 * 1024 * 1024
ENGINE_INDEX = 100_000
UPLOAD = "workspace"


@dataclass(frozen=True)
class Place:
    """One leased node: its link, and what the run may have there."""

    name: str
    role: str
    link: NodeLink
    gpus: tuple[int, ...] = ()
    task_env: str | None = None


@dataclass(frozen=True)
class Opening:
    """How the run is opened on each of its nodes. Sizes in GB."""

    network: str
    disk_gb: float
    level: str = "best"


@dataclass(frozen=True)
class Opened:
    """What a node made of it: the isolation level, and where the agent finds its workspace."""

    node: str
    level: str
    workspace: str
    egress_enforced: bool


@dataclass(frozen=True)
class Wanted:
    """A declared output and the most bytes it may have."""

    path: str
    max_bytes: int


class Told(Answer):
    """What gymd says of one declared output: its size in bytes and its hash, or why it can't be had."""

    path: str
    size: int = 0
    sha256: str = ""
    error: str | None = None


@dataclass(frozen=True)
class Fetched:
    """The outputs that were there, spooled, and a sentence for each that was not to be had."""

    files: tuple[tuple[str, IO[bytes], int], ...]
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class Environment:
    """A run on its nodes, in the order of the lease. Thread-safe as its links are."""

    run: str
    epoch: int
    places: Sequence[Place]
    steps: Callable[[], int]
    clock: Callable[[], datetime] = timezone.now
    _asked: Iterator[int] = field(default_factory=lambda: itertools.count(1), repr=False, compare=False)

    def bench(self, action_id: str, *, resend: bool, cursor: FileCursor | None) -> Bench:
        """All that one action may touch."""
        links = {place.name: place.link for place in self.places}
        return Bench(self.run, self.epoch, action_id, resend, links, cursor, self.clock)

    def open(self, opening: Opening) -> tuple[Opened, ...]:
        """Open the run on every node, or find it open; older epochs are fenced out from then on. Raises NodeError,
        RequestRefused.
        """
        return tuple(self._open(place, opening) for place in self.places)

    def _open(self, place: Place, opening: Opening) -> Opened:
        body = {
            "epoch": self.epoch,
            "level": opening.level,
            "env": {},
            "secrets": {},
            "network": opening.network,
            "gpus": list(place.gpus),
            "limits": {"disk_gb": opening.disk_gb},
            "task_env": place.task_env,
            "assets": [],
        }
        answer = self._post(place, "open", body, timeout_s=OPEN_TIMEOUT_S).body
        return Opened(
            node=place.name,
            level=str(answer.get("level", "")),
            workspace=str(answer.get("workspace", "/workspace")),
            egress_enforced=bool(answer.get("egress_enforced", False)),
        )

    def upload(self, tar: IO[bytes], sha256: str) -> None:
        """Unpack the workspace on every node, once: a node that has it already answers and changes nothing. `sha256` is
        the whole archive's. Raises NodeError, RequestRefused.
        """
        for place in self.places:
            tar.seek(0)
            self._upload(place, tar, sha256)

    def _upload(self, place: Place, tar: IO[bytes], sha256: str) -> None:
        offset = 0
        piece = tar.read(CHUNK_BYTES)
        while True:
            following = tar.read(CHUNK_BYTES)
            body = {"epoch": self.epoch, "upload_id": UPLOAD, "offset": offset, "last": not following, "sha256": sha256}
            self._ask(place, "PUT", "tree", body, payload=piece, timeout_s=OPEN_TIMEOUT_S)
            if not following:
                return
            offset += len(piece)
            piece = following

    def sessions(self) -> tuple[Session, ...]:
        """Every session of the run on every node. Raises NodeError, RequestRefused."""
        found: list[Session] = []
        for place in self.places:
            result = self._op(place, "session.list", {})
            listed = result.get("sessions")
            for each in listed if isinstance(listed, list) else []:
                found.append(Session.model_validate({**each, "node": place.name}))
        return tuple(found)

    def session_idle(self, session_id: str, node: str | None) -> bool:
        """Whether no foreground job runs there. Raises NodeError, RequestRefused (no such session)."""
        place = next((place for place in self.places if place.name == node), self.places[0])
        return bool(self._op(place, "session.idle", {"session_id": session_id}).get("idle", True))

    def _op(self, place: Place, op: str, args: Mapping[str, Any]) -> Mapping[str, Any]:
        # Ordered behind every action sent so far and before every later one: a node's journal that holds this entry
        # surely existed before any action of a later step (see gymnode.remote.journal).
        action = f"{self.run}.{self.steps()}.{ENGINE_INDEX + next(self._asked)}.e{self.epoch}"
        body = {"epoch": self.epoch, "action_id": action, "op": op, "args": dict(args), "resend": False}
        result = self._post(place, "ops", body).body.get("result")
        if not isinstance(result, Mapping):
            raise ProtocolMismatch(place.name, f"gymd on {place.name} answered {op} without a result")
        return result

    def kill(self) -> None:
        """End whatever runs in any session. Raises NodeError, RequestRefused."""
        for place in self.places:
            self._post(place, "kill", {"epoch": self.epoch}, timeout_s=END_TIMEOUT_S)

    def freeze(self) -> None:
        """Stop every process of the run where it stands. Raises NodeError, RequestRefused."""
        for place in self.places:
            self._post(place, "freeze", {"epoch": self.epoch})

    def thaw(self) -> None:
        """Let them go on. Raises NodeError, RequestRefused."""
        for place in self.places:
            self._post(place, "thaw", {"epoch": self.epoch})

    def close(self, *, remove: bool) -> None:
        """Leave nothing of the run running, and nothing of its files with `remove`. A node that doesn't know the run
        (any more) has nothing left of it. Raises NodeError, RequestRefused.
        """
        for place in self.places:
            with suppress(NoSuchRun):
                self._post(place, "close", {"epoch": self.epoch, "remove": remove}, timeout_s=END_TIMEOUT_S)

    def session_log(self, place: Place, session_id: str, offset: int, limit: int) -> Reply:
        """Raw bytes of a session's log from `offset` on. Raises NodeError, RequestRefused."""
        path = f"sessions/{quote(session_id, safe='')}/log?offset={offset}&limit={limit}"
        return self._ask(place, "GET", path, None)

    def outputs(self, wanted: Sequence[Wanted]) -> Fetched:
        """Fetch declared outputs from the first node: regular files only. Raises NodeError, RequestRefused."""
        place = self.places[0]
        asked = [{"path": each.path, "max_bytes": each.max_bytes} for each in wanted]
        answer = self._post(place, "outputs", {"epoch": self.epoch, "paths": asked}, timeout_s=END_TIMEOUT_S)
        files: list[tuple[str, IO[bytes], int]] = []
        problems: list[str] = []
        found = answer.body.get("files")
        for index, each in enumerate(found if isinstance(found, list) else []):
            told = Told.model_validate(each)
            if told.error:
                problems.append(f"{told.path}: {told.error}")
            else:
                files.append((told.path, self._output(place, index, told), told.size))
        return Fetched(tuple(files), tuple(problems))

    def _output(self, place: Place, index: int, found: Told) -> IO[bytes]:
        spool = tempfile.SpooledTemporaryFile(max_size=SPOOL_BYTES)  # noqa: SIM115  the caller reads it
        digest = hashlib.sha256()
        while spool.tell() < found.size:
            piece = self._ask(place, "GET", f"outputs/{index}?offset={spool.tell()}", None).payload
            if not piece:
                break
            digest.update(piece)
            spool.write(piece)
        if spool.tell() != found.size or digest.hexdigest() != found.sha256:
            raise NodeUnreachable(place.name, f"{found.path} changed while it was fetched from {place.name}")
        spool.seek(0)
        return spool

    def _post(self, place: Place, what: str, body: Mapping[str, Any], *, timeout_s: float = 30.0) -> Reply:
        return self._ask(place, "POST", what, body, timeout_s=timeout_s)

    def _ask(
        self,
        place: Place,
        method: str,
        what: str,
        body: Mapping[str, Any] | None,
        *,
        payload: bytes = b"",
        timeout_s: float = 30.0,
    ) -> Reply:
        path = f"/v1/runs/{quote(self.run, safe='')}/{what}"
        reply = place.link.request(method, path, body, payload=payload, timeout_s=timeout_s)
        if reply.status < 400:
            return reply
        code, message = str(reply.body.get("code", "")), str(reply.body.get("message", ""))
        raise refusal_from(place.name, reply.status, code, message or f"{what} was refused ({code or reply.status})")
