"""Room: gymnode.remote. Ending what a session started: signals with patience, checked, never blocking the loop."""

from __future__ import annotations

import signal
import time
from typing import Any, Callable, Dict, List

from gymnode.remote.keepers import Failed
from gymnode.remote.loop import Loop
from gymnode.remote.runs import Run
from gymnode.remote.sessions import Session
from gymnode.remote.sweeping import alive, descendants_of, signal_send

PATIENCE_S = 5.0
AFTER_KILL_S = 3.0
STEP_S = 0.05

Args = Dict[str, Any]
Done = Callable[[Dict[str, Any]], None]
Pids = Callable[[], List[int]]


class Reaper:
    """TERM (or KILL at once) to all that `find` gives, KILL after five seconds, until nothing is left; then `done`."""

    def __init__(
        self,
        loop: Loop,
        find: Pids,
        done: Callable[[List[int], List[int]], None],
        goes_on: Callable[[List[int]], bool] = bool,
    ) -> None:
        self._loop, self._find, self._done, self._goes_on = loop, find, done, goes_on
        self._seen: Dict[int, None] = {}
        self._kill_at = 0.0
        self._give_up_at = 0.0

    def start(self, *, force: bool) -> None:
        """Send the first signals; `done(ended, left)` follows."""
        now = time.monotonic()
        self._kill_at = now if force else now + PATIENCE_S
        self._give_up_at = self._kill_at + AFTER_KILL_S
        if not force:
            for pid in self._find():
                self._seen[pid] = None
                signal_send(pid, signal.SIGTERM)
                signal_send(pid, signal.SIGCONT)  # a stopped one would never see it
        self._step()

    def _step(self) -> None:
        living = self._find()
        now = time.monotonic()
        if not self._goes_on(living) or now >= self._give_up_at:
            self._done([pid for pid in self._seen if pid not in living], living)
            return
        self._seen.update(dict.fromkeys(living))
        if now >= self._kill_at:
            for number in (signal.SIGSTOP, signal.SIGKILL):  # stopped first, so that none escapes by forking
                for pid in living:
                    signal_send(pid, number)
        self._loop.later(STEP_S, self._step)


class SessionEnding:
    """session.kill, session.close, session.close_all."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def kill(self, _action: str, args: Args, done: Done, _failed: Failed) -> None:
        """{session_id, force} -> {killed, failed}: everything below the shell; the shell survives."""
        session = self._run.session_get(args["session_id"])
        if session.dead:
            done({"killed": [], "failed": []})
            return
        if session.job is not None:
            session.job.kill_asked = True
        first = set(descendants_of(session.pid))
        inner = session.inner_pids(list(first))

        def find() -> List[int]:
            living = alive(descendants_of(session.pid))
            inner.update(session.inner_pids([pid for pid in living if pid not in inner]))
            return living

        def goes_on(living: List[int]) -> bool:
            if session.state == "busy" and not first.issuperset(living[:1]):
                session.interrupt()  # the shell itself loops: what it starts now dies as by Ctrl-C, and the loop ends
            elif session.state == "busy" and not living:
                session.interrupt()
            return bool(living) or session.state == "busy"

        def ended(killed: List[int], left: List[int]) -> None:
            if session.state == "busy" and not left:
                signal_send(session.pid, signal.SIGKILL)  # a shell that ignores even that; the session gets a new one
            answer = {
                "killed": [inner.get(pid, pid) for pid in killed],
                "failed": [inner.get(pid, pid) for pid in left],
            }
            done(answer)

        Reaper(self._run.loop, find, ended, goes_on).start(force=bool(args.get("force", False)))

    def close(self, _action: str, args: Args, done: Done, _failed: Failed) -> None:
        """{session_id} -> {ended}: nothing of it is left running, its name is free again."""
        session = self._run.session_get(args["session_id"])
        self._close(session, lambda pids: done({"ended": pids}))

    def close_all(self, _action: str, _args: Args, done: Done, _failed: Failed) -> None:
        """{} -> {count}."""
        sessions = [session for session in self._run.sessions.values() if not session.dead]
        left = len(sessions)
        if not sessions:
            self._run.sessions.clear()
            done({"count": 0})
            return

        def closed(_pids: List[int]) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                done({"count": len(sessions)})

        for session in sessions:
            self._close(session, closed)

    def _close(self, session: Session, done: Callable[[List[int]], None]) -> None:
        self._run.sessions.pop(session.name, None)
        if session.dead:
            done([])
            return
        if session.job is not None:
            session.job.kill_asked = True
        shell, inner = session.pid, session.inner_pids(descendants_of(session.pid))
        gone: Dict[int, None] = {}

        def find() -> List[int]:
            # The shell is the subreaper of all it started: it must be the last to go.
            living = alive(descendants_of(shell))
            gone.update(dict.fromkeys(living))
            return living

        def ended(_killed: List[int], _left: List[int]) -> None:
            signal_send(shell, signal.SIGKILL)
            self._finish(session, lambda: done([inner.get(pid, pid) for pid in gone]))

        Reaper(self._run.loop, find, ended).start(force=False)

    def _finish(self, session: Session, answer: Callable[[], None], tries: int = 40) -> None:
        if alive([session.pid]) and tries > 0:
            self._run.loop.later(STEP_S, lambda: self._finish(session, answer, tries - 1))
            return
        if not session.dead:
            session.shell_ended(signal.SIGKILL)
        session.remember()
        answer()
