"""Language models for tests of the loop: each answers from a list, and keeps what it was asked."""

from collections.abc import Callable, Iterable

from runs.agent.events import Call, Replied, Usage
from runs.agent.llm.playbook import Playbook, read_playbook
from runs.agent.llm.scripted import ScriptedModel, library_of
from runs.agent.protocols import ModelRequest


class ListedModel:
    """Answers with the given replies in order; an exception in the list is raised."""

    def __init__(self, replies: Iterable[Replied | Exception]) -> None:
        self.replies = list(replies)
        self.asked: list[ModelRequest] = []

    def complete(self, request: ModelRequest, on_delta: Callable[[str], None]) -> Replied:
        self.asked.append(request)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        on_delta(reply.text)
        return reply


def said(text: str = "I act.", *calls: tuple[str, str], tokens: int = 100) -> Replied:
    """A reply with calls given as (name, raw arguments)."""
    made = tuple(Call(id=f"c{n}", name=name, arguments=raw, index=n) for n, (name, raw) in enumerate(calls))
    return Replied(text=text, calls=made, model="m", usage=Usage(input=tokens, output=10), usd=None)


def book(text: str) -> Playbook:
    """A playbook of the task `demo` from its steps."""
    return read_playbook("task: demo\nsteps:\n" + text)


def scripted(text: str, client_id: str = "") -> ScriptedModel:
    """The scripted model that plays these steps as kind `reference`."""
    return ScriptedModel("reference", library_of({("demo", "reference"): book(text)}), client_id=client_id)
