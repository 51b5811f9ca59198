"""Room: runs.agent. Turns pydantic's faults into sentences that name the thing, the limit and the next move. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel

from runs.agent.yaml_core import dotted

LONG_LIST = 15
_NEEDED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "decimal_type": "a number",
    "decimal_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false (in YAML 1.2 `yes`, `no`, `on` and `off` are texts)",
    "string_type": "a text",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "mapping_type": "a mapping",
}
_BOUNDS = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
    "string_too_short": ("min_length", "at least this many characters:"),
    "string_too_long": ("max_length", "at most this many characters:"),
}


def unknown_name(name: str, known: Iterable[str], *, what: str) -> str:
    """A sentence for a name that isn't among the known ones, with the nearest of them."""
    names = list(known)
    near = get_close_matches(name, names, n=1, cutoff=0.6)
    if near and len(names) > LONG_LIST:
        return f"`{name}` is no {what}; did you mean `{near[0]}`?"
    guess = f"did you mean `{near[0]}`? " if near else ""
    return f"`{name}` is no {what}; {guess}known: {', '.join(names)}"


def sentence(model: type[BaseModel], fault: Mapping[str, Any]) -> str:
    """The sentence for one of pydantic's faults. The value is shown only where it is short and can't be a secret."""
    loc: Sequence[str | int] = fault["loc"]
    path, kind = dotted(loc), str(fault["type"])
    if kind == "extra_forbidden":
        return unknown_name(
            str(loc[-1]), keys_at(model, loc[:-1]), what=f"key of {dotted(loc[:-1]) or 'an agent config'}"
        )
    if kind == "missing":
        return f"`{path}` is missing; add it"
    if kind in ("enum", "literal_error"):
        return f"`{path}` is {shown(fault['input'])}; it is one of {fault['ctx']['expected']}"
    if kind in _BOUNDS:
        limit, words = _BOUNDS[kind]
        return f"`{path}` is {shown(fault['input'])}; it must be {words} {fault['ctx'][limit]}"
    if kind == "string_pattern_mismatch":
        return f"`{path}` is {shown(fault['input'])}; use at most 80 letters, digits, `.`, `_`, `-`"
    if kind in _NEEDED:
        return f"`{path}` is {shown(fault['input'])}; it must be {_NEEDED[kind]}{_hint(kind, fault['input'])}"
    if kind == "value_error":
        return f"`{path}`: {fault['ctx']['error']}"
    return f"`{path}`: {fault['msg']}"


def _hint(kind: str, value: Any) -> str:
    if isinstance(value, str) and kind != "string_type" and value.strip().lstrip("+-").replace(".", "", 1).isdigit():
        return "; write it without quotes"
    return "; put it into quotes" if kind == "string_type" and not isinstance(value, dict | list) else ""


def shown(value: Any) -> str:
    """A value as a reader would call it, short."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return f'the text "{value[:40]}"' if len(value) <= 40 else f"a text of {len(value)} characters"
        case list() | tuple():
            return "a list"
        case Mapping():
            return "a mapping"
        case _:
            return str(value)[:40]


def keys_at(model: type[BaseModel], path: Sequence[str | int]) -> list[str]:
    """The keys that the model knows below a path."""
    current: type[BaseModel] = model
    for part in path:
        field = current.model_fields.get(str(part))
        inner = None if field is None else _model_in(field.annotation)
        if inner is None:
            return []
        current = inner
    return list(current.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for part in get_args(annotation):
        if isinstance(part, type) and issubclass(part, BaseModel):
            return part
    return None
