"""Room: evaluator (pure). Reads YAML 1.2 core with the line of every value kept. May import: PyYAML.

YAML 1.1 turns `off`, `yes`, `1:30` and `012` into something else than what the author sees; here only `true` and
`false` are booleans. Duplicate keys, aliases, anchors and tags are refused: a manifest is data, and each value stands
in exactly one place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

MAX_BYTES = 256 * 1024
MAX_DEPTH = 24
_TOO_LARGE = "not YAML: a number here is too large; escapes end at \\U0010FFFF, and the version is %YAML 1.2"
_NULL = re.compile(r"null|Null|NULL|~|")
_TRUE = re.compile(r"true|True|TRUE")
_FALSE = re.compile(r"false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
Where = tuple[str | int, ...]


@dataclass(frozen=True)
class Fault:
    """One fault: what place (file, dotted field, line; empty or 0 where there is none), what is wrong, what to do."""

    message: str
    where: str = ""
    line: int = 0
    file: str = ""

    def __str__(self) -> str:
        place = f"line {self.line}" if self.line else ""
        if self.file:
            place = f"{self.file}:{self.line}" if self.line else self.file
        return ": ".join(part for part in (place, self.where, self.message) if part)


class Faults(ValueError):
    """Every fault of one text or folder, in one go."""

    def __init__(self, faults: list[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(map(str, faults)))


@dataclass(frozen=True)
class Document:
    """The data (dicts, lists, scalars) and the line (from 1) on which the value of each path begins."""

    data: Any
    lines: Mapping[Where, int]

    def line(self, where: Where) -> int:
        """The line of `where`, or of the nearest thing around it."""
        while where and where not in self.lines:
            where = where[:-1]
        return self.lines.get(where, 1)


class _Reader:
    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.lines: dict[Where, int] = {}

    def fault(self, where: Where, node: yaml.Node, message: str) -> None:
        self.faults.append(Fault(message, dotted(where), node.start_mark.line + 1))

    def value(self, node: yaml.Node, where: Where) -> Any:
        self.lines[where] = node.start_mark.line + 1
        if len(where) > MAX_DEPTH:
            self.fault(where, node, f"nested more than {MAX_DEPTH} levels deep; flatten it")
            return None
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, where)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(child, (*where, index)) for index, child in enumerate(node.value)]
        return self.scalar(node, where)

    def mapping(self, node: yaml.MappingNode, where: Where) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self.fault(where, key_node, "a key must be a plain word")
                continue
            key = str(key_node.value)
            if key in out:
                first = self.lines[(*where, key)]
                self.fault((*where, key), key_node, f"the key stands twice (first on line {first}); keep one")
                continue
            out[key] = self.value(value_node, (*where, key))
            self.lines[(*where, key)] = key_node.start_mark.line + 1
        return out

    def scalar(self, node: yaml.Node, where: Where) -> Any:
        text = str(node.value)
        if isinstance(node, yaml.ScalarNode) and node.style is not None:
            return text
        if _SPECIAL.fullmatch(text):
            self.fault(where, node, f"{text} is no number that can be used; write a finite one")
            return None
        return plain(text)


def plain(text: str) -> str | int | float | bool | None:
    """What an unquoted scalar means in the core schema of YAML 1.2."""
    if _NULL.fullmatch(text):
        return None
    if _TRUE.fullmatch(text):
        return True
    if _FALSE.fullmatch(text):
        return False
    if _INT.fullmatch(text) and len(text) <= 40:
        return int(text, 0) if text[:2] in {"0x", "0o"} else int(text, 10)
    if _FLOAT.fullmatch(text) and len(text) <= 60:
        return float(text)
    return text


def dotted(where: Where) -> str:
    """`('nodes', 0, 'role')` as `nodes[0].role`."""
    out = ""
    for part in where:
        out += f"[{part}]" if isinstance(part, int) else f".{part}" if out else part
    return out


def _events(text: str) -> Iterator[yaml.Event]:
    """PyYAML makes characters and numbers of escapes and versions without looking at their size."""
    parser: Any = yaml.SafeLoader(text)
    while True:
        try:
            event = parser.get_event()
        except (ValueError, OverflowError) as error:
            raise Faults([Fault(_TOO_LARGE, "", parser.get_mark().line + 1)]) from error
        if event is None:
            return
        yield event


def _refuse_sharing(text: str) -> list[Fault]:
    faults = []
    depth = 0
    for event in _events(text):
        line = event.start_mark.line + 1 if event.start_mark else 0
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH * 2:
            raise Faults([Fault(f"nested more than {MAX_DEPTH} levels deep; flatten it", "", line)])
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            faults.append(Fault("anchors and aliases (& and *) are refused; write the value out", "", line))
        tag = getattr(event, "tag", None)
        if tag is not None:
            faults.append(Fault(f"the tag {tag} is refused; write plain values", "", line))
    return faults


def read_yaml(text: str) -> Document:
    """Read one document. Raises `Faults` with every duplicate key, alias, tag and broken place, each with its line."""
    if len(text.encode("utf-8", "replace")) > MAX_BYTES:
        raise Faults([Fault(f"longer than {MAX_BYTES // 1024} KiB; a manifest holds no data")])
    try:
        faults = _refuse_sharing(text)
        if faults:
            raise Faults(faults)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "context", None) or "not YAML"
        raise Faults([Fault(f"not YAML: {problem}", "", mark.line + 1 if mark else 0)]) from error
    except RecursionError as error:
        raise Faults([Fault("nested too deep; flatten it")]) from error
    if node is None:
        raise Faults([Fault("empty; see the documentation for a template", "", 1)])
    reader = _Reader()
    data = reader.value(node, ())
    if reader.faults:
        raise Faults(reader.faults)
    return Document(data, reader.lines)
