"""Room: tasks. A submitted program: a JSON object of named expressions, checked whole, then run; touches nothing.

Which keys there are, which variables and functions each may use, and all limits are data (`Language`), so that
several tasks share this module.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import autodiff
from .autodiff import Value
from .grammar import NAME, Limits, Name, Number, Report, Scope, Tree, expression_parse

Function = Callable[..., Value]

BASE_FUNCTIONS: Mapping[str, tuple[Function, int]] = {
    "exp": (autodiff.exp, 1), "log": (autodiff.log, 1), "sqrt": (autodiff.sqrt, 1), "abs": (autodiff.absolute, 1),
    "tanh": (autodiff.tanh, 1), "sigmoid": (autodiff.sigmoid, 1), "min": (autodiff.minimum, 2),
    "max": (autodiff.maximum, 2), "clip": (autodiff.clip, 3), "where": (autodiff.where, 3), "stop": (autodiff.stop, 1),
}  # fmt: skip


def _comparison(compare: Callable[[Any, Any], Any]) -> Function:
    return lambda a, b: Value(compare(a.array, b.array).astype(np.float64))


OPERATORS: Mapping[str, Function] = {
    "add": autodiff.add, "subtract": autodiff.subtract, "multiply": autodiff.multiply, "divide": autodiff.divide,
    "power": autodiff.power, "negate": autodiff.negate,
    "less": _comparison(np.less), "less_equal": _comparison(np.less_equal), "greater": _comparison(np.greater),
    "greater_equal": _comparison(np.greater_equal), "equal": _comparison(np.equal),
    "not_equal": _comparison(np.not_equal),
}  # fmt: skip


class ProgramFaultsError(ValueError):
    """The text is no program of this language; `faults` says everything that is wrong with it."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = tuple(faults)


class NotFiniteError(ArithmeticError):
    """A value of a running program is infinite or not a number; `what` names it."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is not finite")
        self.what = what


@dataclass(frozen=True)
class Output:
    """One expression a program gives. `sees_lets` ones may use the lets, and share their variables."""

    variables: frozenset[str]
    functions: Mapping[str, tuple[Function, int]]
    required: bool = False
    sees_lets: bool = True


@dataclass(frozen=True)
class Language:
    """The keys of a program: expressions (`outputs`), lets over `variables`, and words to choose from (`choices`)."""

    variables: frozenset[str]
    functions: Mapping[str, tuple[Function, int]]
    outputs: Mapping[str, Output]
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True)
class Program:
    """A checked program. Running it never raises anything but NotFiniteError."""

    language: Language
    lets: tuple[tuple[str, Tree], ...]
    outputs: Mapping[str, Tree]
    choices: Mapping[str, str]
    nodes: int

    def run(self, variables: Mapping[str, Value], names: tuple[str, ...]) -> dict[str, Value]:
        """The named outputs that the program has. Lets are worked out once, and only for outputs that see them."""
        environment = dict(variables)
        with np.errstate(all="ignore"):
            if any(self.language.outputs[name].sees_lets for name in names):
                for let, tree in self.lets:
                    environment[let] = _finite(_evaluate(tree, environment, self.language.functions), let)
            return {
                name: _finite(_evaluate(self.outputs[name], environment, self.language.outputs[name].functions), name)
                for name in names
                if name in self.outputs
            }


def _evaluate(tree: Tree, environment: Mapping[str, Value], functions: Mapping[str, tuple[Function, int]]) -> Value:
    if isinstance(tree, Number):
        return Value(tree.value)
    if isinstance(tree, Name):
        return environment[tree.name]
    arguments = [_evaluate(argument, environment, functions) for argument in tree.arguments]
    function = OPERATORS.get(tree.function) or functions[tree.function][0]
    return function(*arguments)


def _finite(value: Value, name: str) -> Value:
    if not np.isfinite(value.array).all():
        raise NotFiniteError(name)
    return value


def program_parse(data: bytes, language: Language) -> Program:
    """The program a file holds. Raises ProgramFaultsError with every fault, each with its place."""
    report = Report(language.limits)
    raw = _object(data, report)
    known = ("let", *language.outputs, *language.choices)
    for key in raw:
        if key not in known:
            report.add("program", f"unknown key {key[:40]!r}; known: {', '.join(known)}")
    lets, names = _lets(raw.get("let", []), language, report)
    outputs = _outputs(raw, language, names, report)
    choices = _choices(raw, language, report)
    if report.nodes > language.limits.nodes:
        report.add("program", f"{report.nodes} nodes in all, at most {language.limits.nodes}")
    if report.faults:
        raise ProgramFaultsError(report.faults)
    return Program(language, lets, outputs, choices, report.nodes)


def _object(data: bytes, report: Report) -> dict[str, Any]:
    if not data.strip():
        raise ProgramFaultsError(["program: the file is empty; a JSON object is expected"])
    if len(data) > report.limits.bytes:
        raise ProgramFaultsError([f"program: {len(data)} bytes, at most {report.limits.bytes}"])

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        for index, (key, _) in enumerate(items):
            if key in [earlier for earlier, _ in items[:index]]:
                report.add("program", f"key {key[:40]!r} is given twice")
        return dict(items)

    try:
        raw = json.loads(data.decode("utf-8"), object_pairs_hook=pairs)
    except UnicodeDecodeError as error:
        raise ProgramFaultsError([f"program: byte {error.start} is not UTF-8"]) from error
    except json.JSONDecodeError as error:
        raise ProgramFaultsError([f"program: line {error.lineno}: not JSON: {error.msg}"]) from error
    except (RecursionError, ValueError) as error:
        raise ProgramFaultsError(["program: not JSON that can be read"]) from error
    if not isinstance(raw, dict):
        raise ProgramFaultsError([f"program: a JSON object is expected, not {type(raw).__name__}"])
    return raw


def _counts(functions: Mapping[str, tuple[Function, int]]) -> dict[str, int]:
    return {name: count for name, (_, count) in functions.items()}


def _lets(raw: object, language: Language, report: Report) -> tuple[tuple[tuple[str, Tree], ...], frozenset[str]]:
    if not isinstance(raw, list):
        report.add("let", "a list of [name, expression] is expected")
        return (), frozenset()
    if len(raw) > language.limits.lets:
        report.add("let", f"{len(raw)} lets, at most {language.limits.lets}")
        raw = raw[: language.limits.lets]
    lets: list[tuple[str, Tree]] = []
    names: set[str] = set()
    for index, item in enumerate(raw):
        if not isinstance(item, list) or len(item) != 2 or not isinstance(item[0], str):
            report.add(f"let[{index}]", "[name, expression] is expected")
            continue
        place = f"let[{index}] {item[0][:40]}"
        taken = language.variables | frozenset(language.functions) | names
        if not NAME.fullmatch(item[0]):
            report.add(place, "a name is a letter and up to 31 letters, digits and underscores")
        elif item[0] in taken:
            report.add(place, "this name is taken")
        scope = Scope(language.variables | names, _counts(language.functions))
        lets.append((item[0], expression_parse(item[1], place, scope, report)))
        names.add(item[0])
    return tuple(lets), frozenset(names)


def _outputs(raw: Mapping[str, Any], language: Language, lets: frozenset[str], report: Report) -> dict[str, Tree]:
    trees = {}
    for name, output in language.outputs.items():
        if name in raw:
            names = output.variables | lets if output.sees_lets else output.variables
            trees[name] = expression_parse(raw[name], name, Scope(names, _counts(output.functions)), report)
        elif output.required:
            report.add(name, "is required")
    return trees


def _choices(raw: Mapping[str, Any], language: Language, report: Report) -> dict[str, str]:
    choices = {}
    for name, words in language.choices.items():
        word = raw.get(name, words[0])
        if word not in words:
            report.add(name, "is one of " + ", ".join(f'"{known}"' for known in words))
        choices[name] = word if isinstance(word, str) else words[0]
    return choices
