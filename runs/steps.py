"""Room: runs. Events of a run grouped into steps as a page shows them. Pure: event bodies in, frozen values out.

A step is one reply of the model and what came of it. Bodies may be cut, or written by a newer release: whatever is
missing is left out, nothing raises. Texts stay hostile: templates escape them, terminal text goes through `ansi_html`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from portal.core.formats import clock_text
from runs.agent.parsing import json_read

MOST_CHARS = 6_000  # of one observation on the page; the whole is a click away
MOST_THOUGHT = 20_000
SHORT = 160  # characters of an argument that still stands on the action's own line
_IN_STEP = {"replied", "action_sent", "observed", "evaluation_scored", "hint_revealed"}
_MAIN = ("command", "path", "file_path", "pattern", "term", "text", "thought", "query", "url")
_FILLED = ("exit_code", "duration_s", "session_id", "total_bytes")


class Row(Protocol):
    """What a stored event offers."""

    @property
    def seq(self) -> int: ...
    @property
    def step(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def at(self) -> datetime: ...
    @property
    def body(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True)
class Shown:
    """An event as readers may see it."""

    seq: int
    step: int
    kind: str
    at: datetime
    body: Mapping[str, Any]


@dataclass(frozen=True)
class Argument:
    """One argument of a call, as text."""

    key: str
    text: str


@dataclass(frozen=True)
class Cut:
    """A text for the page: its head and tail, and how much stands between."""

    head: str
    tail: str = ""
    omitted: int = 0


@dataclass(frozen=True)
class ScoreView:
    """An evaluation as it came back. `score` is empty where none is told."""

    ordinal: int
    by: str
    valid: bool
    score: str
    metrics: tuple[Argument, ...]
    message: str
    left: int


@dataclass(frozen=True)
class CallView:
    """One action and its observation; `outcome` is empty while it is carried out."""

    name: str
    lane: str
    main: str
    arguments: tuple[Argument, ...]
    blocks: tuple[Argument, ...]
    outcome: str
    message: str
    facts: tuple[Argument, ...]
    output: Cut | None
    diff: tuple[Argument, ...]
    hidden: bool = False


@dataclass(frozen=True)
class StepView:
    """One step. `lane` is that of its first call; `bad` if any observation is not ok."""

    number: int
    seq: int
    at: datetime
    clock: str
    thought: Cut
    reasoning: Cut
    calls: tuple[CallView, ...]
    scores: tuple[ScoreView, ...]
    tokens_in: int
    tokens_cached: int
    tokens_out: int
    usd: str | None
    priced: bool
    lane: str
    bad: bool


@dataclass(frozen=True)
class NoteView:
    """Something that happened beside the steps."""

    seq: int
    at: datetime
    clock: str
    kind: str
    body: Mapping[str, Any]


def lane_of(name: str, lanes: Mapping[str, str]) -> str:
    """The lane of an action; a name that is none is a `null` mark."""
    return lanes.get(name, "null")


def cut(text: object, limit: int = MOST_CHARS) -> Cut:
    """Head and tail of a text that is too long for the page."""
    whole = text if isinstance(text, str) else ""
    if len(whole) <= limit:
        return Cut(whole)
    half = limit // 2
    return Cut(whole[:half], whole[-half:], len(whole) - 2 * half)


def value_text(value: object) -> str:
    """An argument or metric as one text."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return f"{value:.6g}"
    return json.dumps(value, ensure_ascii=False, default=str)


def step_views(
    rows: Iterable[Row], *, lanes: Mapping[str, str], started_at: datetime | None
) -> tuple[StepView | NoteView, ...]:
    """Everything the rows hold, in order of the event that began it. Rows are whole steps, ordered by seq."""
    grouped: dict[int, list[Row]] = {}
    out: list[StepView | NoteView] = []
    for row in rows:
        if row.kind in _IN_STEP and row.step > 0:
            grouped.setdefault(row.step, []).append(row)
        else:
            out.append(NoteView(row.seq, row.at, _clock(row.at, started_at), row.kind, row.body))
    out += [_step(number, items, lanes, started_at) for number, items in grouped.items()]
    return tuple(sorted(out, key=lambda view: view.seq))


def _clock(at: datetime, started_at: datetime | None) -> str:
    return clock_text((at - started_at).total_seconds() if started_at else 0)


def _step(number: int, rows: Sequence[Row], lanes: Mapping[str, str], started_at: datetime | None) -> StepView:
    reply = next((row.body for row in rows if row.kind == "replied"), {})
    sent = {str(row.body.get("call_id")): row.body for row in rows if row.kind == "action_sent"}
    seen = {str(row.body.get("call_id")): row.body for row in rows if row.kind == "observed"}
    asked = {str(call.get("id")): call for call in _dicts(reply.get("calls"))}
    calls = tuple(
        _call(asked.get(key, {}), sent.get(key, {}), seen.get(key), lanes) for key in {**asked, **sent, **seen}
    )
    usage = reply.get("usage") if isinstance(reply.get("usage"), dict) else {}
    usd = reply.get("usd")
    return StepView(
        number=number,
        seq=rows[0].seq,
        at=rows[0].at,
        clock=_clock(rows[0].at, started_at),
        thought=cut(reply.get("text"), MOST_THOUGHT),
        reasoning=cut(reply.get("reasoning"), MOST_THOUGHT),
        calls=calls,
        scores=tuple(_score(row.body) for row in rows if row.kind == "evaluation_scored"),
        tokens_in=_whole(usage, "input"),
        tokens_cached=_whole(usage, "cached"),
        tokens_out=_whole(usage, "output"),
        usd=str(usd) if usd is not None else None,
        priced=usd is not None,
        lane=calls[0].lane if calls else "null",
        bad=any(call.outcome not in ("", "ok") for call in calls),
    )


def _dicts(value: object) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list | tuple) else []


def _whole(usage: object, key: str) -> int:
    value = usage.get(key) if isinstance(usage, dict) else 0
    return value if isinstance(value, int) else 0


def _call(
    asked: Mapping[str, Any], sent: Mapping[str, Any], seen: Mapping[str, Any] | None, lanes: Mapping[str, str]
) -> CallView:
    name = str(sent.get("name") or asked.get("name") or (seen or {}).get("name") or "null")
    arguments = _arguments(sent.get("arguments") or asked.get("arguments"))
    main_key = next((key for key in _MAIN if key in arguments and len(arguments[key]) <= 4 * SHORT), "")
    observation = (seen or {}).get("observation")
    observation = observation if isinstance(observation, dict) else {}
    hidden = name == "view_hint"
    rest = {key: text for key, text in arguments.items() if key != main_key}
    malformed = bool(seen) and (seen or {}).get("action_id") is None
    return CallView(
        name=name,
        lane="null" if malformed else lane_of(name, lanes),
        main=arguments.get(main_key, ""),
        arguments=tuple(Argument(k, v) for k, v in rest.items() if len(v) <= SHORT and "\n" not in v),
        blocks=tuple(Argument(k, v[:MOST_CHARS]) for k, v in rest.items() if len(v) > SHORT or "\n" in v),
        outcome=str((seen or {}).get("outcome", "")),
        message="" if hidden else str((seen or {}).get("message", ""))[:MOST_CHARS],
        facts=_facts(observation),
        output=None if hidden or not seen else _output(seen),
        diff=_diff(observation.get("diff")),
        hidden=hidden,
    )


def _arguments(value: object) -> dict[str, str]:
    if isinstance(value, str):
        try:
            value = json_read(value)
        except ValueError:
            return {"arguments": str(value)}
    if not isinstance(value, dict):
        return {"arguments": value_text(value)} if value else {}
    return {str(key): value_text(item) for key, item in value.items() if item is not None}


def _facts(observation: Mapping[str, Any]) -> tuple[Argument, ...]:
    job = observation.get("job") if isinstance(observation.get("job"), dict) else {}
    merged = {**observation, **(job or {})}
    return tuple(Argument(key, value_text(merged[key])) for key in _FILLED if merged.get(key) not in (None, "", 0.0))


def _output(seen: Mapping[str, Any]) -> Cut | None:
    text = str(seen.get("text") or "")
    message = str(seen.get("message") or "")
    body = text[len(message) :].lstrip("\n") if message and text.startswith(message) else text
    return cut(body) if body.strip() else None


def _diff(value: object) -> tuple[Argument, ...]:
    if not isinstance(value, str) or not value:
        return ()
    kinds = {"+": "a", "-": "d", "@": "h"}
    return tuple(Argument(kinds.get(line[:1], ""), line) for line in value[:MOST_CHARS].splitlines()[:200])


def _score(body: Mapping[str, Any]) -> ScoreView:
    metrics = body.get("metrics")
    return ScoreView(
        ordinal=_whole(body, "ordinal"),
        by=str(body.get("by", "agent")),
        valid=bool(body.get("valid", True)),
        score=str(body.get("score") or ""),
        metrics=tuple(Argument(str(k), value_text(v)) for k, v in metrics.items()) if isinstance(metrics, dict) else (),
        message=str(body.get("message") or "")[:MOST_CHARS],
        left=_whole(body, "left"),
    )
