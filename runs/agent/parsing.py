"""Room: runs.agent. From what a model wrote to calls. Pure; never raises: what can't be read becomes a call that is
refused in words.
"""

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gymnode.rendering import storable
from runs.agent.events import Call

_ACTION = re.compile(r"^[ \t]*\**Action\**[ \t]*:[ \t]*\**[ \t]*(.*)$", re.MULTILINE)
_INPUT = re.compile(r"^[ \t]*\**Action[ _]Input\**[ \t]*:[ \t]*\**", re.MULTILINE)
_OBSERVATION = re.compile(r"^[ \t]*\**Observation\**[ \t]*:", re.MULTILINE)
_FENCE = re.compile(r"\A```\w*\s*\n(.*?)\n?[ \t]*```", re.DOTALL)
_ID = re.compile(r"[A-Za-z0-9_.:-]{1,120}")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_BRACKET = re.compile(r"[\[\]{}]")
MAX_ARGUMENT_CHARS = 2_000_000
MAX_DEPTH = 100
MAX_CALLS = 64


@dataclass(frozen=True)
class RawCall:
    """A native tool call as the provider sent it."""

    id: str
    name: str
    arguments: str


def native_calls(raw: Iterable[RawCall], reply_id: str) -> tuple[Call, ...]:
    """Calls with ids that are present, safe and unique within the reply. An id that isn't is replaced by one made of
    the reply's id. Of more than `MAX_CALLS` calls the one behind these is refused, those behind it are left out.
    """
    calls: list[Call] = []
    seen: set[str] = set()
    given_calls = list(raw)
    for index, call in enumerate(given_calls[: MAX_CALLS + 1]):
        call_id = call.id
        if not _ID.fullmatch(call_id) or call_id in seen:
            call_id = (
                "call_" + hashlib.sha256(f"{reply_id}\0{call.id}\0{index}".encode(errors="replace")).hexdigest()[:20]
            )
        seen.add(call_id)
        given = str(storable(call.arguments[:MAX_ARGUMENT_CHARS]))
        arguments = given if given.strip() else "{}"
        name = str(storable(call.name)).strip()[:200]
        refused = _too_many(len(given_calls)) if index == MAX_CALLS else ""
        calls.append(Call(id=call_id, name=name, arguments=arguments, index=index, refused=refused))
    return tuple(calls)


def _too_many(count: int) -> str:
    return (
        f"A reply may hold {MAX_CALLS} calls, this one held {count}: those before were carried out, the rest was not."
    )


def own_text(text: str) -> str:
    """A reply in text mode without the observations that the model made up, and what it made of them."""
    made_up = _OBSERVATION.search(text)
    return text[: made_up.start()].rstrip() if made_up else text


def text_calls(text: str, reply_id: str) -> tuple[Call, ...]:
    """Calls of a reply in text mode: `Action:` and `Action Input:`, any number of times."""
    own = own_text(text)
    actions = list(_ACTION.finditer(own))
    ends = [action.start() for action in actions[1:]] + [len(own)] * bool(actions)
    raw = [
        RawCall("", action[1].strip(" \t\r`*\"'()"), _input(own[action.end() : end]))
        for action, end in zip(actions, ends, strict=True)
    ]
    return native_calls(raw, reply_id)


def _input(text: str) -> str:
    """The JSON behind `Action Input:`. Prose behind it is dropped; a second value is kept, so that the call is
    refused as it must be.
    """
    begin = _INPUT.search(text)
    if begin is None:
        return "{}"
    rest = text[begin.end() :].strip()
    fenced = _FENCE.match(rest)
    if fenced is not None:
        return fenced[1].strip()
    try:
        _, end = json.JSONDecoder().raw_decode(rest)
    except (ValueError, RecursionError):
        return rest
    return rest if rest[end:].lstrip()[:1] in set('{["}]') else rest[:end]


def json_read(text: str) -> Any:
    """The strict JSON value in a stranger's text, storable and of bounded depth. Raises ValueError for anything else:
    NaN and numbers without an end, halves of surrogate pairs, more than `MAX_DEPTH` brackets within each other.
    """
    try:
        value = json.loads(text)
        written = json.dumps(value, allow_nan=False)
        kept = storable(value) if "\\u" in written else value
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if kept != value or (written.count("[") + written.count("{") > MAX_DEPTH and _depth(written) > MAX_DEPTH):
        raise ValueError("nothing that can be stored")
    return value


def _depth(written: str) -> int:
    """How many brackets of a JSON text stand within each other at the most."""
    depth = most = 0
    for bracket in _BRACKET.findall(_STRING.sub("", written)):
        depth += 1 if bracket in "[{" else -1
        most = max(most, depth)
    return most


def wire_arguments(call: Call) -> str:
    """The arguments for the provider: always one JSON object, since providers refuse a history that holds anything
    else.
    """
    try:
        value = json_read(call.arguments)
    except ValueError:
        value = None
    return call.arguments if isinstance(value, dict) else json.dumps({"not_json": call.arguments}, ensure_ascii=False)


def wire_name(name: str) -> str:
    """A tool's name that every provider accepts back."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "unknown"
