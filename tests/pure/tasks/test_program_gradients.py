"""Programs that run: finite or refused, gradients as finite differences give them."""

import contextlib
import json

import numpy as np
import pytest
from grpo.dialect import FUNCTIONS, LANGUAGE, SHAPE
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from lang.autodiff import Value, backward
from lang.program import Language, NotFiniteError, Output, program_parse

RANDOM = np.random.default_rng(7)
FIXED = {
    "old_logp": -RANDOM.exponential(1, SHAPE),
    "old_entropy": RANDOM.uniform(0.1, 3, SHAPE),
    "mask": (RANDOM.random(SHAPE) < 0.8).astype(float),
    "reward": (RANDOM.random((*SHAPE[:2], 1)) < 0.5).astype(float),
    "length": RANDOM.integers(1, 8, (*SHAPE[:2], 1)).astype(float),
    "truncated": (RANDOM.random((*SHAPE[:2], 1)) < 0.1).astype(float),
    "pass_rate": RANDOM.random((SHAPE[0], 1, 1)),
    "history": RANDOM.random((SHAPE[0], 1, 1)),
    "position": np.arange(7.0).reshape(1, 1, 7),
    "max_length": np.array(7.0),
    "progress": np.array(0.37),
}
LOGP = -RANDOM.exponential(1, SHAPE)
ENTROPY = RANDOM.uniform(0.1, 3, SHAPE)

leaves = st.sampled_from([*FIXED, "logp", "logp", "entropy", "0.3", "2", "1.5"])
UNARY = [name for name, (_, count) in FUNCTIONS.items() if count == 1]
BINARY = [name for name, (_, count) in FUNCTIONS.items() if count == 2]


def wider(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operator = st.sampled_from(["+", "-", "*", "/", "**", "<", ">="])
    return (
        st.tuples(inner, operator, inner).map(lambda parts: f"({parts[0]} {parts[1]} {parts[2]})")
        | st.tuples(st.sampled_from(UNARY), inner).map(lambda parts: f"{parts[0]}({parts[1]})")
        | st.tuples(st.sampled_from(BINARY), inner, inner).map(lambda parts: f"{parts[0]}({parts[1]}, {parts[2]})")
        | st.tuples(st.sampled_from(["clip", "where"]), inner, inner, inner).map(
            lambda p: f"{p[0]}({', '.join(p[1:])})"
        )
    )


EXPRESSIONS = st.recursive(leaves, wider, max_leaves=8)


def run(expression: str, logp: np.ndarray = LOGP, entropy: np.ndarray = ENTROPY) -> tuple[Value, Value, Value]:
    program = program_parse(json.dumps({"objective": expression}).encode(), LANGUAGE)
    moving = Value(logp, traced=True), Value(entropy, traced=True)
    variables = {**{name: Value(array) for name, array in FIXED.items()}, "logp": moving[0], "entropy": moving[1]}
    return program.run(variables, ("objective",))["objective"], *moving


@given(EXPRESSIONS)
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_a_program_runs_or_says_that_a_value_is_not_finite(expression: str):
    with contextlib.suppress(NotFiniteError), np.errstate(all="ignore"):
        result, *moving = run(expression)
        backward(result, np.ones(result.array.shape))
        assert np.broadcast_shapes(result.array.shape, SHAPE) == SHAPE
        assert all(value.gradient is None or value.gradient.shape == SHAPE for value in moving)


@pytest.mark.parametrize(
    "expression",
    [
        "logp + entropy * 2",
        "logp - entropy / (1 + entropy)",
        "exp(logp - old_logp) * reward",
        "min(exp(logp-old_logp) * reward, clip(exp(logp-old_logp), 0.8, 1.2) * reward)",
        "max(logp, old_logp) ** 2",
        "(0 - logp) ** 1.5",
        "entropy ** (0 - 2)",
        "log(entropy) + sqrt(entropy)",
        "abs(logp) * tanh(logp) + sigmoid(entropy)",
        "where(reward > 0.5, logp, entropy * logp)",
        "group_mean(logp) * batch_mean(entropy * mask)",
        "seq_sum(logp * mask) * position",
        "exp(100 + logp) + log(0 * logp)",
        "logp * stop(1) + group_mean(2) + seq_sum(progress)",
    ],
)
def test_gradients_equal_finite_differences(expression: str):
    result, *moving = run(expression)
    seed = np.random.default_rng(3).normal(size=result.array.shape)
    backward(result, seed)
    step = 1e-6
    for index, value in enumerate(moving):
        direction = np.random.default_rng(index).normal(size=SHAPE)
        ahead = [LOGP, ENTROPY]
        behind = [LOGP, ENTROPY]
        ahead[index], behind[index] = ahead[index] + step * direction, behind[index] - step * direction
        slope = ((run(expression, *ahead)[0].array - run(expression, *behind)[0].array) * seed).sum() / (2 * step)
        given_slope = 0.0 if value.gradient is None else float((value.gradient * direction).sum())
        assert given_slope == pytest.approx(slope, rel=1e-4, abs=1e-4)


SMOOTH_LEAVES = st.sampled_from(["logp", "entropy", "reward", "old_logp", "0.3", "2", "position"])


def smooth(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda parts: f"({parts[0]} {parts[1]} {parts[2]})") | (
        st.tuples(st.sampled_from(["tanh", "sigmoid", "group_mean", "batch_mean", "seq_sum"]), inner)
    ).map(lambda parts: f"{parts[0]}({parts[1]})")


@given(st.recursive(SMOOTH_LEAVES, smooth, max_leaves=6))
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_gradients_of_any_smooth_program_equal_finite_differences(expression: str):
    result, moving, _ = run(expression)
    assume(float(np.abs(result.array).max()) < 1e4)
    backward(result, np.ones(result.array.shape))
    direction = np.random.default_rng(1).normal(size=SHAPE)
    step = 1e-6
    slope = (
        run(expression, LOGP + step * direction)[0].array - run(expression, LOGP - step * direction)[0].array
    ).sum()
    found = 0.0 if moving.gradient is None else float((moving.gradient * direction).sum())
    assert found == pytest.approx(slope / (2 * step), rel=1e-3, abs=max(1e-3, 1e-7 * float(np.abs(result.array).sum())))


@pytest.mark.parametrize(
    "through", ["stop({})", "group_std({})", "batch_std({})", "group_max({})", "2 ** {}", "{} > 0"]
)
def test_no_gradient_passes_where_none_should(through: str):
    result, moving, _ = run(through.format("logp"))
    backward(result, np.ones(result.array.shape))
    assert moving.gradient is None


def test_bounds_of_clip_get_no_gradient():
    result, logp, entropy = run("clip(logp, 0 - entropy, entropy)")
    backward(result, np.ones(result.array.shape))
    assert logp.gradient is not None
    assert entropy.gradient is None


def test_a_let_is_worked_out_once_however_often_it_is_used():
    """Work is bounded by the nodes of the text: doubling lets don't double the work."""
    calls = []

    def counted(a: Value) -> Value:
        calls.append(1)
        return a

    functions = {"f": (counted, 1)}
    language = Language(frozenset({"x"}), functions, {"objective": Output(frozenset({"x"}), functions)})
    lets = [["a0", "f(x)"], *([f"a{i}", f"f(a{i - 1}) * f(a{i - 1})"] for i in range(1, 16))]
    program = program_parse(json.dumps({"let": lets, "objective": "a15"}).encode(), language)
    program.run({"x": Value(1.0)}, ("objective",))
    assert len(calls) == 31 < program.nodes
