"""The expression language: what it computes, and that no text makes it do anything else."""

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.formula import FormulaError, curve_value, formula_names, formula_value

VALUES = {"a": Decimal("0.5"), "b": Decimal(2), "zero": Decimal(0)}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a + b * 3", "6.5"),
        ("-(a - b) ** 2", "-2.25"),
        ("min(a, b, 1) + max(a, 0.25)", "1.0"),
        ("clamp(b, 0, 1)", "1"),
        ("100 if a > b else 7", "7"),
        ("sqrt(b * b)", "2"),
        ("abs(-b) / 4", "0.5"),
        ("0.1 + 0.2", "0.3"),
        ("(a >= 0.5) * 10", "10"),
    ],
)
def test_formulas_have_the_value_one_expects(text: str, value: str) -> None:
    assert formula_value(text, VALUES) == Decimal(value)


@pytest.mark.parametrize(
    "text",
    ["a / zero", "log(zero)", "sqrt(-b)", "exp(1000000000)", "exp(exp(exp(100)))", "1e400", "zero / zero", "log(-1)"],
)
def test_a_formula_without_a_value_says_so(text: str) -> None:
    with pytest.raises(FormulaError):
        formula_value(text, VALUES)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')", "a.__class__", "[a]", "a if", "lambda: a", "f'{a}'", "True", "'a' * 9", "a < b < 1",
        "a and b",
        "b ** b",
        "b ** 99999999", "b ** -1", "min(a)", "min(*[a, b])", "max(a, key=b)", "print(a)", "(a := 1)", "a // b",
        "~b",
        "", "1j", "c", "a" * 2000, "+".join(["a"] * 300), "(" * 300, "a\0b", "yield a", "await a",
    ],
)  # fmt: skip
def test_what_is_not_in_the_language_is_refused(text: str) -> None:
    with pytest.raises(FormulaError):
        formula_value(text, VALUES)


@settings(max_examples=300)
@given(st.text(alphabet="ab10.+-*/()<>=,% eilnmxsqrt", max_size=40) | st.text(max_size=40))
def test_no_text_raises_anything_but_its_own_error(text: str) -> None:
    try:
        value = formula_value(text, VALUES)
    except FormulaError:
        return
    assert value.is_finite()


def test_the_names_a_formula_uses_are_known() -> None:
    assert formula_names("max(a, 0) if b > 1 else 2", VALUES) == {"a", "b"}


@given(st.lists(st.floats(-10, 10), min_size=2, max_size=6, unique=True), st.floats(-20, 20))
def test_a_curve_stays_between_its_points(places: list[float], at: float) -> None:
    points = [(Decimal(repr(x)), Decimal(index % 2)) for index, x in enumerate(sorted(places))]
    assert 0 <= curve_value(points, Decimal(repr(at))) <= 1
    assert all(curve_value(points, x) == y for x, y in points)
