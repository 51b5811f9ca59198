"""Room: runs.agent. A playbook: the script that the scripted model plays. Pure: text in, steps out.

The format is described in `scripted.py`. A playbook always ends: labels lead forward only and every repeat has a
bound, so the number of turns is known from the text. The place in it travels in the ids of the tool calls, never in
the model's memory.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from runs.agent.yaml_core import Document, SourceError, SourceErrors, dotted, read_document

_PLACE = re.compile(r"pb-(\d{1,6})(?:-(\d{1,6}))?(?:c(\d{1,3}))?")
_TEMPLATE = re.compile(r"\$\{\{\s*(\w+)\s*\}\}")
_BUILT_IN = {"text", "outcome"}
_COMPARISON = re.compile(r"(<=|>=|<|>|==|!=)\s*([-+]?\d+(?:\.\d+)?)")
MAX_REPEATS = 1000
MAX_STEPS = 5000


def _listed(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Texts = Annotated[tuple[str, ...], BeforeValidator(_listed)]


class Part(BaseModel):
    """Base of a playbook's parts: frozen, no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


@dataclass(frozen=True)
class LastSeen:
    """The last observation as the model read it: its outcome word and its text."""

    outcome: str = ""
    text: str = ""


class Condition(Part):
    """Holds when every part that is given holds."""

    outcome: Texts = ()
    contains: Texts = ()
    lacks: Texts = ()
    matches: str | None = None
    field: Mapping[str, str | int | float | bool] = Field(default_factory=dict)
    any: tuple["Condition", ...] = ()

    @model_validator(mode="after")
    def _readable(self) -> Self:
        if self.matches is not None:
            try:
                re.compile(self.matches)
            except re.error as error:
                raise ValueError(f"`matches` is not a regular expression: {error}") from error
        return self

    def holds(self, seen: LastSeen) -> bool:
        """Whether the last observation is as described."""
        return (
            (not self.outcome or seen.outcome in self.outcome)
            and all(text in seen.text for text in self.contains)
            and not any(text in seen.text for text in self.lacks)
            and (self.matches is None or re.search(self.matches, seen.text, re.MULTILINE) is not None)
            and all(_field_holds(name, wanted, seen.text) for name, wanted in self.field.items())
            and (not self.any or any(part.holds(seen) for part in self.any))
        )

    def names(self) -> set[str]:
        """The named groups of `matches`: what templates of the step may use."""
        return set(re.compile(self.matches).groupindex) if self.matches else set()

    def groups(self, seen: LastSeen) -> dict[str, str]:
        """What the named groups caught."""
        found = re.search(self.matches, seen.text, re.MULTILINE) if self.matches else None
        return {name: value or "" for name, value in found.groupdict().items()} if found else {}


class Repeat(Part):
    """Play the step again until its observation is as wanted; after `max` rounds go to `otherwise`."""

    until: Condition
    max: int = Field(ge=1, le=MAX_REPEATS)
    otherwise: str | None = Field(default=None, alias="else")


class Fault(Part):
    """What goes wrong at this step, `times` times for one conversation (null: always), before it is played."""

    status: int | None = Field(default=None, ge=400, le=599)
    code: str | None = None
    message: str | None = None
    retry_after: float | None = Field(default=None, ge=0)
    slow_s: float = Field(default=0, ge=0, le=600)
    cut: bool = False
    empty: bool = False
    times: int | None = Field(default=1, ge=1)


Calls = Mapping[str, Mapping[str, Any] | str | None]


class Step(Part):
    """One turn of the model."""

    label: str | None = None
    say: str = ""
    call: Calls | None = None
    calls: tuple[Calls, ...] = ()
    when: Condition | None = None
    otherwise: str | None = Field(default=None, alias="else")
    then: str | None = None
    repeat: Repeat | None = None
    fault: Fault | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.call is not None and self.calls:
            raise ValueError("`call` and `calls` exclude each other; put the single call into `calls`")
        for call in self.all_calls():
            if len(call) != 1:
                raise ValueError(
                    f"a call is a mapping of one action's name to its arguments, here are {len(call)} names"
                )
        if not self.say and not self.all_calls():
            raise ValueError("a step says something (`say`), calls something (`call`, `calls`), or both")
        if self.otherwise and self.when is None:
            raise ValueError("`else` needs a `when`")
        return self

    def all_calls(self) -> tuple[Calls, ...]:
        """The calls in order, however they were written."""
        return (self.call,) if self.call is not None else self.calls

    def templates(self) -> set[str]:
        """The names that stand as `${{ name }}` in the step."""
        return set(_TEMPLATE.findall(self.say)) | set(_TEMPLATE.findall(str([dict(call) for call in self.all_calls()])))


class Playbook(Part):
    """The whole script. `task` must be the task that the prompt names."""

    task: str
    note: str = ""
    steps: tuple[Step, ...]

    @field_validator("steps", mode="before")
    @classmethod
    def _some(cls, value: Any) -> Any:
        """Checked before the items: afterwards pydantic would report each bad item as a missing one too."""
        if isinstance(value, list) and not 1 <= len(value) <= MAX_STEPS:
            raise ValueError(f"a playbook has 1 to {MAX_STEPS} steps, here are {len(value)}")
        return value


@dataclass(frozen=True)
class Position:
    """The place in a playbook: index of the step, round of its repeat. `step == len(steps)` is the end."""

    step: int
    round: int = 0

    def call_id(self, call: int = 0) -> str:
        """`pb-7`; the third round of a repeat `pb-7-2`; the second call of a step `pb-7c1`."""
        return f"pb-{self.step}" + (f"-{self.round}" if self.round else "") + (f"c{call}" if call else "")


def parse_position(call_id: str) -> Position | None:
    """The place that an id names, or None for the id of another model."""
    found = _PLACE.fullmatch(call_id)
    return Position(int(found[1]), int(found[2] or 0)) if found else None


def read_playbook(text: str) -> Playbook:
    """Parse and check. Raises `SourceErrors` with all faults, each with its line."""
    document = read_document(text)
    try:
        book = Playbook.model_validate(document.value)
    except ValidationError as error:
        raise SourceErrors([_located(document, fault) for fault in error.errors()]) from error
    faults = _label_faults(document, book)
    if faults:
        raise SourceErrors(faults)
    return book


def _located(document: Document, fault: Any) -> SourceError:
    place, known = document.place(fault["loc"])
    return SourceError(place.line, place.column, dotted(known), f"{dotted(fault['loc'])}: {fault['msg']}")


def _label_faults(document: Document, book: Playbook) -> list[SourceError]:
    labels: dict[str, int] = {}
    faults: list[SourceError] = []

    def fault(index: int, message: str) -> None:
        place, known = document.place(("steps", index))
        faults.append(SourceError(place.line, place.column, dotted(known), message))

    for index, step in enumerate(book.steps):
        if step.label is not None and labels.setdefault(step.label, index) != index:
            fault(index, f"the label `{step.label}` stands twice; labels are unique")
    for index, step in enumerate(book.steps):
        for target in (step.otherwise, step.then, step.repeat.otherwise if step.repeat else None):
            if target is not None and labels.get(target, -1) <= index:
                fault(
                    index,
                    f"`{target}` is no label of a later step; labels lead forward only, so that a playbook always ends",
                )
        known_names = (
            _BUILT_IN
            | (step.when.names() if step.when else set())
            | (step.repeat.until.names() if step.repeat else set())
        )
        for name in sorted(step.templates() - known_names):
            fault(
                index, f"`${{{{ {name} }}}}` has no value here; name a group of this step's `matches`: (?P<{name}>...)"
            )
    return faults


def next_position(book: Playbook, last: Position | None, seen: LastSeen) -> Position:
    """Where the play goes on, given the place of the last turn and what came of it."""
    index = 0
    if last is not None:
        if last.step >= len(book.steps):
            return Position(len(book.steps))
        step = book.steps[last.step]
        if step.repeat is not None and not step.repeat.until.holds(seen):
            if last.round + 1 < step.repeat.max:
                return Position(last.step, last.round + 1)
            index = _target(book, step.repeat.otherwise, last.step)
        else:
            index = _target(book, step.then, last.step)
    while index < len(book.steps):
        step = book.steps[index]
        if step.when is None or step.when.holds(seen):
            break
        index = _target(book, step.otherwise, index)
    return Position(index)


def _target(book: Playbook, label: str | None, index: int) -> int:
    if label is None:
        return index + 1
    return next(number for number, step in enumerate(book.steps) if step.label == label)


def filled(value: Any, step: Step, seen: LastSeen) -> Any:
    """`value` with its templates filled from the last observation; other `${{ }}` stay as they are."""
    values = {"text": seen.text, "outcome": seen.outcome}
    values |= step.when.groups(seen) if step.when else {}
    values |= step.repeat.until.groups(seen) if step.repeat else {}
    return _fill(value, values)


def _fill(value: Any, values: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return _TEMPLATE.sub(lambda found: values.get(found[1], ""), value)
    if isinstance(value, Mapping):
        return {key: _fill(item, values) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_fill(item, values) for item in value]
    return value


def _field_holds(name: str, wanted: str | int | float | bool, text: str) -> bool:
    """`name: value`, `name = value` or `"name": value` in the text; `wanted` is a value or a comparison such as `">=
    10"`.
    """
    spaced = re.escape(name).replace("_", "[_ ]")
    found = re.search(rf"(?<![\w.])[\"']?{spaced}[\"']?\s*[:=]\s*[\"']?([^\s\"',;}}]+)", text, re.IGNORECASE)
    if found is None:
        return False
    value = found[1].rstrip(".")
    comparison = _COMPARISON.fullmatch(wanted.strip()) if isinstance(wanted, str) else None
    number = _number(value)
    if comparison is not None:
        return number is not None and _compare(number, comparison[1], float(comparison[2]))
    if isinstance(wanted, bool):
        return value.lower() == str(wanted).lower()
    if isinstance(wanted, int | float):
        return number is not None and number == float(wanted)
    return value == wanted


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _compare(value: float, operator: str, bound: float) -> bool:
    match operator:
        case "<=":
            return value <= bound
        case ">=":
            return value >= bound
        case "<":
            return value < bound
        case ">":
            return value > bound
        case "==":
            return value == bound
        case _:
            return value != bound
