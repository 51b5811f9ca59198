"""Room: portal.pages. JSON schemas as rows of a table, for the docs made from the code. Pure."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_BOUNDS = {"minimum": "≥ ", "maximum": "≤ ", "exclusiveMinimum": "> ", "exclusiveMaximum": "< "}
_DEEPEST = 6


@dataclass(frozen=True)
class FieldRow:
    """One field: dotted name, kind, default as JSON (empty: none), what is said of it."""

    name: str
    kind: str
    default: str
    about: str
    required: bool


def schema_rows(schema: Mapping[str, Any]) -> tuple[FieldRow, ...]:
    """Every field of an object schema, parts of parts below their part."""
    return tuple(_rows(schema, schema.get("$defs", {}), "", 0))


def _rows(schema: Mapping[str, Any], defs: Mapping[str, Any], prefix: str, depth: int) -> Iterator[FieldRow]:
    required = set(schema.get("required", ()))
    for name, raw in schema.get("properties", {}).items():
        field = _resolved(raw, defs)
        path = f"{prefix}{name}"
        default = json.dumps(raw["default"], ensure_ascii=False) if "default" in raw else ""
        about = str(raw.get("description") or field.get("description") or "")
        parts = _parts(field, defs)
        shown = "" if len(default) > 60 or (parts and default.startswith("{")) else default
        yield FieldRow(path, _kind(field, defs), shown, " ".join(about.split()), name in required)
        if parts is not None and depth < _DEEPEST:
            yield from _rows(parts, defs, f"{path}{_each(field)}.", depth + 1)


def _resolved(field: Mapping[str, Any], defs: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = field.get("$ref")
    if isinstance(reference, str):
        found = defs.get(reference.rsplit("/", 1)[-1], {})
        return {**found, **{k: v for k, v in field.items() if k != "$ref"}}
    return field


def _parts(field: Mapping[str, Any], defs: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The object schema below a field: itself, its items or values, or the one of its alternatives that has fields."""
    options = [field, *field.get("anyOf", ())]
    if field.get("type") == "array":
        options.append(field.get("items", {}))
    options.append(_values(field))
    resolved = (_resolved(option, defs) for option in options if isinstance(option, Mapping))
    return next((option for option in resolved if option.get("properties")), None)


def _each(field: Mapping[str, Any]) -> str:
    """How a path goes on into the items of a list or the values of a mapping with free names."""
    if field.get("type") == "array":
        return "[]"
    return ".NAME" if _values(field) else ""


def _values(field: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What each value of a mapping with free names is."""
    found = field.get("additionalProperties") or next(iter(field.get("patternProperties", {}).values()), None)
    return found if isinstance(found, Mapping) else None


def _kind(field: Mapping[str, Any], defs: Mapping[str, Any]) -> str:
    if "enum" in field:
        return " | ".join(str(value) for value in field["enum"])
    if "const" in field:
        return str(field["const"])
    if "anyOf" in field:
        kinds = [_kind(_resolved(option, defs), defs) for option in field["anyOf"]]
        return " | ".join(dict.fromkeys(kinds))
    kind = str(field.get("type", "value"))
    if kind == "array" and isinstance(field.get("items"), Mapping):
        kind = f"list of {_kind(_resolved(field['items'], defs), defs)}"
    bounds = [f"{sign}{_plain(field[key])}" for key, sign in _BOUNDS.items() if isinstance(field.get(key), int | float)]
    return f"{kind} {', '.join(bounds)}".strip()


def _plain(value: float) -> str:
    """1,000,000 and 0.1: as people write it."""
    return f"{int(value):,}" if float(value).is_integer() else f"{value:g}"
