"""Room: gymnode.remote. One command in a session: its state, its line for the shell, the report of its end."""

from __future__ import annotations

import os
import re
import time
from typing import Any, Dict

from gymnode.remote.refusals import Refusal
from gymnode.remote.shells import STATUS_FD, TERMINAL_FD

MAX_COMMAND = 256 * 1024
SHOWN_COMMAND = 300
_DRAIN_OPEN = b"\x1b]7717;"
_DRAIN_CLOSE = b"\x07"
_NONCE_SIZE = 32
_REPORT = re.compile(rb"^([0-9a-f]{32}) (\d{1,3})$")


class Job:
    """A command. `state` is running, exited, killed or lost; times are epoch seconds; offsets are of the log."""

    def __init__(self, job_id: str, command: str, start_offset: int) -> None:
        self.id, self.command, self.start_offset = job_id, command, start_offset
        self.started_at, self.began = time.time(), time.monotonic()
        self.nonce = os.urandom(_NONCE_SIZE // 2).hex()
        self.state = "running"
        self.kill_asked = False
        self.ended_for_good = False  # ended by gymd itself, whatever its shell says of it afterwards
        self.exit_code: int | None = None
        self.ended_at: float | None = None
        self.duration_s: float | None = None
        self.end_offset: int | None = None

    def end(self, state: str, exit_code: int | None, offset: int) -> None:
        """Set the end, once."""
        self.state, self.exit_code, self.end_offset = state, exit_code, offset
        self.ended_at = time.time()
        self.duration_s = round(time.monotonic() - self.began, 6)

    def facts(self) -> Dict[str, Any]:
        """What goes over the wire and to disk, with every answer about the session: of the command, its beginning."""
        return {
            "id": self.id,
            "command": command_short(self.command),
            "state": self.state,
            "exit_code": self.exit_code,
            "started_at": self.started_at,
            "ended_at": self.ended_at,
            "duration_s": self.duration_s,
        }

    def restore(self, facts: Dict[str, Any]) -> None:
        """Take over what is on disk; a job that ran then is lost."""
        self.started_at, self.ended_at = facts["started_at"], facts["ended_at"]
        self.exit_code, self.duration_s = facts["exit_code"], facts["duration_s"]
        self.state = "lost" if facts["state"] == "running" else facts["state"]
        self.end_offset = self.start_offset

    @property
    def drain_mark(self) -> bytes:
        """Printed on the terminal by the shell after the job: all output before it has arrived. Never shown."""
        return _DRAIN_OPEN + self.nonce.encode() + _DRAIN_CLOSE


def command_short(command: str) -> str:
    """The beginning of a command."""
    return command if len(command) <= SHOWN_COMMAND else command[: SHOWN_COMMAND - 3] + "..."


def job_line(job: Job, previous_status: int) -> bytes:
    """What the shell reads for one job. Raises Refusal for what no shell can be given.

    `$?` of the last job is set first, so that no trap takes it for a failure of now. The command sees the terminal on
    0 and 2 and neither private descriptor; an empty line ends what it may have left open. Then the status goes to its
    pipe, and a mark to the terminal.
    """
    command = job.command.encode("utf-8", "surrogateescape")
    if b"\0" in command:
        raise Refusal("bad_request", "a command can't contain a NUL byte")
    if len(command) > MAX_COMMAND:
        raise Refusal("bad_request", f"the command has {len(command)} bytes, at most {MAX_COMMAND}: put it into a file")
    status = f"(exit {previous_status}) && :\n" if previous_status else ":\n"
    quoted = b"'" + command.replace(b"'", b"'\\''") + b"'"
    redirect = f"<&{TERMINAL_FD} 2>&{TERMINAL_FD} {TERMINAL_FD}<&- {STATUS_FD}>&-".encode()
    report = (
        f"\\builtin printf '%s %d\\n' {job.nonce} \"$?\" >&{STATUS_FD}; "
        f"\\builtin printf '\\033]7717;%s\\a' {job.nonce} >&{TERMINAL_FD}\n"
    )
    return status.encode() + b"\\eval " + quoted + b" " + redirect + b"\n\n" + report.encode()


def report_parse(line: bytes, nonce: str) -> int | None:
    """The exit code in a status line, None when it isn't this job's."""
    match = _REPORT.match(line)
    if match is None or match.group(1).decode() != nonce:
        return None
    return int(match.group(2))


class DrainFilter:
    """Takes the mark of the running job out of a terminal's stream, also when it arrives in pieces."""

    def __init__(self) -> None:
        self._held = b""
        self._mark = b""
        self.seen = False

    def expect(self, mark: bytes) -> None:
        """Look for the mark of a new job."""
        self._mark, self.seen = mark, False

    def feed(self, data: bytes) -> bytes:
        """The stream without the mark."""
        if not self._mark or self.seen:
            data, self._held = self._held + data, b""
            return data
        data = self._held + data
        self._held = b""
        position = data.find(self._mark)
        if position >= 0:
            self.seen = True
            return data[:position] + data[position + len(self._mark) :]
        start = data.rfind(b"\x1b", max(0, len(data) - len(self._mark) + 1))
        if start >= 0 and self._mark.startswith(data[start:]):
            data, self._held = data[:start], data[start:]
        return data

    def release(self) -> bytes:
        """What is held, when the job ended without its mark (the shell is gone)."""
        held, self._held = self._held, b""
        return held
