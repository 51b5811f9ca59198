"""Room: tasks. Arrays that remember how they were made, and gradients back through them; touches nothing.

Reverse mode over numpy. Every operation is total: exp, log, sqrt, division and powers are guarded, so no finite
input makes them raise, and where a guard holds a value fast its gradient is 0, as it is for any constant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Pull = Callable[[Array], Any]

EXPONENT_MAX = 60.0
FLOOR = 1e-12


class Value:
    """One array of a graph; `parents` are pairs of a value it was made of and the pull of gradients back to it."""

    __slots__ = ("array", "gradient", "parents", "traced")

    def __init__(self, array: Any, parents: Iterable[tuple[Value, Pull]] = (), *, traced: bool = False) -> None:
        self.array: Array = np.asarray(array, dtype=np.float64)
        self.parents = tuple((parent, pull) for parent, pull in parents if parent.traced)
        self.traced: bool = traced or bool(self.parents)
        self.gradient: Array | None = None


def unbroadcast(gradient: Array, shape: tuple[int, ...]) -> Array:
    """Sum a gradient over the axes along which a value of `shape` had been stretched."""
    extra = gradient.ndim - len(shape)
    if extra > 0:
        gradient = gradient.sum(axis=tuple(range(extra)))
    stretched = tuple(axis for axis, size in enumerate(shape) if size == 1 and gradient.shape[axis] != 1)
    return gradient.sum(axis=stretched, keepdims=True) if stretched else gradient


def backward(root: Value, seed: Array) -> None:
    """Fill `gradient` of all traced values below `root`, where `seed` (of root's shape) is root's own gradient."""
    root.gradient = np.broadcast_to(seed, root.array.shape).astype(np.float64)
    for value in reversed(_ordered(root)):
        if value.gradient is None:
            continue
        for parent, pull in value.parents:
            pulled = np.asarray(pull(value.gradient))
            pulled = np.broadcast_to(pulled, np.broadcast_shapes(pulled.shape, parent.array.shape))
            part = unbroadcast(pulled, parent.array.shape)
            parent.gradient = part if parent.gradient is None else parent.gradient + part


def _ordered(root: Value) -> list[Value]:
    """All traced values below root, each after those it was made of. A loop, as graphs may be deep."""
    order: list[Value] = []
    seen: set[int] = set()
    stack: list[tuple[Value, bool]] = [(root, False)]
    while stack:
        value, done = stack.pop()
        if done:
            order.append(value)
        elif id(value) not in seen:
            seen.add(id(value))
            stack.append((value, True))
            stack.extend((parent, False) for parent, _ in value.parents)
    return order


def _away_from_zero(x: Array) -> Array:
    return np.where(np.abs(x) < FLOOR, np.where(x < 0, -FLOOR, FLOOR), x)


def add(a: Value, b: Value) -> Value:
    return Value(a.array + b.array, ((a, lambda g: g), (b, lambda g: g)))


def subtract(a: Value, b: Value) -> Value:
    return Value(a.array - b.array, ((a, lambda g: g), (b, lambda g: -g)))


def multiply(a: Value, b: Value) -> Value:
    return Value(a.array * b.array, ((a, lambda g: g * b.array), (b, lambda g: g * a.array)))


def divide(a: Value, b: Value) -> Value:
    divisor = _away_from_zero(b.array)
    free = np.abs(b.array) >= FLOOR
    return Value(a.array / divisor, ((a, lambda g: g / divisor), (b, lambda g: -g * a.array / divisor**2 * free)))


def power(a: Value, b: Value) -> Value:
    """a ** b, with a gradient for the base only. A broken exponent needs a base above 0: it is floored."""
    whole = b.array == np.round(b.array)
    base = np.where(whole, a.array, np.maximum(a.array, FLOOR))
    base = np.where(b.array < 0, _away_from_zero(base), base)
    free = (base == a.array) & (b.array != 0)

    def pull(g: Array) -> Array:
        under = np.where(b.array < 1, _away_from_zero(base), base)
        return g * np.where(free, b.array * under ** (b.array - 1), 0.0)

    return Value(base**b.array, ((a, pull),))


def negate(a: Value) -> Value:
    return Value(-a.array, ((a, lambda g: -g),))


def exp(a: Value) -> Value:
    out = np.exp(np.clip(a.array, -EXPONENT_MAX, EXPONENT_MAX))
    return Value(out, ((a, lambda g: g * out * (np.abs(a.array) <= EXPONENT_MAX)),))


def log(a: Value) -> Value:
    floored = np.maximum(a.array, FLOOR)
    return Value(np.log(floored), ((a, lambda g: g / floored * (a.array >= FLOOR)),))


def sqrt(a: Value) -> Value:
    out = np.sqrt(np.maximum(a.array, FLOOR))
    return Value(out, ((a, lambda g: g / (2 * out) * (a.array >= FLOOR)),))


def absolute(a: Value) -> Value:
    return Value(np.abs(a.array), ((a, lambda g: g * np.sign(a.array)),))


def tanh(a: Value) -> Value:
    out = np.tanh(a.array)
    return Value(out, ((a, lambda g: g * (1 - out * out)),))


def sigmoid(a: Value) -> Value:
    out = 1 / (1 + np.exp(-np.clip(a.array, -EXPONENT_MAX, EXPONENT_MAX)))
    return Value(out, ((a, lambda g: g * out * (1 - out) * (np.abs(a.array) <= EXPONENT_MAX)),))


def minimum(a: Value, b: Value) -> Value:
    first = a.array <= b.array
    return Value(np.minimum(a.array, b.array), ((a, lambda g: g * first), (b, lambda g: g * ~first)))


def maximum(a: Value, b: Value) -> Value:
    first = a.array >= b.array
    return Value(np.maximum(a.array, b.array), ((a, lambda g: g * first), (b, lambda g: g * ~first)))


def clip(a: Value, low: Value, high: Value) -> Value:
    """a held between two bounds; no gradient for the bounds, none for a where it is held."""
    free = (a.array >= low.array) & (a.array <= high.array)
    return Value(np.minimum(np.maximum(a.array, low.array), high.array), ((a, lambda g: g * free),))


def where(condition: Value, a: Value, b: Value) -> Value:
    chosen = condition.array != 0
    return Value(np.where(chosen, a.array, b.array), ((a, lambda g: g * chosen), (b, lambda g: g * ~chosen)))


def stop(a: Value) -> Value:
    """The same numbers, through which no gradient passes."""
    return Value(a.array)


def mean_over(axes: Sequence[int], shape: Sequence[int]) -> Callable[[Value], Value]:
    """The mean over some axes of the full shape; kept as axes of length 1."""
    cells = int(np.prod([shape[axis] for axis in axes]))
    total = sum_over(axes, shape)
    return lambda a: multiply(total(a), Value(1.0 / cells))


def sum_over(axes: Sequence[int], shape: Sequence[int]) -> Callable[[Value], Value]:
    """The sum over some axes of the full shape: what is constant along one of them counts once a cell."""

    def function(a: Value) -> Value:
        stretched = _stretched(a.array, axes, shape)
        return Value(
            stretched.sum(axis=tuple(axes), keepdims=True), ((a, lambda g: np.broadcast_to(g, stretched.shape)),)
        )

    return function


def std_over(axes: Sequence[int], shape: Sequence[int]) -> Callable[[Value], Value]:
    """The standard deviation (n) over some axes; no gradient."""
    return lambda a: Value(_stretched(a.array, axes, shape).std(axis=tuple(axes), keepdims=True))


def max_over(axes: Sequence[int], shape: Sequence[int]) -> Callable[[Value], Value]:
    """The largest over some axes; no gradient."""
    return lambda a: Value(_stretched(a.array, axes, shape).max(axis=tuple(axes), keepdims=True))


def _stretched(array: Array, axes: Sequence[int], shape: Sequence[int]) -> Array:
    """The array with as many axes as `shape`, and full along `axes`: a bare number has a mean too."""
    padded = array.reshape((1,) * (len(shape) - array.ndim) + array.shape)
    full = tuple(shape[axis] if axis in axes else size for axis, size in enumerate(padded.shape))
    return np.broadcast_to(padded, full)
