"""Room: gymnode.remote. gymd itself: requests with HTTP semantics in, answers out; owns all runs of this node."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Match, Pattern, Tuple

from gymnode.remote.connections import Connection, Listener
from gymnode.remote.digests import hex_digest
from gymnode.remote.disks import DiskWatch
from gymnode.remote.frames import PROTOCOL, Frame
from gymnode.remote.homes import Home, boot_id, machine_id
from gymnode.remote.levels import Capabilities, capabilities_probe
from gymnode.remote.logs import SessionLog
from gymnode.remote.loop import Loop
from gymnode.remote.machine import Machine, ancestors_of
from gymnode.remote.operations import Operations
from gymnode.remote.refusals import Refusal
from gymnode.remote.registry import Registry
from gymnode.remote.uploads import OutputCollection, output_read, tree_put
from gymnode.remote.version import VERSION
from gymnode.remote.watching import Changes

LOG_LIMIT = 1024 * 1024

Body = Dict[str, Any]


class Call:
    """One request being served."""

    def __init__(self, connection: Connection, frame: Frame, match: Match[str], query: Dict[str, str]) -> None:
        self._connection, self._id = connection, frame.header.get("id")
        self.body: Body = frame.header.get("body") or {}
        self.payload = frame.payload
        self.query = query
        self.parts = match.groupdict()

    def answer(self, body: Body, payload: bytes = b"") -> None:
        """Succeed."""
        self._connection.answer(self._id, 200, body, payload)

    def answer_status(self, status: int, body: Body) -> None:
        """Answer with a status that was stored."""
        self._connection.answer(self._id, status, body)

    def refuse(self, refusal: Refusal) -> None:
        """Fail with code and message."""
        body = {"code": refusal.code, "message": refusal.message}
        self._connection.answer(self._id, refusal.status, body)


Route = Tuple[str, Pattern[str], Callable[[Call], None]]


class Server:
    """Routes requests to the room's parts."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.loop = Loop()
        self.changes = Changes(self.loop)
        self.machine = Machine(self.loop, home.root)
        self.found: Capabilities = capabilities_probe()
        self.registry = Registry(self.loop, self.changes, home, self.found)
        self.operations = Operations(self.machine)
        self.disks = DiskWatch(self.loop, self.registry.runs)
        self._sha256 = hex_digest(Path(sys.argv[0]).read_bytes())
        self._instance = self.registry.instance
        run = r"/v1/runs/(?P<run>[^/]+)"
        table: List[Tuple[str, str, Callable[[Call], None]]] = [
            ("GET", r"/v1/hello", self._hello),
            ("GET", r"/v1/ping", lambda call: call.answer({})),
            ("POST", r"/v1/retire", self._retire),
            ("GET", r"/v1/status", self._status),
            ("GET", r"/v1/watch", self._watch),
            ("POST", run + r"/open", self._open),
            ("POST", run + r"/ops", self._ops),
            ("PUT", run + r"/tree", self._tree),
            ("POST", run + r"/outputs", self._outputs),
            ("GET", run + r"/outputs/(?P<index>\d+)", self._output),
            ("GET", run + r"/sessions/(?P<session>[^/]+)/log", self._log),
            ("POST", run + r"/(?P<verb>freeze|thaw|kill|close)", self._control),
        ]
        self._routes: List[Route] = [(verb, re.compile(path + r"\Z"), serve) for verb, path, serve in table]
        self._listener = Listener(self.loop, home.socket, self.serve)

    def serve(self, connection: Connection, frame: Frame) -> None:
        """Find the route and call it; whatever goes wrong becomes an answer."""
        header = frame.header
        path, _mark, raw_query = str(header.get("path", "")).partition("?")
        query = dict(part.split("=", 1) for part in raw_query.split("&") if "=" in part)
        for verb, pattern, handler in self._routes:
            match = pattern.match(path)
            if match is None or verb != header.get("method"):
                continue
            call = Call(connection, frame, match, query)
            try:
                handler(call)
            except Refusal as refusal:
                call.refuse(refusal)
            except (KeyError, TypeError, ValueError) as error:
                call.refuse(Refusal("bad_request", f"{path}: {type(error).__name__}: {error}"))
            except OSError as error:
                call.refuse(Refusal("storage_full" if error.errno == 28 else "broken", f"gymd: {error}"))
            except Exception as error:  # noqa: BLE001 - the top of a request: its sender must get an answer
                self.loop.faults.write()
                call.refuse(Refusal("broken", f"gymd: {type(error).__name__}: {error}"))
            return
        body = {"code": "bad_request", "message": f"gymd knows no {header.get('method')} {path}"}
        connection.answer(header.get("id"), 404, body)

    # --- machine

    def _hello(self, call: Call) -> None:
        levels = [
            {"name": level.name, "available": level.available, "reason": level.reason}
            for level in self.found.levels.values()
        ]
        call.answer(
            {
                "protocol": PROTOCOL,
                "version": VERSION,
                "sha256": self._sha256,
                "instance": self._instance,
                "machine_id": machine_id(),
                "boot_id": boot_id(),
                "levels": levels,
                "user": self._user(),
                "uid": os.getuid(),
                "pid": os.getpid(),
                "root": str(self.home.root),
            }
        )

    def _retire(self, call: Call) -> None:
        """Make room for a gymd of another release: only while there is no run and nobody else is connected."""
        if self.registry.runs or len(self._listener.connections) > 1:
            raise Refusal("not_permitted", "gymd is in use: it serves runs or other controllers")
        self.home.socket.unlink()
        call.answer({})
        self.loop.later(0.05, self._stop)

    def _stop(self) -> None:
        self.loop.running = False

    def _user(self) -> str:
        for line in Path("/etc/passwd").read_text(errors="replace").splitlines():
            fields = line.split(":")
            if len(fields) > 2 and fields[2] == str(os.getuid()):
                return fields[0]
        return str(os.getuid())

    def _status(self, call: Call) -> None:
        self.machine.status(self._owner, call.answer)

    def _owner(self, pid: int) -> Tuple[str, str] | None:
        chain = ancestors_of(pid)
        for run in self.registry.runs.values():
            for session in run.sessions.values():
                if session.pid in chain:
                    return run.facts.name, session.name
        return None

    def _watch(self, call: Call) -> None:
        wait_s = min(float(call.query.get("wait_s", 20)), 60.0)
        self.changes.ask(int(call.query.get("after", 0)), wait_s, call.answer)

    # --- runs

    def _open(self, call: Call) -> None:
        self.registry.open(call.parts["run"], call.body, call.answer, call.refuse)

    def _ops(self, call: Call) -> None:
        run = self.registry.get(call.parts["run"])
        self.registry.fence(run, call.body)
        self.operations.serve(run, call.body, call.answer_status)

    def _tree(self, call: Call) -> None:
        run = self.registry.get(call.parts["run"])
        self.registry.fence(run, call.body)
        tree_put(run, call.body, call.payload, call.answer, call.refuse)

    def _outputs(self, call: Call) -> None:
        run = self.registry.get(call.parts["run"])
        self.registry.fence(run, call.body)
        OutputCollection(run, list(call.body["paths"]), call.answer, call.refuse).start()

    def _output(self, call: Call) -> None:
        run = self.registry.get(call.parts["run"])
        found = output_read(run, int(call.parts["index"]), int(call.query.get("offset", 0)))
        call.answer({"size": found["size"]}, found["data"])

    def _log(self, call: Call) -> None:
        run = self.registry.get(call.parts["run"])
        name = call.parts["session"]
        folder = run.folder / "sessions" / name / "log"
        if name not in run.sessions and not folder.is_dir():
            raise Refusal("no_such_session", f"there is no session {name}")
        log = run.sessions[name].log if name in run.sessions else SessionLog(folder)
        limit = min(int(call.query.get("limit", LOG_LIMIT)), 8 * LOG_LIMIT)
        part = log.read(int(call.query.get("offset", 0)), limit)
        call.answer({"start_offset": part.start, "next_offset": part.end, "total": log.total}, part.data)

    def _control(self, call: Call) -> None:
        verb = call.parts["verb"]
        if verb == "close" and call.parts["run"] not in self.registry.runs:
            call.answer({"closed": True, "left": []})
            return
        run = self.registry.get(call.parts["run"])
        self.registry.fence(run, call.body)
        self.registry.control(run, verb, bool(call.body.get("remove", False)), call.answer)
