"""Room: runs.agent. Reads YAML 1.2 (core schema) or JSON, and keeps the place of every value. Imports only PyYAML's
event parser.

Why not `yaml.safe_load`: it reads YAML 1.1, where `off` and `no` are booleans, `1:30` is 90 and `012` is 10; it lets
a second key win silently; it expands aliases (a few lines become gigabytes); and it forgets where a value stood. Here
only `true` and `false` are booleans, duplicate keys, aliases and tags are refused, nesting and size are bounded, and
all faults come in one list.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

Path = tuple[str | int, ...]
MAX_CHARS = 1_000_000
MAX_DEPTH = 40

_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_NULLS = {"", "~", "null", "Null", "NULL"}
_INT = re.compile(r"[-+]?[0-9]+")
_OCT = re.compile(r"0o[0-7]+")
_HEX = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_CORE_TAGS = {"tag:yaml.org,2002:" + name for name in ("str", "map", "seq")}
_MAX_DIGITS = 60
_TOO_LARGE = "not valid YAML: a number here is too large; escapes end at \\U0010FFFF, and the version is %YAML 1.2"


@dataclass(frozen=True)
class SourceError:
    """One fault: 1-based line and column, the dotted path of the value, and a sentence."""

    line: int
    column: int
    path: str
    message: str


class SourceErrors(ValueError):
    """All faults found in a text, in the order of their lines."""

    def __init__(self, errors: Sequence[SourceError]) -> None:
        self.errors = tuple(sorted(errors, key=lambda e: (e.line, e.column)))
        super().__init__("\n".join(f"line {e.line}, column {e.column}: {e.message}" for e in self.errors))


@dataclass(frozen=True)
class Place:
    """Where something begins, 1-based."""

    line: int
    column: int


@dataclass(frozen=True)
class Document:
    """The value, and the place of each value by its path (of a mapping's entry: the place of its key)."""

    value: Any
    places: Mapping[Path, Place]

    def place(self, path: Sequence[str | int]) -> tuple[Place, Path]:
        """The place of the deepest known part of `path`; parts that aren't in the text (pydantic's union tags) are
        left out.
        """
        known: Path = ()
        for part in path:
            if (*known, part) in self.places:
                known = (*known, part)
        return self.places.get(known, Place(1, 1)), known


def dotted(path: Sequence[str | int]) -> str:
    """`("tools", 0)` as `tools[0]`, for messages."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def read_document(text: str) -> Document:
    """Parse one document. Raises `SourceErrors` with every fault that can be told at once."""
    if len(text) > MAX_CHARS:
        raise SourceErrors(
            [SourceError(1, 1, "", f"the text has {len(text)} characters; at most {MAX_CHARS} are read")]
        )
    text = text.removeprefix("\ufeff")
    reader = _Reader()
    try:
        reader.read(_json_as_yaml(text))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        reader.errors.append(SourceError(line, column, "", f"not valid YAML: {error.problem or error.context}"))
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        column = error.position - before.rfind("\n")
        message = f"the character U+{_code(error.character):04X} may not stand in YAML; remove it or escape it"
        reader.errors.append(SourceError(before.count("\n") + 1, column, "", message))
    if reader.errors:
        raise SourceErrors(reader.errors)
    return Document(reader.root, reader.places)


def _code(character: object) -> int:
    return character if isinstance(character, int) else ord(str(character)[:1] or "\0")


def _json_as_yaml(text: str) -> str:
    """JSON is YAML but for tabs between its tokens, which only a text that is valid JSON may lose safely."""
    if text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text.replace("\t", " ")


@dataclass
class _Open:
    """A collection under construction. `key` is the mapping key that waits for its value."""

    path: Path
    value: Any
    key: str | None = None


@dataclass
class _Reader:
    """Builds values from the parser's events with a stack of its own: depth is bounded before it can hurt."""

    root: Any = None
    places: dict[Path, Place] = field(default_factory=dict)
    errors: list[SourceError] = field(default_factory=list)
    stack: list[_Open] = field(default_factory=list)
    documents: int = 0

    def read(self, text: str) -> None:
        """PyYAML makes characters and numbers of escapes and versions without looking at their size."""
        parser: Any = yaml.SafeLoader(text)
        while True:
            try:
                event = parser.get_event()
            except (ValueError, OverflowError):
                place = parser.get_mark()
                self.errors.append(SourceError(place.line + 1, place.column + 1, "", _TOO_LARGE))
                return
            if event is None:
                return
            self.take(event)

    def take(self, event: Any) -> None:
        match event:
            case yaml.DocumentStartEvent():
                self.documents += 1
                if self.documents == 2:
                    self._fault(
                        event,
                        "a second document begins here; one document is read, so remove this line and what follows",
                    )
            case yaml.AliasEvent():
                self._fault(event, f"aliases are refused; write the value of *{event.anchor} out")
                self._put(event, None)
            case yaml.ScalarEvent():
                self._scalar(event)
            case yaml.MappingStartEvent():
                self._open(event, {})
            case yaml.SequenceStartEvent():
                self._open(event, [])
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self.stack.pop()
            case _:
                pass

    def _scalar(self, event: Any) -> None:
        top = self.stack[-1] if self.stack else None
        if top is not None and isinstance(top.value, dict) and top.key is None:
            self._key(event, top)
            return
        value: Any = _joined(event.value)
        if event.tag not in (None, "!"):
            self._tag(event)
        elif event.implicit[0] and event.style is None and event.tag is None:
            value = self._plain(event)
        self._put(event, value)

    def _key(self, event: Any, top: _Open) -> None:
        key = _joined(event.value)
        if key in top.value:
            first = self.places[(*top.path, key)].line
            self._fault(
                event, f"the key `{key}` stands twice (first on line {first}); keep one of them", (*top.path, key)
            )
        else:
            self.places[(*top.path, key)] = Place(event.start_mark.line + 1, event.start_mark.column + 1)
        top.key = key

    def _plain(self, event: Any) -> Any:
        text: str = event.value
        if len(text) > _MAX_DIGITS and (_INT.fullmatch(text) or _HEX.fullmatch(text) or _OCT.fullmatch(text)):
            self._fault(event, f"the number has {len(text)} digits; at most {_MAX_DIGITS} are read")
            return 0
        return resolve_plain(text)

    def _open(self, event: Any, value: Any) -> None:
        if len(self.stack) >= MAX_DEPTH:
            place = event.start_mark
            too_deep = f"nested more than {MAX_DEPTH} levels deep; flatten it"
            raise SourceErrors([*self.errors, SourceError(place.line + 1, place.column + 1, "", too_deep)])
        top = self.stack[-1] if self.stack else None
        if top is not None and isinstance(top.value, dict) and top.key is None:
            self._fault(event, "a mapping's key must be a text, not a list or a mapping")
            top.key = ""
        if event.tag not in (None, "!"):
            self._tag(event)
        path = self._put(event, value)
        self.stack.append(_Open(path, value))

    def _put(self, event: Any, value: Any) -> Path:
        place = Place(event.start_mark.line + 1, event.start_mark.column + 1)
        if not self.stack:
            if self.documents == 1:
                self.root = value
            self.places.setdefault((), place)
            return ()
        top = self.stack[-1]
        if isinstance(top.value, list):
            path: Path = (*top.path, len(top.value))
            top.value.append(value)
            self.places[path] = place
            return path
        key, top.key = top.key, None
        path = (*top.path, key or "")
        top.value.setdefault(key, value)
        self.places.setdefault(path, place)
        return path

    def _tag(self, event: Any) -> None:
        if event.tag not in _CORE_TAGS:
            self._fault(event, f"the tag {event.tag} is refused; write a plain value")

    def _fault(self, event: Any, message: str, path: Path = ()) -> None:
        mark = event.start_mark
        self.errors.append(SourceError(mark.line + 1, mark.column + 1, dotted(path), message))


def resolve_plain(text: str) -> Any:
    """A plain (unquoted) scalar by the core schema of YAML 1.2: null, boolean, integer, float, else text."""
    if text in _NULLS:
        return None
    if text in _BOOLS:
        return _BOOLS[text]
    if _INT.fullmatch(text):
        return int(text)
    if _OCT.fullmatch(text):
        return int(text[2:], 8)
    if _HEX.fullmatch(text):
        return int(text[2:], 16)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _SPECIAL.fullmatch(text):
        return float(text.lower().replace(".", ""))
    return text


def _joined(text: str) -> str:
    """JSON writes U+1F600 as two escapes; PyYAML leaves them as two lone surrogates. What stays alone is replaced."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
