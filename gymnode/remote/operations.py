"""Room: gymnode.remote. POST .../ops: the journal around every operation, and who carries it out."""

from __future__ import annotations

import base64
import contextlib
import errno
import json
from typing import Any, Callable, Dict

from gymnode.remote.machine import Machine, ancestors_of
from gymnode.remote.masking import Masker
from gymnode.remote.refusals import Refusal
from gymnode.remote.runs import Run
from gymnode.remote.session_ops import SessionOps

# Answers that only repeat what can be read again aren't kept when they are large.
READING = frozenset({"file.read", "file.lines", "file.list", "file.search", "file.find", "node.status"})
READING |= {"session.read", "session.recent", "session.list", "session.status", "session.idle"}
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
MAX_KEPT = 256 * 1024

Body = Dict[str, Any]
Answer = Callable[[int, Body], None]


class Operations:
    """Carries operations out, each action id at most once."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def serve(self, run: Run, body: Body, answer: Answer) -> None:
        """Answer from the journal, wait for the action under way, or begin it. Raises Refusal before anything began."""
        op, args = str(body["op"]), dict(body.get("args") or {})
        action = str(body["action_id"])
        key = f"{action}|{op}"
        stored = run.journal.stored(key)
        if stored is not None:
            answer(stored["status"], stored["body"])
            return
        if run.journal.listen(key, lambda entry: answer(entry["status"], entry["body"])):
            return
        if run.journal.is_unknown(key) and op not in READING:
            raise Refusal(
                "outcome_unknown", f"gymd was restarted while {action} ran: whether it was done can't be told"
            )
        if body.get("resend") and op not in READING and not run.journal.covers(key):
            raise Refusal("outcome_unknown", f"this node has no memory of {action}: whether it was done can't be told")
        self._begin(run, key, op, args, answer)

    def _begin(self, run: Run, key: str, op: str, args: Body, answer: Answer) -> None:
        action = key.split("|", 1)[0]
        if op in READING:
            self._carry(run, action, op, args, lambda status, body: self._read_done(run, key, status, body, answer))
            return
        run.journal.begin(key)

        def done(status: int, body: Body) -> None:
            run.journal.finish(key, {"status": status, "body": body})
            answer(status, body)

        self._carry(run, action, op, args, done)

    def _read_done(self, run: Run, key: str, status: int, body: Body, answer: Answer) -> None:
        if len(json.dumps(body)) <= MAX_KEPT:
            with contextlib.suppress(OSError):  # on a full disk it is read again
                run.journal.begin(key)
                run.journal.finish(key, {"status": status, "body": body})
        answer(status, body)

    def _carry(self, run: Run, action: str, op: str, args: Body, answer: Answer) -> None:
        def done(result: Body) -> None:
            answer(200, {"result": result})

        def failed(refusal: Refusal) -> None:
            answer(refusal.status, {"code": refusal.code, "message": refusal.message})

        try:
            self._dispatch(run, action, op, args, done, failed)
        except Refusal as refusal:
            failed(refusal)
        except (KeyError, TypeError, ValueError) as error:
            failed(Refusal("bad_request", f"{op}: {type(error).__name__}: {error}"))
        except OSError as error:
            failed(Refusal("storage_full" if error.errno in FULL else "broken", f"{op}: {error}"))

    def _dispatch(
        self,
        run: Run,
        action: str,
        op: str,
        args: Body,
        done: Callable[[Body], None],
        failed: Callable[[Refusal], None],
    ) -> None:
        if op == "node.status":
            self._machine.status(lambda pid: _owner(run, pid), done)
        elif op == "file.write" and run.full:
            raise Refusal("storage_full", f"{run.full}: delete files first")
        elif op.startswith("file."):
            run.keeper_get().file_op(op, args, lambda result: done(_masked(run, op, result)), failed)
        else:
            handler = SessionOps(run, lambda session: self._gpus_of(run, session)).calls.get(op)
            if handler is None:
                raise Refusal("bad_request", f"gymd knows no operation {op}")
            run.keeper_get()
            handler(action, args, done, failed)

    def _gpus_of(self, run: Run, session: str) -> list[int]:
        found = {index for index, pid in self._machine.holders() if _owner(run, pid) == (run.facts.name, session)}
        return sorted(found)


def _owner(run: Run, pid: int) -> tuple[str, str] | None:
    chain = ancestors_of(pid)
    for session in run.sessions.values():
        if session.pid in chain:
            return run.facts.name, session.name
    return None


def _masked(run: Run, op: str, result: Body) -> Body:
    """Secrets in what a file operation shows are masked; a mask keeps its length, so offsets and columns hold."""
    if not run.forms:
        return result
    masker = Masker(run.forms)
    if op in ("file.read", "file.lines"):
        data = base64.b64decode(result["data"])
        hidden = masker.whole(data)
        return {**result, "data": base64.b64encode(hidden).decode(), "masked": hidden != data}
    if op == "file.search":
        hits = [
            {**hit, "text": masker.whole(hit["text"].encode()).decode("utf-8", "replace")} for hit in result["hits"]
        ]
        return {**result, "hits": hits}
    return result
