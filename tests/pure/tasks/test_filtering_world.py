"""The world of worked-example-filtering-nano, as its design describes it."""

import itertools
from collections import Counter
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tasks.common.seeds import SeedTree, seed_parse

TASK = "worked-example-filtering-nano"


@pytest.fixture(scope="module")
def generator(task_module: Callable[[str, str], ModuleType]) -> ModuleType:
    return task_module(TASK, "generator")


@pytest.fixture(scope="module")
def world(generator: ModuleType) -> Any:
    sizes = generator.Sizes(rows=10_000, tests=800, trainer_seeds=4)
    return generator.world_draw(SeedTree(seed_parse("ab" * 32)), sizes)


@pytest.mark.parametrize(
    ("style", "worked"),
    [
        ("aligned", "........2.0.2#2"),
        ("rewriting", "0%0=2#2"),
        ("running", "2@4=0;0%0=2;#2"),
        ("direct", "#2"),
    ],
)
def test_each_style_writes_the_same_steps_in_its_own_way(generator: ModuleType, style: str, worked: str):
    problem = generator.Problem((2, 4, 0), "@%")
    assert problem.question == "2@4%0="
    assert generator.worked_text(generator.Style(style), problem, [2, 0, 2]) == worked


def test_a_slip_is_carried_on(generator: ModuleType):
    table = np.array([[[(left + right) % 8 for right in range(8)] for left in range(8)]] * 3)
    problem = generator.Problem((1, 1, 1, 1, 1), "@%&@")
    assert generator.values_of(table, problem) == [1, 2, 3, 4, 5]
    slipped = generator.values_of(table, problem, 1.0, np.random.default_rng(0))
    assert all(value != (before + 1) % 8 for before, value in itertools.pairwise(slipped))


def test_the_mix_of_authors_is_as_designed(generator: ModuleType):
    kinds = Counter((author.school, author.style == "aligned") for author in generator.AUTHORS)
    assert len(generator.AUTHORS) == 40
    assert kinds == {
        ("true", True): 13,
        ("true", False): 5,
        ("other", True): 16,
        ("other", False): 3,
        ("mixed", True): 3,
    }


def test_about_half_of_the_rows_are_right_and_a_few_leak(world: Any):
    """Seed 0 of the prototype: 49 % right, 195 leaked, 7,708 distinct questions."""
    benchmark = set(world.benchmark)
    assert 0.44 < np.mean([row.right for row in world.rows]) < 0.55
    assert 150 < sum(row.question in benchmark for row in world.rows) < 290
    assert 7_400 < len({row.question for row in world.rows}) < 8_000
    assert len({row.author for row in world.rows}) == 40


def test_the_hidden_test_shares_no_question_with_the_benchmark(world: Any):
    assert not {question for question, _ in world.test} & set(world.benchmark)
    assert {len(question) for question, _ in world.test} == {6, 8, 10, 12, 14}
    assert {len(question) for question, _ in world.dev} == {6, 8, 10}


def test_other_sizes_leave_the_public_files_of_a_seed_alone(generator: ModuleType, world: Any):
    small = generator.world_draw(SeedTree(seed_parse("ab" * 32)), generator.Sizes(10_000, 20, 1))
    assert (small.rows, small.dev) == (world.rows, world.dev)


def test_nothing_public_tells_the_hidden_streams(generator: ModuleType, world: Any):
    """Another secret draws another world, whatever its first half is."""
    other = generator.world_draw(SeedTree(seed_parse("ab" * 31 + "ac")), generator.Sizes(1_000, 800, 4))
    assert not set(other.trainer_seeds) & set(world.trainer_seeds)
    assert [question for question, _ in other.test] != [question for question, _ in world.test]
