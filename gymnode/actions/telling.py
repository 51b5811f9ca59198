"""Room: gymnode.actions. The words of answers about sessions and jobs: what happened, and what can be done next."""

from collections.abc import Sequence
from typing import Any

from gymnode.observations import Outcome, OutputObservation
from gymnode.rendering import Rendered, render
from gymnode.sessions import Job, JobState, Piece, Ran, Read
from gymnode.workbench import Desk

_CODES = {
    126: "the file is no program or may not be run",
    127: "command not found",
    137: "killed by KILL, perhaps out of memory",
    139: "segmentation fault",
    143: "ended by TERM",
}


def how_to_read(session_id: str, offset: int) -> str:
    """The sentence that names the call which shows what was left out."""
    return f'Read it with get_session_output(session_id="{session_id}", since_offset={offset})'


def read_later(session_id: str) -> str:
    """The sentence that says how to see what comes later."""
    return f'Later output: get_session_output(session_id="{session_id}").'


def output_fields(
    desk: Desk, session_id: str, piece: Piece, job: Job | None, rendered: Rendered | None = None
) -> dict[str, Any]:
    """The fields that every answer with output has; the output is rendered unless it was already."""
    shown = rendered or render(
        piece.raw(), max_chars=desk.bench.max_chars, how=lambda offset: how_to_read(session_id, offset)
    )
    return {
        "session_id": session_id,
        "job": job,
        "exit_code": job.exit_code if job else None,
        "output": shown.text,
        "omitted": shown.omitted,
        "start_offset": shown.start,
        "next_offset": piece.next_offset,
        "total_bytes": piece.total_bytes,
    }


def read_answer(
    desk: Desk, session_id: str, read: Read, what: str, rendered: Rendered | None = None
) -> OutputObservation:
    """The answer of an action that read a session's log."""
    fields = output_fields(desk, session_id, read.output, read.job, rendered)
    nothing = "" if fields["output"] else " Nothing was printed there."
    message = (
        f"Session {session_id}: {job_words(read.job)}. {what}{nothing} "
        f"What comes later: since_offset={read.output.next_offset}."
    )
    return desk.answer(OutputObservation, message, **fields)


def job_words(job: Job | None) -> str:
    """The state of a session's job in words, for the middle of a sentence."""
    if job is None:
        return "no job has run"
    took = f" after {seconds_words(job.duration_s)}" if job.duration_s is not None else ""
    if job.state is JobState.RUNNING:
        return f"job {job.id} is running" + (f" for {seconds_words(job.duration_s)}" if job.duration_s else "")
    if job.state is JobState.EXITED:
        return f"job {job.id} ended with exit code {job.exit_code}{took}"
    return f"job {job.id} was {job.state}{took}"


def seconds_words(seconds: float) -> str:
    """A duration as a reader wants it: 3 ms, 0.42 s, 12 s, 5 min 3 s, 2 h 5 min."""
    if seconds < 0.1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.2f} s"
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 7200 else f"{whole // 3600} h {whole % 3600 // 60} min"


def ran_outcome(job: Job) -> Outcome:
    """A command that ended badly has failed; one that still runs has not."""
    if job.state is JobState.LOST:
        return Outcome.BROKEN
    failed = job.state is JobState.KILLED or (job.state is JobState.EXITED and job.exit_code != 0)
    return Outcome.FAILED if failed else Outcome.OK


def ran_message(ran: Ran, *, waited: float | None) -> str:
    """What became of a command and what to do next; `waited` seconds, None when it was only started."""
    job, session = ran.job, ran.session_id
    if job.state is JobState.LOST:
        return (
            f"Outcome unknown: the node lost job {job.id} of session {session}. See what it left before you repeat it."
        )
    if job.state is not JobState.RUNNING:
        took = f" after {seconds_words(job.duration_s)}" if job.duration_s is not None else ""
        hint = f" ({_CODES[job.exit_code]})" if job.exit_code in _CODES else ""
        how = f"Exit code {job.exit_code}{hint}" if job.state is JobState.EXITED else f"Killed{hint}"
        empty = "" if ran.output.total_bytes and (ran.output.head or ran.output.tail) else " No output."
        return f"{how}{took}, session {session}, job {job.id}.{empty}"
    follow = (
        f'read on with get_session_output(session_id="{session}", since_offset={ran.output.next_offset}), '
        f'wait with sleep(seconds=..., until_session_idle="{session}"), '
        f'or end it with kill_session_processes(session_id="{session}").'
    )
    if ran.waiting_for_input:
        return (
            f"Still running and waiting for input in session {session} (job {job.id}): answer it with "
            f'input_in_session(session_id="{session}", input_text=...), or {follow}'
        )
    if waited is None:
        return f"Started in session {session} as job {job.id}; it keeps running: {follow}"
    return f"Still running after {waited:g} s in session {session} as job {job.id}. It was not stopped: {follow}"


def shell_words(ran: Ran) -> str:
    """What a command has to know about its shell, to be put behind what became of it; mostly nothing."""
    words = ""
    if ran.shell_replaced:
        where = "" if ran.shell_ended else f" in {ran.shell_cwd}"
        words += f" The shell had ended before; the command got a new one{where}: variables and functions are gone."
    if ran.shell_ended:
        words += (
            f" The shell ended; the next command starts a new one in {ran.shell_cwd}; variables and functions are gone."
        )
    return words


def numbers(values: Sequence[int], limit: int = 20) -> str:
    """Numbers in a row, the first `limit` of them."""
    more = f" and {len(values) - limit} more" if len(values) > limit else ""
    return ", ".join(str(value) for value in values[:limit]) + more


def counted(count: int, one: str, many: str = "") -> str:
    """`1 session`, `2 sessions`; `many` where an s isn't enough."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
