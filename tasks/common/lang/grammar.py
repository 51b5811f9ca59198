"""Room: tasks. From text to a checked tree of a small expression language; touches nothing.

Python's parser only serves to read; what it read is walked along an allow-list of syntax nodes and nothing is
ever evaluated as Python. Lengths are tested before parsing, as a long chain overflows the parser's own stack.
"""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,31}")
BINARY: Mapping[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide", ast.Pow: "power",
}  # fmt: skip
COMPARISONS: Mapping[type[ast.cmpop], str] = {
    ast.Lt: "less", ast.LtE: "less_equal", ast.Gt: "greater",
    ast.GtE: "greater_equal", ast.Eq: "equal", ast.NotEq: "not_equal",
}  # fmt: skip


@dataclass(frozen=True)
class Limits:
    """What bounds the work of a program."""

    bytes: int = 8 * 1024
    lets: int = 16
    characters: int = 600
    depth: int = 20
    nodes: int = 160
    number: float = 1e6


@dataclass(frozen=True)
class Number:
    value: float


@dataclass(frozen=True)
class Name:
    name: str


@dataclass(frozen=True)
class Apply:
    """A function or an operator, by name, over its arguments."""

    function: str
    arguments: tuple[Tree, ...]


Tree = Number | Name | Apply


@dataclass(frozen=True)
class Scope:
    """The names an expression may use; functions with their number of arguments."""

    names: frozenset[str]
    functions: Mapping[str, int]


@dataclass
class Report:
    """All faults found so far, in the order of the text, and the nodes counted."""

    limits: Limits
    faults: list[str] = field(default_factory=list)
    nodes: int = 0

    def add(self, place: str, fault: str) -> None:
        self.faults.append(f"{place}: {fault}")


def expression_parse(text: object, place: str, scope: Scope, report: Report) -> Tree:
    """The tree of one expression. Faults go to the report; where one was found the tree is of no use."""
    parsed = _parsed(text, place, report)
    if parsed is None:
        return Number(0.0)
    return _Walker(place, scope, report).tree(parsed, 1)


def _parsed(text: object, place: str, report: Report) -> ast.expr | None:
    limits = report.limits
    if not isinstance(text, str):
        report.add(place, f"an expression is a string, not {type(text).__name__}")
    elif len(text) > limits.characters:
        report.add(place, f"{len(text)} characters, at most {limits.characters}")
    elif not text.isascii():
        report.add(place, "only ASCII characters are read")
    else:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse(text.strip(), mode="eval").body
        except SyntaxError as error:
            report.add(place, f"not an expression: {error.msg}, at character {error.offset or 0}")
        except (ValueError, MemoryError, RecursionError, OverflowError):
            report.add(place, "not an expression that can be read")
    return None


class _Walker:
    """Walks one parsed expression along the allow-list."""

    def __init__(self, place: str, scope: Scope, report: Report) -> None:
        self.place, self.scope, self.report = place, scope, report
        self.too_deep = False

    def fault(self, text: str) -> Number:
        self.report.add(self.place, text)
        return Number(0.0)

    def tree(self, node: ast.expr, depth: int) -> Tree:
        self.report.nodes += 1
        if depth > self.report.limits.depth:
            if not self.too_deep:
                self.too_deep = True
                self.fault(f"deeper than {self.report.limits.depth} levels")
            return Number(0.0)
        reader = _READERS.get(type(node))
        if reader is None:
            return self.fault(f"{_WORDS.get(type(node), type(node).__name__)} not in this language")
        return reader(self, node, depth)

    def number(self, node: ast.Constant) -> Tree:
        value, limit = node.value, self.report.limits.number
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return self.fault(f"{type(value).__name__} {_short(value)} is not a number")
        if not abs(value) <= limit or not math.isfinite(value):
            return self.fault(f"number {_short(value)} is above {limit:g}")
        return Number(float(value))

    def name(self, node: ast.Name) -> Tree:
        if node.id not in self.scope.names:
            hint = "a function needs its arguments" if node.id in self.scope.functions else _known(self.scope.names)
            return self.fault(f"unknown name {_short(node.id)}; {hint}")
        return Name(node.id)

    def unary(self, node: ast.UnaryOp, depth: int) -> Tree:
        if not isinstance(node.op, ast.USub):
            return self.fault(f"unary operator {type(node.op).__name__} is not in this language")
        return Apply("negate", (self.tree(node.operand, depth + 1),))

    def binary(self, node: ast.BinOp, depth: int) -> Tree:
        function = BINARY.get(type(node.op))
        arguments = (self.tree(node.left, depth + 1), self.tree(node.right, depth + 1))
        if function is None:
            return self.fault(f"operator {type(node.op).__name__} is not in this language; known: + - * / **")
        return Apply(function, arguments)

    def comparison(self, node: ast.Compare, depth: int) -> Tree:
        if len(node.ops) != 1:
            return self.fault("a chained comparison; write (a<b)*(b<c)")
        function = COMPARISONS.get(type(node.ops[0]))
        arguments = (self.tree(node.left, depth + 1), self.tree(node.comparators[0], depth + 1))
        if function is None:
            return self.fault(f"comparison {type(node.ops[0]).__name__} is not in this language")
        return Apply(function, arguments)

    def call(self, node: ast.Call, depth: int) -> Tree:
        if not isinstance(node.func, ast.Name):
            return self.fault("only a named function can be called")
        name = node.func.id
        if name not in self.scope.functions:
            return self.fault(f"unknown function {_short(name)}; {_known(self.scope.functions)}")
        if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
            return self.fault(f"{name} takes plain arguments, no keywords and no stars")
        arguments = tuple(self.tree(argument, depth + 1) for argument in node.args)
        wanted = self.scope.functions[name]
        if len(arguments) != wanted:
            return self.fault(f"{name} takes {wanted} argument{'s' * (wanted != 1)}, not {len(arguments)}")
        return Apply(name, arguments)


_READERS: Mapping[type[ast.expr], Callable[[_Walker, ast.expr, int], Tree]] = {
    ast.Constant: lambda walker, node, _: walker.number(node),  # type: ignore[arg-type]  # the key is the type
    ast.Name: lambda walker, node, _: walker.name(node),  # type: ignore[arg-type]  # the key is the type
    ast.UnaryOp: lambda walker, node, depth: walker.unary(node, depth),  # type: ignore[arg-type]  # the key is the type
    ast.BinOp: lambda walker, node, depth: walker.binary(node, depth),  # type: ignore[arg-type]  # the key is the type
    ast.Compare: lambda walker, node, depth: walker.comparison(node, depth),  # type: ignore[arg-type]  # the key is it
    ast.Call: lambda walker, node, depth: walker.call(node, depth),  # type: ignore[arg-type]  # the key is the type
}
_WORDS: Mapping[type[ast.expr], str] = {
    ast.Attribute: "an attribute (a.b) is", ast.Subscript: "an index (a[b]) is", ast.Starred: "a starred argument is",
    ast.BoolOp: "and/or is", ast.IfExp: "if/else is", ast.Lambda: "lambda is", ast.JoinedStr: "a string is",
}  # fmt: skip


def _known(names: frozenset[str] | Mapping[str, int]) -> str:
    return "known: " + ", ".join(sorted(names))


def _short(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:
        return "with too many digits"
    return text if len(text) <= 40 else text[:40] + "..."
