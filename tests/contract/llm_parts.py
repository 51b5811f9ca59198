"""Requests that the tests of language models share, and the playbook they play."""

from runs.agent.events import Call, ToolOffer
from runs.agent.protocols import ChatMessage, ModelRequest, Role

STEPS = """
  - say: "I look. \\"quoted\\" — ünïcode 😀"
    calls: [{run_command: {command: "ls — 😀"}}, {list_sessions: {}}]
  - say: only words
  - fault: {status: 429, retry_after: 2, times: 2}
    say: limited
    call: {run_command: {command: pwd}}
  - fault: {cut: true}
    say: a reply that is cut in the middle of its stream, once
    call: {run_command: {command: pwd}}
  - fault: {status: 503, retry_after: 1}
    say: down
    call: {list_sessions: {}}
  - fault: {empty: true}
    say: empty once
    call: {list_sessions: {}}
  - say: broken
    call: {run_command: '{"command": '}
  - say: done
    call: {finish: {summary: done}}
"""
TOOLS = (ToolOffer(name="run_command", description="Run.", parameters={"type": "object", "properties": {}}),)


def asked(*messages: ChatMessage, tools: tuple[ToolOffer, ...] = TOOLS, text: bool = False) -> ModelRequest:
    head = (
        ChatMessage(Role.SYSTEM, "You play."),
        ChatMessage(Role.USER, "Task: demo\n\nDo it.", volatile="[status] Left: 1"),
    )
    return ModelRequest((*head, *messages), tools=tools, text_tools=text)


def after(call_id: str, text: str = "[ok] fine") -> tuple[ChatMessage, ...]:
    call = Call(id=call_id, name="run_command", arguments="{}")
    return ChatMessage(Role.ASSISTANT, "x", (call,)), ChatMessage(Role.TOOL, text, call_id=call_id)


def mute(text: str) -> None:
    """No viewer."""
