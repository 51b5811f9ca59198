"""Room: runs. The form in which an event leaves the site: pages, sockets, API and exports use this one. Pure.

Hint texts stay out of it: traces of public runs are read by people (and agents) who have yet to solve the task. A long
body goes out as its row holds it, with its long texts cut; the whole is on the page of its step.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from runs.agent.events import Kind

PERSON = "person"  # the row of who did it, by which a name is found again
HIDDEN = "(the hint's text is not shown)"
# Where runs.agent.prompt puts a hint that is given upfront: the last section of the first prompt.
HINT_HEADING = "## Hint\n"
_SPOKEN = ("text", "message", "observation", "output")


class StoredEvent(Protocol):
    """What a stored event shows."""

    @property
    def seq(self) -> int: ...
    @property
    def at(self) -> datetime: ...
    @property
    def kind(self) -> str: ...
    @property
    def body(self) -> Mapping[str, Any]: ...
    @property
    def blob(self) -> str: ...


def event_shape(event: StoredEvent) -> dict[str, Any]:
    """One event as JSON values: seq, time, kind, body."""
    body = shown_body(event.kind, event.body, cut=bool(event.blob))
    return {"seq": event.seq, "at": event.at, "kind": event.kind, "body": body}


def shown_body(kind: str, body: Mapping[str, Any], *, cut: bool = False) -> Mapping[str, Any]:
    """`body` without what readers may not see. `cut`: its long texts were shortened."""
    if kind == Kind.HINT_REVEALED:
        return {**body, "text": HIDDEN}
    if kind == Kind.OBSERVED and body.get("name") == "view_hint":
        return {**body, **{name: HIDDEN for name in _SPOKEN if name in body}}
    if kind == Kind.TASK_GIVEN and isinstance(body.get("task"), str):
        return {**body, "task": _without_hint(body["task"], cut=cut)}
    return {name: value for name, value in body.items() if name != PERSON}


def _without_hint(text: str, *, cut: bool) -> str:
    """Up to the hint, and nothing after it: a hint may hold headings of its own. Of a shortened text the heading may
    be gone while the hint's end is still there.
    """
    if cut:
        return ""
    before, heading, _hint = text.partition(HINT_HEADING)
    return f"{before}{heading}{HIDDEN}" if heading else text
