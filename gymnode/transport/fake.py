"""Room: gymnode.transport. A node in memory, speaking the port: for tests and demonstrations without a machine.

Commands come from a script (command -> what it does), files are a dictionary. Fence, journal, sessions, offsets and
refusals follow gymd's rules; there are no processes and no time passes unless the script says so.
"""

import base64
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from gymnode.errors import NodeUnreachable
from gymnode.remote.frames import PROTOCOL
from gymnode.transport.base import Reply
from gymnode.transport.fakefiles import FakeFiles, Refused

ALIAS = "/workspace"


@dataclass(frozen=True)
class Scripted:
    """What a scripted command does: its output, its exit code; `seconds` > 0 outlasts shorter waits."""

    output: bytes = b""
    exit_code: int = 0
    seconds: float = 0.0


Script = Mapping[str, Scripted]


@dataclass
class _Session:
    name: str
    log: bytearray = field(default_factory=bytearray)
    job: dict[str, Any] | None = None
    ends_at: float = 0.0
    end: Scripted = field(default_factory=Scripted)
    mark: int = 0


@dataclass
class _Run:
    name: str
    epoch: int
    files: FakeFiles = field(default_factory=FakeFiles)
    sessions: dict[str, _Session] = field(default_factory=dict)
    journal: dict[str, Reply] = field(default_factory=dict)
    outputs: list[bytes] = field(default_factory=list)


class FakeLink:
    """A NodeLink to a node that is a few dictionaries. `lost` set to a text makes every request fail with it."""

    def __init__(self, name: str, script: Script | None = None) -> None:
        self.name = name
        self.lost = ""
        self.requests: list[tuple[str, str]] = []
        self._script = dict(script or {"true": Scripted(), "false": Scripted(exit_code=1)})
        self._runs: dict[str, _Run] = {}
        self._changes: list[dict[str, Any]] = []
        self._lock = threading.RLock()
        self._ops: dict[str, Callable[[_Run, str, dict[str, Any]], dict[str, Any]]] = {
            "session.create": self._session_create,
            "session.list": self._session_list,
            "session.run": self._session_run,
            "session.read": self._session_read,
            "session.idle": self._session_idle,
            "session.close": self._session_close,
        }

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
        if self.lost:
            raise NodeUnreachable(self.name, f"{self.name}: {self.lost}")
        with self._lock:
            self.requests.append((method, path))
            try:
                return self._route(method, path, dict(body or {}), payload)
            except Refused as refused:
                return Reply(refused.status, {"code": refused.code, "message": str(refused)})

    def close(self) -> None:
        """Hang up for good."""
        self.lost = "this link was closed here"

    # --- routes

    def _route(self, method: str, path: str, body: dict[str, Any], payload: bytes) -> Reply:
        bare, _mark, query = path.partition("?")
        parts = bare.strip("/").split("/")
        if parts == ["v1", "hello"]:
            return Reply(200, {"protocol": PROTOCOL, "version": "fake", "instance": f"{id(self):x}", "user": "fake"})
        if parts == ["v1", "status"]:
            return Reply(200, {"cpu": {"count": 1, "utilisation": 0.0}, "load": [0.0, 0.0, 0.0], "gpus": []})
        if parts == ["v1", "watch"]:
            return self._watch(_number(query, "after"))
        if len(parts) < 4 or parts[:2] != ["v1", "runs"]:
            raise Refused(404, "bad_request", f"the fake node knows no {method} {bare}")
        if parts[3] == "open":
            return self._open(parts[2], body)
        run = self._run(parts[2], body if method != "GET" else {})
        return self._run_route(run, parts[3:], body, payload, query)

    def _run_route(self, run: _Run, parts: list[str], body: dict[str, Any], payload: bytes, query: str) -> Reply:
        match parts:
            case ["ops"]:
                return self._journalled(run, body)
            case ["tree"]:
                return Reply(200, run.files.tree_put(body, payload))
            case ["outputs"]:
                run.outputs, entries = run.files.collect(body["paths"])
                files: list[JsonValue] = [dict(entry) for entry in entries]
                return Reply(200, {"files": files})
            case ["outputs", index]:
                data = run.outputs[int(index)]
                return Reply(200, {"size": len(data)}, data[_number(query, "offset") :])
            case ["sessions", name, "log"]:
                return self._log(self._session(run, name), query)
            case ["freeze" | "thaw" | "kill"]:
                return Reply(200, {"left": []})
            case ["close"]:
                del self._runs[run.name]
                return Reply(200, {"closed": True, "left": []})
        raise Refused(404, "bad_request", f"the fake node knows no {'/'.join(parts)}")

    def _open(self, name: str, body: dict[str, Any]) -> Reply:
        run = self._runs.get(name)
        if run is None:
            run = self._runs[name] = _Run(name, int(body["epoch"]))
        self._fence(run, body)
        return Reply(200, {"level": "plain", "workspace": ALIAS, "real_root": ALIAS, "egress_enforced": False})

    def _run(self, name: str, body: dict[str, Any]) -> _Run:
        run = self._runs.get(name)
        if run is None:
            raise Refused(404, "no_such_run", f"run {name} isn't open on this node")
        if body:
            self._fence(run, body)
        return run

    def _fence(self, run: _Run, body: dict[str, Any]) -> None:
        epoch = int(body["epoch"])
        if epoch < run.epoch:
            raise Refused(409, "epoch_too_low", f"run {run.name} is at epoch {run.epoch}; {epoch} is over")
        run.epoch = epoch

    def _journalled(self, run: _Run, body: dict[str, Any]) -> Reply:
        key = f"{body['action_id']}|{body['op']}"
        if key in run.journal:
            return run.journal[key]
        if body.get("resend") and not any(entry < key for entry in run.journal):
            raise Refused(410, "outcome_unknown", f"this node has no memory of {body['action_id']}")
        op, args = str(body["op"]), dict(body.get("args") or {})
        try:
            if op.startswith("file."):
                reply = Reply(200, {"result": run.files.call(op, args)})
            else:
                reply = Reply(200, {"result": self._ops[op](run, str(body["action_id"]), args)})
        except Refused as refused:
            reply = Reply(refused.status, {"code": refused.code, "message": str(refused)})
        except KeyError:
            reply = Reply(400, {"code": "bad_request", "message": f"the fake node knows no operation {op}"})
        run.journal[key] = reply
        return reply

    def _watch(self, after: int) -> Reply:
        for run in self._runs.values():
            for session in run.sessions.values():
                self._settle(run, session)
        changes: list[JsonValue] = [dict(change) for change in self._changes if change["n"] > after]
        return Reply(200, {"cursor": len(self._changes), "changes": changes})

    def _log(self, session: _Session, query: str) -> Reply:
        offset, limit = _number(query, "offset"), _number(query, "limit", 1 << 20)
        data = bytes(session.log[offset : offset + limit])
        facts: dict[str, JsonValue] = {"start_offset": offset, "next_offset": offset + len(data)}
        return Reply(200, {**facts, "total": len(session.log)}, data)

    # --- sessions

    def _session(self, run: _Run, name: str) -> _Session:
        session = run.sessions.get(name)
        if session is None:
            raise Refused(
                404, "no_such_session", f"there is no session {name}; open sessions: {', '.join(run.sessions)}"
            )
        self._settle(run, session)
        return session

    def _settle(self, run: _Run, session: _Session) -> None:
        """A job whose time is over has ended."""
        job = session.job
        if job is not None and job["state"] == "running" and time.monotonic() >= session.ends_at:
            session.log += session.end.output
            now = time.time()
            job.update(
                state="exited", exit_code=session.end.exit_code, ended_at=now, duration_s=now - job["started_at"]
            )
            self._note("output", run.name, session.name, total=len(session.log))
            self._note("job_ended", run.name, session.name, job=job["id"], state="exited", exit_code=job["exit_code"])

    def _note(self, kind: str, run: str, session: str, **facts: Any) -> None:
        entry = {"n": len(self._changes) + 1, "kind": kind, "run": run, "session": session, **facts}
        self._changes.append(entry)

    def _session_create(self, run: _Run, _action: str, args: dict[str, Any]) -> dict[str, Any]:
        name = args.get("session_id") or f"s{len(run.sessions) + 1}"
        if name in run.sessions:
            raise Refused(409, "session_exists", f"session {name} is open already")
        run.sessions[name] = _Session(name)
        return {"session": self._describe(run.sessions[name])}

    def _session_list(self, run: _Run, _action: str, _args: dict[str, Any]) -> dict[str, Any]:
        return {"sessions": [self._describe(self._session(run, name)) for name in run.sessions]}

    def _describe(self, session: _Session) -> dict[str, Any]:
        busy = session.job is not None and session.job["state"] == "running"
        state = "busy" if busy else "idle"
        facts = {"id": session.name, "state": state, "cwd": ALIAS, "job": session.job, "total_bytes": len(session.log)}
        return {**facts, "last_output_at": None, "background_pids": [], "gpus": []}

    def _session_run(self, run: _Run, action: str, args: dict[str, Any]) -> dict[str, Any]:
        name = args.get("session_id") or "main"
        if name == "main":
            run.sessions.setdefault(name, _Session(name))
        session = self._session(run, name)
        if session.job is not None and session.job["state"] == "running":
            raise Refused(409, "session_busy", f"session {name} is busy with: {session.job['command']}")
        missing = Scripted(f"bash: {args['command']}: command not found\r\n".encode(), 127)
        session.end = self._script.get(args["command"], missing)
        session.ends_at = time.monotonic() + session.end.seconds
        session.job = {"id": action, "command": args["command"], "state": "running", "exit_code": None}
        session.job.update(started_at=time.time(), ended_at=None, duration_s=0.0)
        start = len(session.log)
        waits = bool(args.get("wait", True))
        if waits and session.end.seconds <= float(args.get("timeout_s", 10)):
            session.ends_at = 0.0
            self._settle(run, session)
        running = session.job["state"] == "running"
        facts = {"session_id": name, "job": dict(session.job), "timed_out": waits and running}
        return {**facts, "waiting_for_input": False, "output": _piece(session, start)}

    def _session_read(self, run: _Run, _action: str, args: dict[str, Any]) -> dict[str, Any]:
        session = self._session(run, args["session_id"])
        since = args.get("since_offset")
        start = max(session.mark, len(session.log) - int(args.get("tail_bytes", 65536))) if since is None else since
        return {"job": session.job, "output": _piece(session, int(start))}

    def _session_idle(self, run: _Run, _action: str, args: dict[str, Any]) -> dict[str, Any]:
        session = self._session(run, args["session_id"])
        return {"idle": self._describe(session)["state"] == "idle", "job": session.job}

    def _session_close(self, run: _Run, _action: str, args: dict[str, Any]) -> dict[str, Any]:
        session = self._session(run, args["session_id"])
        del run.sessions[session.name]
        self._note("session_closed", run.name, session.name)
        return {"ended": []}


def _piece(session: _Session, start: int) -> dict[str, Any]:
    data = bytes(session.log[start:])
    total = len(session.log)
    facts = {"omitted": 0, "start_offset": start, "next_offset": total, "total_bytes": total}
    return {"head": base64.b64encode(data).decode(), "tail": "", **facts}


def _number(query: str, name: str, default: int = 0) -> int:
    found = dict(part.split("=", 1) for part in query.split("&") if "=" in part)
    return int(found.get(name, default))
