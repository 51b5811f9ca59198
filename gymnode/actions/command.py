"""Room: gymnode.actions. Commands and what they print: run, answer, read. May touch the desk alone."""

from typing import ClassVar

from pydantic import Field

from gymnode.actions.arguments import Offset, SessionName, Text, Whole
from gymnode.actions.base import Family, Lane, NodeAction
from gymnode.actions.telling import (
    how_to_read,
    output_fields,
    ran_message,
    ran_outcome,
    read_answer,
    read_later,
    shell_words,
)
from gymnode.observations import CommandObservation, InputObservation, Observation, Outcome, OutputObservation
from gymnode.rendering import render_last
from gymnode.sessions import Entered, Ran, Read
from gymnode.workbench import Args, Desk

TIMEOUT_MIN_S, TIMEOUT_MAX_S = 1.0, 120.0
TAIL_BYTES = 128 * 1024


class RunCommand(NodeAction):
    """Run a shell command in a session (a bash on a terminal). The directory, variables and functions of a session stay
    for its next command. Waits up to timeout_s for the command to end and returns its exit code and output. A command
    that takes longer is not stopped: it keeps running, and the answer says how to read on. Start long jobs (training,
    downloads) in a session of their own with wait_for_completion=false, then sleep instead of polling."""

    name: ClassVar = "run_command"
    family: ClassVar = Family.COMMAND
    lane: ClassVar = Lane.COMMAND
    observation: ClassVar[type[Observation]] = CommandObservation

    command: Text = Field(description="The command line, as bash reads it. May have several lines.", min_length=1)
    session_id: SessionName | None = Field(
        default=None,
        description='Session to run it in; create_session makes one. Default: "main", which is always there.',
    )
    wait_for_completion: bool = Field(
        default=True, description="false: return at once and let the command run in the background of your work."
    )
    timeout_s: float = Field(
        default=10,
        description="Seconds to wait for the end: 1 to 120, other values are clamped. The command itself has no limit.",
        allow_inf_nan=False,
    )

    def act(self, desk: Desk) -> Observation:
        timeout_s = min(max(self.timeout_s, TIMEOUT_MIN_S), TIMEOUT_MAX_S)
        args: Args = {
            "session_id": self.session_id,
            "command": self.command,
            "wait": self.wait_for_completion,
            "timeout_s": timeout_s,
        }
        ran = desk.ask("session.run", Ran, args, wait_s=timeout_s if self.wait_for_completion else 0)
        message = ran_message(ran, waited=timeout_s if self.wait_for_completion else None) + shell_words(ran)
        if timeout_s != self.timeout_s:
            message += f" (timeout_s {self.timeout_s:g} was clamped to {timeout_s:g}: it goes from 1 to 120.)"
        return desk.answer(
            CommandObservation,
            message,
            outcome=ran_outcome(ran.job),
            timed_out=ran.timed_out,
            waiting_for_input=ran.waiting_for_input,
            **output_fields(desk, ran.session_id, ran.output, ran.job),
        )


class InputInSession(NodeAction):
    """Type text into the terminal of a session, as an answer to a program that waits for input, and return what it
    prints at once. Control characters work: "\\u0003" is Ctrl-C, "\\u0004" is Ctrl-D (set press_enter to false)."""

    name: ClassVar = "input_in_session"
    family: ClassVar = Family.COMMAND
    lane: ClassVar = Lane.COMMAND
    observation: ClassVar[type[Observation]] = InputObservation

    session_id: SessionName = Field(description="Session to type into.")
    input_text: Text = Field(description="The text to type.")
    press_enter: bool = Field(default=True, description="Press Enter after the text.")

    def act(self, desk: Desk) -> Observation:
        args: Args = {
            "session_id": self.session_id,
            "text": self.input_text,
            "press_enter": self.press_enter,
        }
        entered = desk.ask("session.input", Entered, args)
        waiting = (
            "was waiting for input" if entered.was_waiting else "was not waiting for input (the text was sent anyway)"
        )
        message = f"Typed into session {self.session_id}; its foreground job {waiting}. {read_later(self.session_id)}"
        return desk.answer(
            InputObservation,
            message,
            was_waiting=entered.was_waiting,
            **output_fields(desk, self.session_id, entered.output, None),
        )


class GetSessionOutput(NodeAction):
    """Read the output of a session without disturbing it: its last lines, or everything from a byte offset on. The log
    keeps all that was printed; long stretches are shown as head and tail with the offset where to read on."""

    name: ClassVar = "get_session_output"
    family: ClassVar = Family.COMMAND
    lane: ClassVar = Lane.COMMAND
    observation: ClassVar[type[Observation]] = OutputObservation

    session_id: SessionName = Field(description="Session to read.")
    start_lines: Whole = Field(
        default=50,
        ge=1,
        le=10_000,
        description="First line to show, counted from the end: 50 begins 50 lines before it.",
    )
    end_lines: Whole = Field(default=0, ge=0, le=10_000, description="Lines at the end to leave out.")
    since_offset: Offset | None = Field(
        default=None,
        description="Byte offset to read from, such as an earlier next_offset; the two line numbers are then not used.",
    )

    def act(self, desk: Desk) -> Observation:
        args: Args = {
            "session_id": self.session_id,
            "since_offset": self.since_offset,
            "tail_bytes": TAIL_BYTES,
        }
        read = desk.ask("session.read", Read, args)
        if self.since_offset is not None:
            return read_answer(desk, self.session_id, read, f"Output since offset {self.since_offset}.")
        if self.end_lines >= self.start_lines:
            return desk.answer(
                OutputObservation,
                f"Nothing to show: end_lines ({self.end_lines}) must be below start_lines ({self.start_lines}).",
                outcome=Outcome.REFUSED,
            )
        rendered = render_last(
            read.output.raw(),
            start=self.start_lines,
            end=self.end_lines,
            max_chars=desk.bench.max_chars,
            how=lambda offset: how_to_read(self.session_id, offset),
        )
        what = f"The last {self.start_lines} lines" + (f" without the last {self.end_lines}" if self.end_lines else "")
        return read_answer(desk, self.session_id, read, f"{what}.", rendered)


class GetSessionRecentOutput(NodeAction):
    """Read what a session printed in the last seconds, by the node's clock."""

    name: ClassVar = "get_session_recent_output"
    family: ClassVar = Family.COMMAND
    lane: ClassVar = Lane.COMMAND
    observation: ClassVar[type[Observation]] = OutputObservation

    session_id: SessionName = Field(description="Session to read.")
    seconds: Whole = Field(default=10, ge=1, le=86_400, description="How far to look back, in seconds.")

    def act(self, desk: Desk) -> Observation:
        read = desk.ask("session.recent", Read, {"session_id": self.session_id, "seconds": self.seconds})
        return read_answer(desk, self.session_id, read, f"Output of the last {self.seconds} s.")
