"""Room: gymnode.actions. Sessions themselves: make, look at, clear, end. May touch the desk alone."""

from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field

from gymnode.actions.arguments import PathText, SessionName, Whole
from gymnode.actions.base import Family, Lane, NodeAction, NodeName
from gymnode.actions.telling import counted, job_words, numbers
from gymnode.observations import (
    EndedObservation,
    IdleObservation,
    Observation,
    Outcome,
    SessionObservation,
    SessionsObservation,
    StatusObservation,
)
from gymnode.rendering import moment, shorten
from gymnode.screen import visible
from gymnode.sessions import Created, Ended, Idle, Listed, Session, Status
from gymnode.workbench import Args, Desk

_COMMAND_CHARS = 200


class CreateSession(NodeAction):
    """Make a session: a named bash on a terminal that lives on the node until it is closed. Give each long job one of
    its own, so that other commands can run beside it."""

    name: ClassVar = "create_session"
    family: ClassVar = Family.COMMAND
    lane: ClassVar = Lane.COMMAND
    observation: ClassVar[type[Observation]] = SessionObservation

    session_id: SessionName | None = Field(
        default=None,
        description="Name of the session: letters, digits, dot, dash, underscore. Default: a free one (s1, s2, ...).",
    )
    cwd: PathText = Field(default="/workspace", description="Directory to start in.")
    cols: Whole = Field(default=200, ge=20, le=1000, description="Width of the terminal in characters.")
    rows: Whole = Field(default=50, ge=5, le=500, description="Height of the terminal in lines.")

    def act(self, desk: Desk) -> Observation:
        args: Args = {
            "session_id": self.session_id,
            "cwd": self.cwd,
            "cols": self.cols,
            "rows": self.rows,
        }
        made = desk.ask("session.create", Created, args).session.model_copy(update={"node": desk.node})
        message = f'Session {made.id} is ready in {made.cwd or self.cwd}: run_command(session_id="{made.id}", ...).'
        return desk.answer(SessionObservation, message, session=made)


class ListSessions(NodeAction):
    """List the sessions of all nodes (or of one): state, foreground job, time of the last output, background
    processes, and which GPUs each holds."""

    name: ClassVar = "list_sessions"
    family: ClassVar = Family.COMMAND
    lane: ClassVar = Lane.COMMAND
    observation: ClassVar[type[Observation]] = SessionsObservation

    node: NodeName | None = Field(default=None, description="Name of one node. Default: all nodes of the run.")

    def act(self, desk: Desk) -> Observation:
        found: list[Session] = []
        for node in [self.node] if self.node else list(desk.bench.nodes):
            listed = Desk(desk.bench, node, desk.started_at).ask("session.list", Listed, {})
            found += [session.model_copy(update={"node": node}) for session in listed.sessions]
        message = f"{counted(len(found), 'session')}." if found else "No session yet: run_command makes one."
        rows = "\n".join(_session_row(session) for session in found)
        text = shorten(rows, desk.bench.max_chars, "Name a node to see fewer.")
        return desk.answer(SessionsObservation, message, sessions=tuple(found), output=text)


class GetSessionStatus(NodeAction):
    """Show the job of a session (state, exit code), whether it waits for input, and its processes."""

    name: ClassVar = "get_session_status"
    family: ClassVar = Family.COMMAND
    lane: ClassVar = Lane.COMMAND
    observation: ClassVar[type[Observation]] = StatusObservation

    session_id: SessionName = Field(description="Session to look at.")

    def act(self, desk: Desk) -> Observation:
        status = desk.ask("session.status", Status, {"session_id": self.session_id})
        waits = " It waits for input: answer with input_in_session." if status.waiting_for_input else ""
        rows = [f"{p.pid} {p.state or '?'} {visible(p.command[:_COMMAND_CHARS])}" for p in status.pids]
        text = "\n".join(["pid state command", *rows]) if rows else ""
        count = counted(len(rows), "process", "processes") if rows else "no process beside the shell"
        return desk.answer(
            StatusObservation,
            f"Session {self.session_id}: {job_words(status.job)}; {count}.{waits}",
            session_id=self.session_id,
            job=status.job,
            exit_code=status.job.exit_code if status.job else None,
            pids=status.pids,
            waiting_for_input=status.waiting_for_input,
            output=shorten(text, desk.bench.max_chars, "ps in run_command shows them all."),
        )


class CheckSessionIdle(NodeAction):
    """Say whether a session is idle: no foreground job. Background processes don't make it busy. To wait for a job use
    sleep with until_session_idle instead of asking again and again."""

    name: ClassVar = "check_session_idle"
    family: ClassVar = Family.COMMAND
    lane: ClassVar = Lane.COMMAND
    observation: ClassVar[type[Observation]] = IdleObservation

    session_id: SessionName = Field(description="Session to look at.")

    def act(self, desk: Desk) -> Observation:
        answer = desk.ask("session.idle", Idle, {"session_id": self.session_id})
        move = (
            f'Read it with get_session_output(session_id="{self.session_id}").'
            if answer.idle
            else f'Wait with sleep(seconds=..., until_session_idle="{self.session_id}").'
        )
        state = "idle" if answer.idle else "busy"
        message = f"Session {self.session_id} is {state}: {job_words(answer.job)}. {move}"
        return desk.answer(IdleObservation, message, session_id=self.session_id, idle=answer.idle, job=answer.job)


class ClearSessionBuffer(NodeAction):
    """Mark all output of a session as read: get_session_output then shows only what comes later. The log itself stays
    and can be read with since_offset."""

    name: ClassVar = "clear_session_buffer"
    family: ClassVar = Family.COMMAND
    lane: ClassVar = Lane.COMMAND
    observation: ClassVar[type[Observation]] = EndedObservation

    session_id: SessionName = Field(description="Session whose output is read.")

    def act(self, desk: Desk) -> Observation:
        desk.ask("session.clear", Ended, {"session_id": self.session_id})
        message = (
            f"Output of session {self.session_id} up to now is marked as read; since_offset=0 still shows all of it."
        )
        return desk.answer(EndedObservation, message, session_id=self.session_id)


class CloseSession(NodeAction):
    """Close a session and end everything that it started, a running job included."""

    name: ClassVar = "close_session"
    family: ClassVar = Family.COMMAND
    lane: ClassVar = Lane.COMMAND
    observation: ClassVar[type[Observation]] = EndedObservation

    session_id: SessionName = Field(description="Session to close.")

    def act(self, desk: Desk) -> Observation:
        answer = desk.ask("session.close", Ended, {"session_id": self.session_id}, wait_s=15)
        message = f"Session {self.session_id} is closed; {_ended(answer.ended)}."
        return desk.answer(EndedObservation, message, session_id=self.session_id, ended=answer.ended)


class CloseAllSessions(NodeAction):
    """Close all sessions of all nodes (or of one) and end everything that they started, running jobs included."""

    name: ClassVar = "close_all_sessions"
    family: ClassVar = Family.COMMAND
    lane: ClassVar = Lane.COMMAND
    observation: ClassVar[type[Observation]] = EndedObservation

    node: NodeName | None = Field(default=None, description="Name of one node. Default: all nodes of the run.")

    def act(self, desk: Desk) -> Observation:
        count = 0
        ended: tuple[int, ...] = ()
        for node in [self.node] if self.node else list(desk.bench.nodes):
            answer = Desk(desk.bench, node, desk.started_at).ask("session.close_all", Ended, {}, wait_s=30)
            count, ended = count + answer.count, (*ended, *answer.ended)
        return desk.answer(
            EndedObservation,
            f"{counted(count, 'session')} closed, and all that they had started was ended.",
            count=count,
            ended=ended,
        )


class KillSessionProcesses(NodeAction):
    """End all processes of a session: TERM, and KILL after 5 seconds for those that are left (force: KILL at once). The
    session itself stays, with its directory and variables."""

    name: ClassVar = "kill_session_processes"
    family: ClassVar = Family.COMMAND
    lane: ClassVar = Lane.COMMAND
    observation: ClassVar[type[Observation]] = EndedObservation

    session_id: SessionName = Field(description="Session whose processes are ended.")
    force: bool = Field(default=False, description="Send KILL at once: the processes can't save anything.")

    def act(self, desk: Desk) -> Observation:
        args: Args = {"session_id": self.session_id, "force": self.force}
        answer = desk.ask("session.kill", Ended, args, wait_s=15)
        if answer.failed:
            message = f"Session {self.session_id}: {_ended(answer.killed)}; still alive: {numbers(answer.failed)}."
            move = " Try again with force=true." if not self.force else " They can't be killed now; look again later."
            outcome, message = Outcome.FAILED, message + move
        else:
            outcome, message = (
                Outcome.OK,
                f"Session {self.session_id}: {_ended(answer.killed)}. The shell is still there.",
            )
        return desk.answer(
            EndedObservation,
            message,
            outcome=outcome,
            session_id=self.session_id,
            killed=answer.killed,
            failed=answer.failed,
        )


def _ended(pids: Sequence[int]) -> str:
    if not pids:
        return "no process had to be ended"
    return f"{counted(len(pids), 'process', 'processes')} ended ({numbers(pids)})"


def _session_row(session: Session) -> str:
    parts = [f"{session.id} on {session.node}: {session.state}, {job_words(session.job)}"]
    if session.job is not None and session.job.command:
        parts.append(f"`{visible(session.job.command[:_COMMAND_CHARS])}`")
    if session.cwd:
        parts.append(f"in {visible(session.cwd)}")
    if session.last_output_at is not None:
        at = moment(session.last_output_at)
        parts.append(f"last output {at:%Y-%m-%d %H:%M:%S} UTC" if at else "last output at an impossible time")
    if session.background_pids:
        parts.append(f"background processes {numbers(session.background_pids)}")
    if session.gpus:
        parts.append(f"holds GPU {numbers(session.gpus)}")
    return ", ".join(parts)
