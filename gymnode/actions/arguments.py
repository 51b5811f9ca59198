"""Room: gymnode.actions, pure. From the raw arguments of a tool call to values, and faults into words.

Strict on purpose: the schema a model was given is what is checked, so that two models are judged alike. Accepted beyond
it: no text at all for no arguments, integers written as 10.0, and null for an argument that may be left out and whose
default is null. A number or a boolean in quotes is refused with the advice to drop the quotes.

No argument may hold NUL or half a surrogate pair: what is stored of a call (a database takes neither) is then exactly
what is carried out, also when it is read back and sent again.
"""

import difflib
import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, NoReturn

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, ValidationError
from pydantic_core import ErrorDetails

MAX_ARGUMENTS = 5 * 1024 * 1024  # characters of one call
_SHOWN = 80


class BadArguments(ValueError):
    """Raw arguments that aren't one JSON object."""


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _no_nul(value: str) -> str:
    if "\0" in value:
        raise ValueError("must not contain the NUL character (\\u0000)")
    return value


Whole = Annotated[int, BeforeValidator(_whole)]
Offset = Annotated[int, Field(ge=0), BeforeValidator(_whole)]
Text = Annotated[str, AfterValidator(_no_nul)]
PathText = Annotated[Text, Field(min_length=1, max_length=4096)]
SessionName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=64)]


def arguments_parse(raw: str) -> dict[str, JsonValue]:
    """The one JSON object in `raw`; blanks alone are an empty one. Raises BadArguments, saying what stands there."""
    if len(raw) > MAX_ARGUMENTS:
        raise BadArguments(f"the arguments have {len(raw):,} characters; at most {MAX_ARGUMENTS:,} are taken")
    if not raw.strip():
        return {}
    try:
        value = json.loads(raw, object_pairs_hook=_object, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise BadArguments(_syntax(raw, error)) from error
    except RecursionError as error:
        raise BadArguments("the arguments are nested too deeply; they must be one flat JSON object") from error
    except BadArguments:
        raise
    except ValueError as error:
        raise BadArguments("the arguments hold a number with thousands of digits") from error
    if not isinstance(value, dict):
        raise BadArguments(f"the arguments must be one JSON object, but {describe(value)} was sent")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise BadArguments(f"{_quoted(key)} is given twice in the arguments")
        found[key] = value
    return found


def _no_constant(name: str) -> NoReturn:
    raise BadArguments(f"{name} is no JSON value")


def _syntax(raw: str, error: json.JSONDecodeError) -> str:
    if error.msg == "Extra data":
        rest, place = _quoted(raw[error.pos :].strip()), error.pos + 1
        return f"the arguments must be one JSON object, but {rest} follows after it (character {place})"
    if error.pos >= len(raw.rstrip()):
        return f"the arguments are cut off: JSON ends at character {len(raw.rstrip())} ({error.msg.lower()})"
    near = _quoted(raw[error.pos : error.pos + 20])
    return f"the arguments are not valid JSON: {error.msg.lower()} at character {error.pos + 1}, near {near}"


def describe(value: Any) -> str:
    """A JSON value in a few words: `the string "ten"`, `null`, `a list`."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, str):
        return f"the string {_quoted(value)}"
    if isinstance(value, (int, float)):
        return f"the number {_clipped(str(value))}"
    return "a list" if isinstance(value, Sequence) else "an object"


def _quoted(text: str) -> str:
    return json.dumps(_clipped(text), ensure_ascii=False)


def _clipped(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def problems_of(error: ValidationError, known: Collection[str]) -> tuple[str, ...]:
    """One sentence part for each fault, naming the argument, what it must be and what was sent."""
    return tuple(_problem(fault, known) for fault in error.errors(include_url=False))


def _problem(fault: ErrorDetails, known: Collection[str]) -> str:
    name = _quoted(str(fault["loc"][0])) if fault["loc"] else ""
    if fault["type"] == "missing":
        return f"{name} is missing"
    if fault["type"] == "extra_forbidden":
        return _unknown(str(fault["loc"][0]), known)
    if not name:
        return fault["msg"].removeprefix("Value error, ")
    if fault["type"] == "string_unicode":
        return f"{name} must be valid text, but it holds half of a surrogate pair (\\ud800 to \\udfff)"
    must = re.sub(r"^(Input|String) should ", "must ", fault["msg"].removeprefix("Value error, "))
    sent = fault["input"]
    return f"{name} {must}, but {describe(sent)} was sent{_advice(fault['type'], sent)}"


def _unknown(name: str, known: Collection[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"{_quoted(name)} is no parameter; did you mean {_quoted(close[0])}?"
    return f"{_quoted(name)} is no parameter ({'it takes ' + ', '.join(known) if known else 'it takes none'})"


def _advice(kind: str, sent: Any) -> str:
    if sent is None:
        return "; leave it out to get the default"
    if kind in {"int_type", "float_type", "bool_type"} and isinstance(sent, str) and _is_plain(sent):
        return f"; send {sent.strip().lower()} without quotes"
    return ""


def _is_plain(text: str) -> bool:
    try:
        value = json.loads(text.strip().lower())
    except ValueError:
        return False
    return isinstance(value, bool) or (isinstance(value, (int, float)) and math.isfinite(value))


def schema_of(raw: Mapping[str, Any]) -> dict[str, JsonValue]:
    """A model's JSON schema as tools are offered: flat, without titles, optional instead of nullable."""
    parts = sorted(raw.get("properties", {}).items(), key=lambda item: item[0] == "node")  # the rarest comes last
    properties: dict[str, JsonValue] = {name: _property(part) for name, part in parts}
    schema: dict[str, JsonValue] = {"type": "object", "properties": properties}
    if raw.get("required"):
        schema["required"] = list(raw["required"])
    schema["additionalProperties"] = False
    return schema


def _property(part: Mapping[str, Any]) -> dict[str, JsonValue]:
    flat = {key: value for key, value in part.items() if key not in {"title", "anyOf"}}
    for choice in part.get("anyOf", ()):
        if choice.get("type") != "null":
            flat = {**choice, **flat}
    if flat.get("default", 0) is None:
        del flat["default"]
    order = ("type", "description", "enum", "minimum", "maximum", "minLength", "maxLength", "pattern", "default")
    return {key: flat[key] for key in (*order, *sorted(flat.keys() - set(order))) if key in flat}
