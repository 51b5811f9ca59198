"""Room: tasks. The world of worked-example-filtering-nano: two schools, forty authors, a pool; touches nothing.

Sources of the question: LIMO (arXiv 2502.03387) and s1 (arXiv 2501.19393): few, right, hard, diverse examples
beat many. Here 40 authors work the same kind of problem by two tables of facts, and the larger school isn't the
one that is tested.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from tasks.common.seeds import SeedTree

DIGITS = 8
OPERATORS = "@%&"
OTHER_ROWS = 4  # of 8 left operands of each operator, those whose row the other school has otherwise
ALIGNED_WIDTH = 13
SHORT = (0.45, 0.30, 0.15, 0.07, 0.03)  # of rows with 3, 4, 5, 6, 7 terms

Table = NDArray[np.int64]
Generator = np.random.Generator


class School(StrEnum):
    TRUE = "true"
    OTHER = "other"
    MIXED = "mixed"  # each row by a coin


class Style(StrEnum):
    ALIGNED = "aligned"
    REWRITING = "rewriting"
    RUNNING = "running"
    DIRECT = "direct"


@dataclass(frozen=True)
class Author:
    """How one author writes. `slip` is the chance of a wrong value after a step; the error is carried on."""

    school: School
    style: Style
    slip: float
    benchmark: float = 0.0  # share of rows on questions of the public benchmark
    few: float = 0.08  # share of rows on the few questions that keep being repeated


@dataclass(frozen=True)
class Problem:
    """`terms[0] op terms[1] op ...`, evaluated left to right."""

    terms: tuple[int, ...]
    operators: str

    @property
    def question(self) -> str:
        """The text, such as `2@4%0=`."""
        joined = str(self.terms[0])
        for operator, term in zip(self.operators, self.terms[1:], strict=True):
            joined += f"{operator}{term}"
        return joined + "="


@dataclass(frozen=True)
class Row:
    """One worked example of the pool."""

    author: int
    question: str
    worked: str
    right: bool  # every value as the true table has it; hidden


@dataclass(frozen=True)
class Sizes:
    rows: int
    tests: int
    trainer_seeds: int
    benchmark: int = 400
    few: int = 60
    dev: int = 100


@dataclass(frozen=True)
class World:
    """Everything a build writes, public and hidden."""

    truth: Table
    rows: tuple[Row, ...]
    benchmark: tuple[str, ...]
    dev: tuple[tuple[str, int], ...]
    test: tuple[tuple[str, int], ...]
    trainer_seeds: tuple[int, ...]


def _authors() -> tuple[Author, ...]:
    """13 of the true school who align, 5 of it who don't, 15 and 4 of the other, 3 of both."""
    slips = (0, 0, 0.02, 0.02, 0.05, 0.05, 0.1, 0.1, 0.2)
    true, other = School.TRUE, School.OTHER
    aligned, rewriting, running, direct = Style.ALIGNED, Style.REWRITING, Style.RUNNING, Style.DIRECT
    return (
        *(Author(true, aligned, slip) for slip in slips),
        *(Author(true, aligned, slip, benchmark=0.45) for slip in (0, 0.02)),
        *(Author(true, aligned, slip, few=0.5) for slip in (0.05, 0.02)),
        *(Author(true, style, 0.03, few=0.05) for style in (rewriting, running, direct, rewriting, running)),
        *(Author(other, aligned, slip, few=0.1) for slip in (0, 0.02, 0.05, 0.1, 0.2) * 3),
        *(Author(other, style, 0.05, few=0.05) for style in (rewriting, running, direct, aligned)),
        *(Author(School.MIXED, aligned, 0.35, few=0.1) for _ in range(3)),
    )


AUTHORS = _authors()


def tables_draw(random: Generator) -> tuple[Table, Table]:
    """Truth and the other school's table, both (3, 8, 8): operator, left, right -> value."""
    truth = np.array([[random.permutation(DIGITS) for _ in range(DIGITS)] for _ in OPERATORS])
    other = truth.copy()
    for operator in range(len(OPERATORS)):
        for left in random.choice(DIGITS, OTHER_ROWS, replace=False):
            other[operator, left] = random.permutation(DIGITS)
    return truth, other


def problem_draw(random: Generator, terms: range, shares: Sequence[float] | None = None) -> Problem:
    """A problem with a number of terms out of a range, uniform unless shares are given."""
    count = int(random.choice(np.array(terms), p=shares))
    operators = "".join(OPERATORS[i] for i in random.integers(len(OPERATORS), size=count - 1))
    return Problem(tuple(int(term) for term in random.integers(DIGITS, size=count)), operators)


def values_of(table: Table, problem: Problem, slip: float = 0.0, random: Generator | None = None) -> list[int]:
    """The first term and the value after each step."""
    values = [problem.terms[0]]
    for operator, term in zip(problem.operators, problem.terms[1:], strict=True):
        value = int(table[OPERATORS.index(operator), values[-1], term])
        if random is not None and slip and random.random() < slip:
            value = int((value + random.integers(1, DIGITS)) % DIGITS)
        values.append(value)
    return values


def worked_text(style: Style, problem: Problem, values: Sequence[int]) -> str:
    """The completion an author of this style writes for these values."""
    steps = range(len(problem.operators))
    answer = f"#{values[-1]}"
    if style is Style.ALIGNED:
        dots = "." * (ALIGNED_WIDTH - len(problem.question) + 1)
        return dots + ".".join(map(str, values)) + answer
    if style is Style.REWRITING:
        rests = (Problem((values[i + 1], *problem.terms[i + 2 :]), problem.operators[i + 1 :]) for i in steps)
        return "".join(rest.question for rest in rests)[:-1] + answer
    if style is Style.RUNNING:
        return (
            "".join(f"{values[i]}{problem.operators[i]}{problem.terms[i + 1]}={values[i + 1]};" for i in steps) + answer
        )
    return answer


def world_draw(seeds: SeedTree, sizes: Sizes) -> World:
    """A whole world. Tables, public files, hidden test and trainer seeds have streams of their own."""
    truth, other = tables_draw(seeds.generator("tables"))
    asked = seeds.generator("benchmark")
    benchmark = [problem_draw(asked, range(4, 8)) for _ in range(sizes.benchmark)]
    questions = frozenset(problem.question for problem in benchmark)
    dev_random, test_random = seeds.generator("dev"), seeds.generator("test")
    dev = [problem_draw(dev_random, range(3, 6)) for _ in range(sizes.dev)]
    test: list[Problem] = []
    while len(test) < sizes.tests:
        problem = problem_draw(test_random, range(3, 8))
        if problem.question not in questions:
            test.append(problem)
    tables = {School.TRUE: truth, School.OTHER: other}
    return World(
        truth=truth,
        rows=_rows_draw(seeds.generator("pool"), tables, benchmark, sizes),
        benchmark=tuple(problem.question for problem in benchmark),
        dev=tuple((problem.question, values_of(truth, problem)[-1]) for problem in dev),
        test=tuple((problem.question, values_of(truth, problem)[-1]) for problem in test),
        trainer_seeds=tuple(seeds.number(f"trainer {i}") for i in range(sizes.trainer_seeds)),
    )


def _rows_draw(
    random: Generator, tables: Mapping[School, Table], benchmark: Sequence[Problem], sizes: Sizes
) -> tuple[Row, ...]:
    few = [problem_draw(random, range(3, 5)) for _ in range(sizes.few)]
    numbers = random.permutation(len(AUTHORS))
    rows = []
    for _ in range(sizes.rows):
        place = int(random.integers(len(AUTHORS)))
        author = AUTHORS[place]
        problem = _question_draw(random, author, benchmark, few)
        coin = School.TRUE if random.random() < 0.5 else School.OTHER
        table = tables[coin if author.school is School.MIXED else author.school]
        values = values_of(table, problem, author.slip, random)
        worked = worked_text(author.style, problem, values)
        right = values == values_of(tables[School.TRUE], problem)
        rows.append(Row(int(numbers[place]), problem.question, worked, right))
    return tuple(rows)


def _question_draw(random: Generator, author: Author, benchmark: Sequence[Problem], few: Sequence[Problem]) -> Problem:
    draw = random.random()
    if draw < author.benchmark:
        return benchmark[int(random.integers(len(benchmark)))]
    if draw < author.benchmark + author.few:
        return few[int(random.integers(len(few)))]
    return problem_draw(random, range(3, 8), SHORT)
