"""Everything that acts, sent twice, acts once; every way of chatting ends a wait on the wall clock."""

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from gymnode.transport.base import NodeLink
from tests.node.machines import NodeRun

MAIN: dict[str, Any] = {"session_id": "main"}
ACTING: dict[str, dict[str, Any]] = {
    "session.create": {"session_id": "other", "cwd": None, "cols": 80, "rows": 24},
    "session.run": {**MAIN, "command": "echo x >> effect; wc -l < effect", "wait": True, "timeout_s": 10},
    "session.input": {"session_id": "asks", "text": "x", "press_enter": True},
    "session.clear": MAIN,
    "file.write": {"path": "made", "data": base64.b64encode(b"x").decode()},
    "session.kill": {"session_id": "busy", "force": True},
    "session.close": {"session_id": "other"},
    "session.close_all": {},
}
CHATS = ["while :; do echo chat; sleep 0.02; done", "yes", "yes >&2", "while :; do printf .; sleep 0.02; done"]
CHATS += ["(while :; do echo child; sleep 0.02; done) & wait", "while :; do printf '\\r%s' $SECONDS; done", "sleep 60"]


@pytest.fixture
def run(local_node: NodeLink) -> Iterator[NodeRun]:
    """A run without SSH: what is looked at here lies behind it."""
    opened = NodeRun(local_node)
    yield opened
    opened.close()


def test_everything_that_acts_acts_once_when_it_is_sent_twice(run: NodeRun) -> None:
    """N7: the reply was lost; the second sending gets the first one's answer, whatever became of the first."""
    for session, command in (("asks", 'while read -r line; do echo "$line" >> heard; done'), ("busy", "sleep 60")):
        run.op("session.create", session_id=session)
        run.sh(command, session=session, wait=False)
    for number, (op, args) in enumerate(ACTING.items()):
        first = run.send(op, args, action=f"again.{number}.0")
        again = run.send(op, args, action=f"again.{number}.0", resend=True)
        assert (first.status, again.body) == (200, first.body), op
        assert "code" not in first.body, op
    assert run.sh("cat effect heard; ls")["text"].split() == ["x", "x", "effect", "heard", "made"]


def test_whatever_a_command_says_the_wait_ends_on_the_wall_clock(run: NodeRun) -> None:
    """N3: also on standard error, without line ends, by a child, over its own line, and not at all."""
    for number, chat in enumerate(CHATS):
        run.op("session.create", session_id=f"s{number}")
        ran = run.sh(chat, session=f"s{number}", timeout_s=0.4)
        assert (ran["timed_out"], ran["job"]["state"]) == (True, "running"), chat
        run.op("session.close", session_id=f"s{number}")
