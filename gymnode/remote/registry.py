"""Room: gymnode.remote. All runs of this node: opening with a fence, users of their own, ending with a check."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import Any, Callable, Dict, List, Set

from gymnode.remote.digests import hex_digest
from gymnode.remote.ending import Reaper
from gymnode.remote.homes import Home
from gymnode.remote.keepers import Failed
from gymnode.remote.levels import LEVELS, Capabilities
from gymnode.remote.loop import Loop
from gymnode.remote.refusals import Refusal
from gymnode.remote.runs import Run, RunFacts, run_load
from gymnode.remote.sweeping import pids_of_uid, signal_send
from gymnode.remote.watching import Changes

FIRST_UID, LAST_UID = 61_000, 62_999
_RUN_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")

Body = Dict[str, Any]
Done = Callable[[Body], None]


class Registry:
    """The runs by name. A restarted gymd knows them again and says what was lost."""

    def __init__(self, loop: Loop, changes: Changes, home: Home, found: Capabilities) -> None:
        self._loop, self._changes, self._home, self._found = loop, changes, home, found
        self._folder = home.state / "runs"
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self.instance = self._instance_read()
        self.runs: Dict[str, Run] = {}
        for entry in sorted(self._folder.iterdir()):
            facts = run_load(entry)
            if facts is not None:
                self.runs[facts.name] = self._revive(entry, facts)

    def _instance_read(self) -> str:
        """A name for this memory: as long as it is the same, nothing that was journalled is forgotten."""
        path = self._home.state / "instance"
        if not path.exists():
            path.write_text(os.urandom(8).hex())
        return path.read_text()

    def _revive(self, folder: Path, facts: RunFacts) -> Run:
        """A run of an earlier gymd: its processes died with that one, its sessions are lost, its journal stands."""
        run = Run(self._loop, self._changes, folder, facts)
        for pid in run.pids():
            signal_send(pid, signal.SIGKILL)
        sessions = folder / "sessions"
        for entry in sorted(sessions.iterdir()) if sessions.is_dir() else []:
            self._revive_session(run, entry)
        return run

    @staticmethod
    def _revive_session(run: Run, folder: Path) -> None:
        session = run.session_add(folder.name)
        if not session.revive():
            del run.sessions[folder.name]

    def get(self, name: str) -> Run:
        """An open run. Raises Refusal."""
        run = self.runs.get(name)
        if run is None:
            raise Refusal("no_such_run", f"run {name} isn't open on this node")
        return run

    def fence(self, run: Run, body: Body) -> None:
        """Refuse a former holder; remember a newer one."""
        epoch = int(body["epoch"])
        if epoch < run.facts.epoch:
            raise Refusal("epoch_too_low", f"run {run.facts.name} is at epoch {run.facts.epoch}; {epoch} is over")
        if epoch > run.facts.epoch:
            run.facts = run.facts._replace(epoch=epoch)
            run.remember()

    # --- opening

    def open(self, name: str, body: Body, done: Done, failed: Failed) -> None:
        """Open a run or find it open; raises its epoch. Raises Refusal."""
        if not _RUN_NAME.match(name):
            raise Refusal("bad_request", f"{name!r} is no run name: letters, digits, '.', '_', '-', at most 64")
        run = self.runs.get(name)
        if run is not None:
            self.fence(run, body)
        level = run.facts.level if run is not None else ""
        if not level:
            level = self._level(str(body.get("level", "best")), allow_plain=bool(body.get("allow_plain")))
        if str(body.get("network") or "none") != "none":
            raise Refusal("bad_request", f"network {body['network']!r}: this release of gymd offers none only")
        if run is None:
            run = self.runs[name] = self._create(name, body)
        run.secrets_set(_texts(body.get("env")), _texts(body.get("secrets")))
        opened = run

        def answer() -> None:
            done(
                {
                    "level": opened.facts.level,
                    "workspace": opened.workspace,
                    "real_root": str(opened.place.work),
                    "egress_enforced": opened.facts.level == "namespace",
                }
            )

        run.open(level, self._found, answer, failed)

    def _level(self, wanted: str, *, allow_plain: bool) -> str:
        if wanted == "best":
            best = self._found.best()
            if not best:
                reasons = "; ".join(f"{one.name}: {one.reason}" for one in self._found.levels.values() if one.reason)
                raise Refusal("not_permitted", f"no isolation works on this node, and plain wasn't allowed: {reasons}")
            return best
        if wanted == "plain" and not allow_plain:
            raise Refusal("not_permitted", "level plain is no wall: it needs allow_plain, an operator's permission")
        if wanted not in LEVELS:
            raise Refusal("bad_request", f"level {wanted!r}: one of {', '.join(LEVELS)} or best")
        if not self._found.levels[wanted].available:
            raise Refusal("not_permitted", f"level {wanted} doesn't work here: {self._found.levels[wanted].reason}")
        return wanted

    def _create(self, name: str, body: Body) -> Run:
        uid = self._uid_free() if os.getuid() == 0 else None
        key = hex_digest(name.encode())[:8]
        safe = re.sub(r"[^A-Za-z0-9]", "-", name)[:40]
        facts = RunFacts(
            name=name,
            top=str(self._home.root / f"{safe}-{key}"),
            uid=uid,
            epoch=int(body["epoch"]),
            level="",
            gpus=[int(one) for one in body.get("gpus") or []],
            task_env=body.get("task_env") or None,
            assets=body.get("assets") or None,
            disk_gb=float((body.get("limits") or {}).get("disk_gb") or 0) or None,
        )
        return Run(self._loop, self._changes, self._folder / f"{safe}-{key}", facts)

    def _uid_free(self) -> int:
        taken: Set[int] = {run.facts.uid for run in self.runs.values() if run.facts.uid is not None}
        for entry in self._home.root.iterdir():
            work = entry / "work"
            if work.is_dir():
                taken.add(work.stat().st_uid)
        # Each gymd of a machine begins elsewhere: a user without a process may be that of another gymd's run.
        count = LAST_UID - FIRST_UID + 1
        start = int(hex_digest(str(self._home.state).encode())[:8], 16)
        for uid in (FIRST_UID + (start + step) % count for step in range(count)):
            if uid not in taken and not pids_of_uid(uid):
                return uid
        raise Refusal("storage_full", f"all users {FIRST_UID} to {LAST_UID} belong to runs: close some")

    # --- ending

    def control(self, run: Run, verb: str, remove: bool, done: Done) -> None:
        """freeze, thaw, kill (everything, the run stays open), close (everything, checked; removed if `remove`)."""
        if verb == "freeze":
            done({"stopped": run.freeze()})
        elif verb == "thaw":
            done({"continued": run.thaw()})
        elif verb == "kill":
            self._kill(run, lambda left: done({"left": left}))
        else:
            self._kill(run, lambda left: self._close(run, left, remove, done))

    def _kill(self, run: Run, then: Callable[[List[int]], None]) -> None:
        """End all jobs and shells: TERM, five seconds, KILL; what had become of sessions is `closed`."""
        run.frozen = []
        for session in run.sessions.values():
            if session.job is not None:
                session.job.kill_asked = True
        shells = {session.pid for session in run.sessions.values() if session.pid and not session.dead}

        def jobs() -> List[int]:
            return [pid for pid in run.pids() if pid not in shells]

        def everything(_ended: List[int], _left: List[int]) -> None:
            Reaper(self._loop, run.pids, lambda _gone, left: then(left)).start(force=True)

        Reaper(self._loop, jobs, everything).start(force=False)

    def _close(self, run: Run, left: List[int], remove: bool, done: Done) -> None:
        run.keeper_stop()
        left = [pid for pid in left if pid in run.pids()]
        for session in run.sessions.values():
            if not session.dead:
                session.lost()
            session.remember()
        if remove and not left:
            self._changes.forget(run.facts.name)
            run.remove()
            del self.runs[run.facts.name]
        done({"closed": not left, "left": left})


def _texts(value: Any) -> Dict[str, str]:
    return {str(name): str(text) for name, text in (value or {}).items()}
