"""Room: evaluator (pure). The safe expression language of score formulas, and piecewise linear curves.

An allow-list of syntax nodes over Python's own parser; nothing is evaluated as Python. Values are `Decimal` with 28
digits, so a score is the same on every machine. Names are metrics and curves; `min max abs sqrt exp log clamp`,
`+ - * / **`, comparisons and `a if b else c` are all there is. Standard library only.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Context, Decimal, DecimalException, DivisionByZero, InvalidOperation, Overflow
from itertools import pairwise

MAX_LENGTH = 1000
MAX_NODES = 200
MAX_POWER = 16
_CONTEXT = Context(prec=28, traps=[DivisionByZero, InvalidOperation, Overflow], Emax=10**6, Emin=-(10**6))
_ONE = Decimal(1)
_ZERO = Decimal(0)


class FormulaError(ValueError):
    """The formula can't be read, names something unknown, or has no value for these metrics."""


def _clamp(value: Decimal, low: Decimal, high: Decimal) -> Decimal:
    return min(max(value, low), high)


FUNCTIONS: Mapping[str, tuple[int, int, Callable[..., Decimal]]] = {
    "min": (2, 8, min),
    "max": (2, 8, max),
    "abs": (1, 1, abs),
    "sqrt": (1, 1, _CONTEXT.sqrt),
    "exp": (1, 1, _CONTEXT.exp),
    "log": (1, 1, _CONTEXT.ln),
    "clamp": (3, 3, _clamp),
}
_BINARY: Mapping[type[ast.operator], Callable[[Decimal, Decimal], Decimal]] = {
    ast.Add: _CONTEXT.add,
    ast.Sub: _CONTEXT.subtract,
    ast.Mult: _CONTEXT.multiply,
    ast.Div: _CONTEXT.divide,
    ast.Pow: _CONTEXT.power,
}
_COMPARE: Mapping[type[ast.cmpop], Callable[[Decimal, Decimal], bool]] = {
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
}


def _parse(text: str) -> ast.expr:
    if len(text) > MAX_LENGTH:
        raise FormulaError(f"longer than {MAX_LENGTH} characters; use curves for the shape")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `1if a` is only doubtful to Python; the author gets faults, not warnings
            tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise FormulaError(f"not an expression: {getattr(error, 'msg', 'it cannot be read')}") from error
    if sum(1 for _ in ast.walk(tree)) > MAX_NODES:
        raise FormulaError(f"more than {MAX_NODES} parts; use curves for the shape")
    return tree


def formula_names(text: str, known: Collection[str]) -> frozenset[str]:
    """The names a formula uses. Raises `FormulaError` for anything outside the language, naming the place."""
    tree = _parse(text)
    used: set[str] = set()
    _check(tree, frozenset(known), used)
    return frozenset(used)


def _check(node: ast.expr, known: frozenset[str], used: set[str]) -> None:
    place = f"at column {node.col_offset + 1}"
    if isinstance(node, ast.Constant):
        _number(node, place)
    elif isinstance(node, ast.Name):
        if node.id not in known:
            raise FormulaError(
                f"{node.id!r} {place} is neither a metric nor a curve; known: {', '.join(sorted(known))}"
            )
        used.add(node.id)
    elif isinstance(node, ast.Call):
        _check_call(node, place)
    elif isinstance(node, ast.BinOp):
        if type(node.op) not in _BINARY:
            raise FormulaError(f"this operator {place} isn't in the language (+ - * / **)")
        if isinstance(node.op, ast.Pow):
            _check_power(node.right, place)
    else:
        _check_rest(node, place)
    for child in _children(node):
        _check(child, known, used)


def _check_rest(node: ast.expr, place: str) -> None:
    match node:
        case ast.UnaryOp(op=ast.USub() | ast.UAdd()) | ast.IfExp():
            return
        case ast.Compare(ops=[op]) if type(op) in _COMPARE:
            return
        case ast.Compare():
            raise FormulaError(f"one comparison at a time {place}")
    raise FormulaError(f"{type(node).__name__} {place} isn't in the language")


def _children(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.Call):
        return list(node.args)
    return [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]


def _check_call(node: ast.Call, place: str) -> None:
    name = node.func.id if isinstance(node.func, ast.Name) else "?"
    if name not in FUNCTIONS or node.keywords:
        raise FormulaError(f"{name!r} {place} is no function here; known: {', '.join(FUNCTIONS)}")
    least, most, _ = FUNCTIONS[name]
    if not least <= len(node.args) <= most:
        raise FormulaError(f"{name} {place} takes {least} to {most} values, not {len(node.args)}")


def _check_power(node: ast.expr, place: str) -> None:
    if (
        not isinstance(node, ast.Constant)
        or not isinstance(node.value, int | float)
        or not 0 <= node.value <= MAX_POWER
    ):
        raise FormulaError(f"the exponent {place} must be a number from 0 to {MAX_POWER}")


def _number(node: ast.Constant, place: str) -> Decimal:
    if isinstance(node.value, bool) or not isinstance(node.value, int | float):
        raise FormulaError(f"{node.value!r} {place} is no number")
    value = Decimal(repr(node.value))
    if not value.is_finite():
        raise FormulaError(f"the number {place} is too large")
    return value


def formula_value(text: str, values: Mapping[str, Decimal]) -> Decimal:
    """The value over `values` (metrics and curves). Raises `FormulaError` where there is none (division by 0 ...)."""
    tree = _parse(text)
    _check(tree, frozenset(values), set())
    try:
        value = _value(tree, values)
    except DecimalException as error:
        raise FormulaError(f"no value for these metrics: {type(error).__name__}") from error
    if not value.is_finite():
        raise FormulaError("no finite value for these metrics")
    return value


def _value(node: ast.expr, values: Mapping[str, Decimal]) -> Decimal:
    match node:
        case ast.Constant():
            return _number(node, "")
        case ast.Name(id=name):
            return values[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, values)
        case ast.UnaryOp(operand=operand):
            return _value(operand, values)
        case ast.BinOp(left=left, op=op, right=right):
            return _BINARY[type(op)](_value(left, values), _value(right, values))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _ONE if _COMPARE[type(op)](_value(left, values), _value(right, values)) else _ZERO
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _value(body if _value(test, values) != 0 else orelse, values)
        case ast.Call(func=ast.Name(id=name), args=args):
            return FUNCTIONS[name][2](*(_value(arg, values) for arg in args))
    raise FormulaError(f"{type(node).__name__} isn't in the language")


def curve_value(points: Sequence[tuple[Decimal, Decimal]], at: Decimal) -> Decimal:
    """Piecewise linear through `points` (x rising), flat beyond both ends."""
    if at <= points[0][0]:
        return points[0][1]
    for (left, low), (right, high) in pairwise(points):
        if at <= right:
            share = _CONTEXT.divide(at - left, right - left)
            return low + _CONTEXT.multiply(share, high - low)
    return points[-1][1]
