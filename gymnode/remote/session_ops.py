"""Room: gymnode.remote. The `session.*` operations: arguments in, a result later. All in the loop's thread."""

from __future__ import annotations

import re
import time
from typing import Any, Callable, Dict

from gymnode.remote.commands import Job
from gymnode.remote.ending import SessionEnding
from gymnode.remote.keepers import Failed
from gymnode.remote.loop import Timer
from gymnode.remote.pieces import piece_make
from gymnode.remote.refusals import Refusal
from gymnode.remote.runs import Run
from gymnode.remote.sessions import Session
from gymnode.remote.sweeping import descendants_of, process_facts
from gymnode.remote.terminals import waiting_for_input

MAIN = "main"
MAX_SESSIONS = 500
INPUT_ECHO_S = 0.3
WAIT_CHECK_S = 0.25
WAIT_CHECKS = 4
_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")

Args = Dict[str, Any]
Done = Callable[[Dict[str, Any]], None]


class SessionOps:
    """The operations on one run's sessions."""

    def __init__(self, run: Run, holders: Callable[[str], list[int]]) -> None:
        self._run = run
        self._holders = holders
        self._ending = SessionEnding(run)
        self.calls: Dict[str, Callable[[str, Args, Done, Failed], None]] = {
            "session.create": self.create,
            "session.list": self.list,
            "session.run": self.run,
            "session.input": self.input,
            "session.read": self.read,
            "session.recent": self.recent,
            "session.status": self.status,
            "session.idle": self.idle,
            "session.clear": self.clear,
            "session.close": self._ending.close,
            "session.close_all": self._ending.close_all,
            "session.kill": self._ending.kill,
        }

    # --- making

    def create(self, _action: str, args: Args, done: Done, failed: Failed) -> None:
        """{session_id|null, cwd, cols, rows} -> {session}."""
        name = args.get("session_id") or self._fresh_name()
        if not _NAME.match(name):
            raise Refusal("bad_request", f"{name!r} is no session name: letters, digits, '.', '_', '-', at most 64")
        old = self._run.sessions.get(name)
        if old is not None and not old.dead:
            raise Refusal("session_exists", f"session {name} is open already: use it, or close it first")
        if sum(not session.dead for session in self._run.sessions.values()) >= MAX_SESSIONS:
            raise Refusal("session_exists", f"{MAX_SESSIONS} sessions are open, no more are possible: close some")
        self._make(name, args, lambda session: done({"session": self.describe(session)}), failed)

    def _fresh_name(self) -> str:
        number = 1
        while f"s{number}" in self._run.sessions:
            number += 1
        return f"s{number}"

    def _make(self, name: str, args: Args, done: Callable[[Session], None], failed: Failed) -> None:
        """Start a shell under that name; a session that ended by itself goes on, with its log."""
        session = self._run.sessions.get(name) or self._run.session_add(name)
        session.dead = ""
        message = {
            "cwd": self._folder(str(args.get("cwd") or ".")),
            "cols": int(args.get("cols", 200)),
            "rows": int(args.get("rows", 50)),
        }

        def refused(refusal: Refusal) -> None:
            session.dead = "closed"
            failed(refusal)

        self._run.shell_start(session, message, lambda: done(session), refused)

    def _folder(self, path: str) -> str:
        root = self._run.workspace
        if path == "/workspace" or path.startswith("/workspace/"):
            return root + path[len("/workspace") :]
        return path if path.startswith("/") else (root if path == "." else f"{root}/{path}")

    def _where_next(self, session: Session | None) -> str:
        """Where a shell starts that follows this session's: in its last directory, if that is still there."""
        found = session.where() if session is not None else ""
        return self._run.workspace if not found or found.endswith(" (deleted)") else found

    # --- looking

    def describe(self, session: Session) -> Dict[str, Any]:
        """One entry of session.list."""
        live = [] if session.dead else descendants_of(session.pid)
        job = session.job.facts() if session.job is not None else None
        busy = session.state == "busy"
        return {
            "id": session.name,
            "state": session.state,
            "cwd": session.where(),
            "job": job,
            "last_output_at": session.last_output_at,
            "background_pids": [] if busy else list(session.inner_pids(live).values()),
            "gpus": self._holders(session.name),
            "total_bytes": session.log.total,
        }

    def list(self, _action: str, _args: Args, done: Done, _failed: Failed) -> None:
        """{} -> {sessions}."""
        done({"sessions": [self.describe(session) for session in self._run.sessions.values()]})

    def read(self, _action: str, args: Args, done: Done, _failed: Failed) -> None:
        """{session_id, since_offset|null, tail_bytes} -> {job, output}."""
        session = self._run.session_get(args["session_id"])
        since = args.get("since_offset")
        if since is None:
            since = max(session.read_mark, session.log.total - int(args.get("tail_bytes", 65536)))
        done(self._output(session, int(since)))

    def recent(self, _action: str, args: Args, done: Done, _failed: Failed) -> None:
        """{session_id, seconds} -> {job, output}."""
        session = self._run.session_get(args["session_id"])
        done(self._output(session, session.offset_at(time.time() - float(args.get("seconds", 10)))))

    def _output(self, session: Session, start: int) -> Dict[str, Any]:
        job = session.job.facts() if session.job is not None else None
        return {"job": job, "output": piece_make(session.log, start, session.log.total)}

    def status(self, _action: str, args: Args, done: Done, _failed: Failed) -> None:
        """{session_id} -> {job, pids, waiting_for_input}."""
        session = self._run.session_get(args["session_id"])
        pids = [] if session.dead else descendants_of(session.pid)
        facts = [one for one in map(process_facts, pids) if one is not None]
        inner = {one.pid: one.inner for one in facts}
        rows = [
            {"pid": one.inner, "ppid": inner.get(one.ppid, session.inner), "command": one.command, "state": one.state}
            for one in facts
        ]
        job = session.job.facts() if session.job is not None else None
        done({"job": job, "pids": rows, "waiting_for_input": self._waiting(session)})

    def idle(self, _action: str, args: Args, done: Done, _failed: Failed) -> None:
        """{session_id} -> {idle, job}."""
        session = self._run.session_get(args["session_id"])
        job = session.job.facts() if session.job is not None else None
        done({"idle": session.state != "busy", "job": job})

    def clear(self, _action: str, args: Args, done: Done, _failed: Failed) -> None:
        """{session_id} -> {}: the read mark moves to the end, the log stays."""
        session = self._run.session_get(args["session_id"])
        session.read_mark = session.log.total
        done({})

    def _waiting(self, session: Session) -> bool:
        return session.state == "busy" and waiting_for_input(session.master, session.pid)

    # --- acting

    def run(self, action: str, args: Args, done: Done, failed: Failed) -> None:
        """{session_id|null, command, wait, timeout_s} -> {session_id, job, timed_out, waiting_for_input, output, ...}.

        The shell of an open session that ended by itself (`exit`) is replaced, the session goes on. `shell_ended`: with
        this command; `shell_replaced`: before it, unsaid so far; `shell_cwd`: where the next or the new one starts.
        """
        name = args.get("session_id") or MAIN
        session = self._run.sessions.get(name)
        if session is None and name != MAIN:
            self._run.session_get(name)
        if session is not None and session.state == "lost" and name != MAIN:
            raise Refusal("session_closed", f"session {name} was lost with the node's memory: create a new one")
        if session is not None and not session.dead:
            self._job(session, action, args, done)
            return
        told = session.end_told if session is not None else None

        def made(fresh: Session) -> None:
            # Said once, and again where it came otherwise: a folder may be gone by now.
            fresh.end_told, here = "", self._where_next(fresh)
            facts = {} if told in (None, here) else {"shell_replaced": True, "shell_cwd": here}
            try:
                self._job(fresh, action, args, lambda result: done({**facts, **result}))
            except Refusal as refusal:
                failed(refusal)

        self._make(name, {"cwd": self._where_next(session)}, made, failed)

    def _job(self, session: Session, action: str, args: Args, done: Done) -> None:
        job = session.job_start(action, str(args["command"]))
        if not args.get("wait", True):
            done(self._ran(session, job, timed_out=False, waiting=False))
            return
        _Wait(
            self._run,
            session,
            job,
            lambda timed_out, waiting: done(self._ran(session, job, timed_out=timed_out, waiting=waiting)),
        ).start(float(args.get("timeout_s", 10)))

    def _ran(self, session: Session, job: Job, *, timed_out: bool, waiting: bool) -> Dict[str, Any]:
        end = job.end_offset if job.end_offset is not None else session.log.total
        facts = job.facts()
        if facts["duration_s"] is None:
            facts["duration_s"] = round(time.monotonic() - job.began, 6)
        return {
            "session_id": session.name,
            "job": facts,
            "timed_out": timed_out,
            "waiting_for_input": waiting,
            "output": piece_make(session.log, job.start_offset, end),
            **self._shell_end(session, job),
        }

    def _shell_end(self, session: Session, job: Job) -> Dict[str, Any]:
        """Says that the shell is gone with the job; nothing of a session that was closed."""
        if session.dead != "closed" or session.job is not job or self._run.sessions.get(session.name) is not session:
            return {}
        session.end_told = self._where_next(session)
        return {"shell_ended": True, "shell_cwd": session.end_told}

    def input(self, _action: str, args: Args, done: Done, failed: Failed) -> None:
        """{session_id, text, press_enter} -> {was_waiting, output}, when all of it is typed."""
        session = self._run.session_get(args["session_id"])
        if session.dead:
            raise Refusal("session_closed", f"session {session.name} is {session.dead}: nothing reads its terminal")
        was_waiting = self._waiting(session)
        start = session.log.total
        text = str(args.get("text", "")) + ("\r" if args.get("press_enter", True) else "")
        data = text.encode("utf-8", "surrogateescape")

        def answer() -> None:
            done({"was_waiting": was_waiting, "output": piece_make(session.log, start, session.log.total)})

        def typed(count: int, why: str) -> None:
            if why:
                code = "session_closed" if session.dead else "session_busy"
                failed(Refusal(code, f"{count} of {len(data)} bytes were typed, then {why}"))
            else:
                self._run.loop.later(INPUT_ECHO_S, answer)

        session.keyboard.type_text(data, typed)


class _Wait:
    """A caller that waits for a job: until its end, its time-out, or until it clearly waits for input."""

    def __init__(self, run: Run, session: Session, job: Job, answer: Callable[[bool, bool], None]) -> None:
        self._loop, self._session, self._job, self._answer = run.loop, session, job, answer
        self._waiting_seen = 0
        self._timers: list[Timer] = []

    def start(self, timeout_s: float) -> None:
        """Begin to wait."""
        self._session.on_job_end(self._on_end)
        self._timers = [
            self._loop.later(timeout_s, lambda: self._finish(timed_out=True)),
            self._loop.later(WAIT_CHECK_S, self._check),
        ]

    def _on_end(self, _job: Job) -> None:
        self._finish(timed_out=False)

    def _check(self) -> None:
        waiting = waiting_for_input(self._session.master, self._session.pid)
        self._waiting_seen = self._waiting_seen + 1 if waiting else 0
        if self._waiting_seen >= WAIT_CHECKS:
            self._finish(timed_out=False, waiting=True)
            return
        self._timers.append(self._loop.later(WAIT_CHECK_S, self._check))

    def _finish(self, *, timed_out: bool, waiting: bool = False) -> None:
        for timer in self._timers:
            timer.cancel()
        self._session.forget_waiter(self._on_end)
        if timed_out:
            waiting = waiting_for_input(self._session.master, self._session.pid)
        self._answer(timed_out, waiting)
