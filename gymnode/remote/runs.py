"""Room: gymnode.remote. One run on this node: its isolation, sessions, journal, secrets. All in the loop's thread."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

from gymnode.remote.journal import Journal
from gymnode.remote.keepers import Failed, KeeperLink, Spawned
from gymnode.remote.launching import Place, Wants, environment_make, launch_make, place_make
from gymnode.remote.levels import INSIDE_WORKSPACE, Capabilities
from gymnode.remote.loop import Loop
from gymnode.remote.masking import Masker, secret_forms
from gymnode.remote.refusals import Refusal
from gymnode.remote.sessions import Session, pipe_wide
from gymnode.remote.sweeping import alive, descendants_of, pids_marked, pids_of_uid, signal_send
from gymnode.remote.watching import Changes

MARKER = "GYMD_RUN"


class RunFacts(NamedTuple):
    """What is on disk about a run."""

    name: str
    top: str
    uid: int | None
    epoch: int
    level: str
    gpus: List[int]
    task_env: str | None
    assets: str | None
    disk_gb: float | None = None


class Run:
    """State of one open run."""

    def __init__(self, loop: Loop, changes: Changes, folder: Path, facts: RunFacts) -> None:
        self.loop, self.changes, self.folder, self.facts = loop, changes, folder, facts
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.journal = Journal(folder / "journal.jsonl")
        self.place = Place(Path(facts.top), facts.uid)
        self.wants = Wants(tuple(facts.gpus), facts.task_env, facts.assets, facts.disk_gb)
        self.sessions: Dict[str, Session] = {}
        self.environment: Dict[str, str] = {}
        self.forms: List[bytes] = []
        self.keeper: KeeperLink | None = None
        self.ready = False
        self.full = ""  # says so while the run is above its disk limit
        self.frozen: List[int] = []
        self.outputs: List[Path] = []
        self.unpacking: Dict[str, List[Tuple[Callable[[Dict[str, Any]], None], Failed]]] = {}  # by upload: who waits
        self._opening: List[Tuple[Callable[[], None], Failed]] = []

    # --- opening

    @property
    def workspace(self) -> str:
        """The workspace as the agent sees it."""
        return INSIDE_WORKSPACE if self.facts.level == "namespace" else str(self.place.work)

    def remember(self) -> None:
        """Write the facts to disk."""
        temporary = self.folder / "run.json.new"
        temporary.write_text(json.dumps(self.facts._asdict()))
        temporary.replace(self.folder / "run.json")

    def secrets_set(self, environment: Dict[str, str], secrets: Dict[str, str]) -> None:
        """Set what shells that start from now on find in their environment, and what is masked from now on."""
        self.environment = {**environment, **secrets}
        self.forms = secret_forms(secrets.values())

    def open(self, level: str, found: Capabilities, done: Callable[[], None], failed: Failed) -> None:
        """Bring the isolation up at `level`, once; later calls wait for the first or answer at once."""
        if self.ready:
            done()
            return
        self._opening.append((done, failed))
        if self.keeper is not None:
            return
        self.facts = self.facts._replace(level=level)
        self.remember()
        place_make(self.place)
        self.keeper = KeeperLink(self.loop, self._on_exit, self._on_keeper_lost)
        launch = launch_make(level, self.place, self.wants, found)
        log = self.folder / "keeper.log"
        try:
            self.keeper.start(launch, str(log), lambda _facts: self._opened(None), self._opened)
        except OSError as error:
            self._opened(Refusal("broken", f"the run's isolation can't be started: {error}"))

    def _opened(self, refusal: Refusal | None) -> None:
        waiting, self._opening = self._opening, []
        self.ready = refusal is None
        if refusal is not None:
            self.keeper_stop()
            said = (self.folder / "keeper.log").read_text(errors="replace").strip()[-400:]
            refusal = Refusal("broken", f"level {self.facts.level} can't be opened: {refusal.message} {said}".strip())
        for done, failed in waiting:
            if refusal is None:
                done()
            else:
                failed(refusal)

    def keeper_stop(self) -> None:
        """Hang up on the keeper and forget it."""
        if self.keeper is not None:
            self.keeper.close()
            self.keeper.kill()
            self.keeper = None
        self.ready = False

    def _on_keeper_lost(self) -> None:
        if not self.ready:
            return
        self.ready = False
        if self.keeper is not None:
            self.keeper.kill()
            self.keeper = None
        for pid in self.pids():
            signal_send(pid, signal.SIGKILL)
        for session in self.sessions.values():
            if not session.dead:
                session.lost()

    def _on_exit(self, inner: int, status: int) -> None:
        for session in self.sessions.values():
            if session.inner == inner and not session.dead:
                try:
                    session.shell_ended(status)
                except Exception:  # noqa: BLE001 - a fault in one session must not end the run's isolation
                    self.loop.faults.write()
                    session.abandon()

    def keeper_get(self) -> KeeperLink:
        """The keeper. Raises Refusal when the run's isolation isn't up."""
        if self.keeper is None or not self.ready:
            raise Refusal("no_such_run", f"run {self.facts.name} has no isolation up on this node: open it again")
        return self.keeper

    # --- sessions

    def session_get(self, name: str) -> Session:
        """A session that hasn't been closed. Raises Refusal."""
        session = self.sessions.get(name)
        if session is None:
            known = ", ".join(sorted(self.sessions)) or "none"
            raise Refusal("no_such_session", f"there is no session {name}; open sessions: {known}")
        return session

    def session_add(self, name: str) -> Session:
        """A record of a new session, without a shell yet."""
        note = self._note
        folder = self.folder / "sessions" / name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        session = Session(self.loop, name, folder, Masker(self.forms), note)
        self.sessions[name] = session
        return session

    def _note(self, kind: str, session: str, **facts: Any) -> None:
        self.changes.note(kind, self.facts.name, session, **facts)

    def shell_start(self, session: Session, message: Dict[str, Any], done: Callable[[], None], failed: Failed) -> None:
        """Start a shell for a session. `message` {cwd, cols, rows}."""
        keeper = self.keeper_get()
        command_read, command_write = pipe_wide()
        status_read, status_write = os.pipe2(os.O_CLOEXEC)
        given = [command_read, status_write]
        master = -1
        if self.facts.level == "landlock":
            master, slave = os.openpty()
            if self.facts.uid is not None:
                os.fchown(slave, self.facts.uid, -1)
            given.append(slave)

        def spawned(shell: Spawned) -> None:
            terminal = shell.master if shell.master is not None else master
            session.attach(Spawned(shell.pid, shell.inner, terminal), command_write, status_read)
            session.remember()
            done()

        def refused(refusal: Refusal) -> None:
            for fd in (command_write, status_read, *([master] if master >= 0 else [])):
                os.close(fd)
            failed(refusal)

        keeper.spawn({**message, "env": self._shell_environment()}, given, spawned, refused)
        for fd in given:
            os.close(fd)

    def _shell_environment(self) -> Dict[str, str]:
        base = environment_make(self.facts.level, self.place, self.wants)
        return {**base, **self.environment, MARKER: self.marker_value()}

    def marker_value(self) -> str:
        """What stands in the environment of everything the run started."""
        return f"{self.facts.name}:{self.folder.name}"

    # --- processes

    def pids(self) -> List[int]:
        """Everything of the run that still runs, the keeper excepted, however it forked."""
        found = set()
        keeper = self.keeper.pid if self.keeper is not None else 0
        if keeper:
            found.update(descendants_of(keeper))
        for session in self.sessions.values():
            if session.pid and not session.dead:
                found.add(session.pid)
                found.update(descendants_of(session.pid))
        if self.facts.uid is not None:
            found.update(pids_of_uid(self.facts.uid))
        elif self.facts.level != "namespace":
            found.update(pids_marked(f"{MARKER}={self.marker_value()}"))
        wrapper = self.keeper.process.pid if self.keeper is not None and self.keeper.process is not None else 0
        return sorted(alive(found - {keeper, wrapper, os.getpid()}))

    def jobs_end(self, why: str, *, shells_too: bool) -> None:
        """Kill all jobs at once; a shell that loops itself is interrupted. `why` stands at the end of their output."""
        spared = set()
        for session in self.sessions.values():
            if session.job is not None and session.state == "busy":
                session.job.kill_asked = session.job.ended_for_good = True
                session.tell(why)
                session.interrupt()
            if session.pid and not session.dead and not shells_too:
                spared.add(session.pid)
        for pid in self.pids():
            if pid not in spared:
                signal_send(pid, signal.SIGKILL)

    def freeze(self) -> int:
        """Stop everything (shells first, so that none takes a stopped child for a finished job)."""
        for _round in range(20):
            fresh = [pid for pid in self._parents_first() if pid not in self.frozen]
            if not fresh:
                break
            for pid in fresh:
                signal_send(pid, signal.SIGSTOP)
            self.frozen += fresh
        return len(self.frozen)

    def thaw(self) -> int:
        """Continue what `freeze` stopped, children before parents."""
        frozen, self.frozen = self.frozen, []
        for pid in reversed(frozen):
            signal_send(pid, signal.SIGCONT)
        return len(frozen)

    def _parents_first(self) -> List[int]:
        every = self.pids()
        ordered = []
        for session in self.sessions.values():
            if session.pid and not session.dead:
                ordered += [session.pid, *descendants_of(session.pid)]
        return [pid for pid in dict.fromkeys(ordered) if pid in set(every)] + [
            pid for pid in every if pid not in set(ordered)
        ]

    def remove(self) -> None:
        """Delete the workspace and all that is remembered of the run."""
        self.journal.close()
        if self.facts.uid is not None:
            shared_memory_clear(self.facts.uid)
        shutil.rmtree(self.place.top, ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)


def shared_memory_clear(uid: int) -> None:
    """Without namespaces /dev/shm is the machine's: what the run's user left there goes with the run."""
    with contextlib.suppress(OSError):
        for entry in os.scandir("/dev/shm"):
            if entry.stat(follow_symlinks=False).st_uid != uid:
                continue
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)  # noqa: PTH108 - a name from scandir


def run_load(path: Path) -> RunFacts | None:
    """The facts of a run that an earlier gymd wrote; None when they can't be read."""
    try:
        return RunFacts(**json.loads((path / "run.json").read_text()))
    except (OSError, ValueError, TypeError):
        return None
