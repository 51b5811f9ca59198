"""Worlds, exact measures and training of grpo-entropy-nano; the traps that the task's design lists."""

import itertools
import json
from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest
from grpo.dialect import LANGUAGE
from grpo.exact import exact
from grpo.policy import LENGTH, OPERATORS, STATES, STOP, TOKENS, Adam, Inputs, Policy
from grpo.rollouts import rollouts_sample
from grpo.training import ProgramFailedError, train
from grpo.worlds import World, world_read, world_write
from lang.program import Program, program_parse

GRPO = {
    "let": [["adv", "(reward-group_mean(reward))/(group_std(reward)+0.0001)"], ["ratio", "exp(logp-old_logp)"]],
    "objective": "min(ratio*adv, clip(ratio,0.8,1.2)*adv)",
}


def program(**parts: object) -> Program:
    return program_parse(json.dumps(parts).encode(), LANGUAGE)


@pytest.fixture(scope="module")
def world(task_module: Callable[[str, str], ModuleType]) -> World:
    generator = task_module("grpo-entropy-nano", "generator")
    return generator.world_draw(generator.WorldSeeds(*(np.random.default_rng(seed) for seed in (1, 2, 3))))


def test_the_world_keeps_all_mends_of_the_first_one(world: World):
    """Trap 1: junk tokens, a weak start, 180 train pairs, and solution entropy beside token entropy."""
    start = exact(world.operators, world.start, world.test)
    assert TOKENS - STOP - 1 == 24
    assert (len(world.train), len(world.test)) == (180, 60)
    assert 0.02 < start.accuracy < 0.06
    assert 2.6 < start.entropy < 4.0
    assert 2.0 < start.token_entropy < 2.7


@pytest.mark.parametrize("objective", ["1", "0*logp", "reward", "progress", "group_mean(1)*logp"])
def test_an_objective_of_any_shape_trains(world: World, objective: str):
    """Trap 2: it is broadcast to (24, 12, 7) first."""
    policy = train(world, program(objective=objective), seed=0, rounds=2)
    assert all(np.isfinite(parameter).all() for parameter in policy.parameters)


def test_padding_holds_no_numbers(world: World):
    """Trap 3: old_logp is 0 where there is no token, and training doesn't look there."""
    rollouts = rollouts_sample(world.operators, world.start, world.train[:24], np.random.default_rng(0))
    assert (rollouts.logp[rollouts.mask == 0] == 0).all()
    assert (rollouts.logp[rollouts.mask == 1] < 0).all()
    plain = train(world, program(objective="reward*logp"), seed=0, rounds=1)
    masked = train(world, program(objective="reward*logp + where(mask>0, 0, 1000*logp)"), seed=0, rounds=1)
    assert np.allclose(plain.parameters[2], masked.parameters[2])


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"objective": "0*(1000000**60)*logp"}, "objective is not finite: round 1, step 1"),
        (
            {"let": [["big", "1000000**40"], ["bad", "big*big"]], "objective": "logp"},
            "bad is not finite: round 1, step 1",
        ),
        ({"objective": "logp*1000000**50*1000000"}, "the gradient is not finite: round 1, step 1"),
        ({"objective": "logp", "sampling": "1000000**60"}, "sampling is not finite: round 1"),
        ({"objective": "logp", "weight": "1000000**60"}, "weight is not finite: round 1, step 1"),
    ],
)
def test_a_value_that_is_not_finite_is_the_programs_fault(world: World, parts: dict[str, object], message: str):
    """Trap 4: values and gradients are checked at each step, so no metric is ever NaN."""
    with pytest.raises(ProgramFailedError) as caught:
        train(world, program(**parts), seed=0, rounds=1)
    assert str(caught.value) == message


def test_a_negative_weight_is_refused(world: World):
    """Trap 5: the token mean divides by the sum of weights."""
    with pytest.raises(ProgramFailedError, match="weight is negative: round 1, step 1"):
        train(world, program(objective="logp", weight="reward-1"), seed=0, rounds=1)


@pytest.mark.parametrize("sampling", ["0-1", "seen*1000000**50", "where(seen, 0, 1000000**49)", "pass_rate"])
def test_any_finite_draw_weights_can_be_drawn_by(world: World, sampling: str):
    train(world, program(objective="logp", sampling=sampling), seed=0, rounds=3)


def test_training_repeats_and_leaves_the_start_alone(world: World):
    before = [parameter.copy() for parameter in world.start.parameters]
    first, second = (train(world, program(**GRPO, aggregate="token"), seed=5, rounds=3) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first.parameters, second.parameters, strict=True))
    assert all(np.array_equal(a, b) for a, b in zip(before, world.start.parameters, strict=True))


def never_stopping_after(policy: Policy, position: int) -> Policy:
    """The same habits, but from `position` on a stop has no chance: one hidden unit sees to it."""
    hidden, bias, out, out_bias = (parameter.copy() for parameter in policy.parameters)
    hidden[:, 0], bias[0], out[0] = 0, 0, 0
    hidden[2 * STATES + position :, 0], out[0, STOP] = 50, -1000
    return Policy([hidden, bias, out, out_bias])


def test_exact_figures_equal_those_of_all_sequences_written_out(world: World):
    pair, policy = np.array([3, world.operators[0, 3]]), never_stopping_after(world.start, 4)
    states = np.arange(STATES)
    steps = [policy.forward(Inputs(np.full(16, pair[1]), states, np.full(16, place)))[1] for place in range(LENGTH)]
    correct = []
    for tokens in itertools.chain(*(itertools.product(range(OPERATORS), repeat=length) for length in range(4))):
        state, chance = int(pair[0]), 1.0
        for place, token in enumerate(tokens):
            chance *= steps[place][state, token]
            state = int(world.operators[token, state])
        if state == pair[1]:
            correct.append(chance * steps[len(tokens)][state, STOP])
    shares = np.array(correct) / sum(correct)
    whole = exact(world.operators, policy, pair[None])
    assert whole.accuracy == pytest.approx(sum(correct), rel=1e-6)
    assert whole.accuracy >= 0.01
    assert whole.entropy == pytest.approx(-(shares * np.log(shares)).sum(), rel=1e-6)


def test_the_policys_gradient_equals_finite_differences(world: World):
    random = np.random.default_rng(4)
    inputs = Inputs(random.integers(16, size=30), random.integers(16, size=30), random.integers(7, size=30))
    tokens, rows = random.integers(TOKENS, size=30), np.arange(30)
    hidden, probabilities = world.start.forward(inputs)
    logits = -probabilities
    logits[rows, tokens] += 1
    gradients = world.start.gradients(inputs, hidden, logits)
    directions = [random.normal(size=parameter.shape) for parameter in world.start.parameters]

    def likelihood(step: float) -> float:
        moved = Policy([p + step * d for p, d in zip(world.start.parameters, directions, strict=True)])
        return float(np.log(moved.forward(inputs)[1][rows, tokens]).sum())

    slope = (likelihood(1e-6) - likelihood(-1e-6)) / 2e-6
    given = sum(float((gradient * direction).sum()) for gradient, direction in zip(gradients, directions, strict=True))
    assert given == pytest.approx(slope, rel=1e-5)


def test_the_optimiser_refuses_a_gradient_that_is_not_finite(world: World):
    adam = Adam(Policy([parameter.copy() for parameter in world.start.parameters]), 1e-3, 1.0)
    with pytest.raises(FloatingPointError), np.errstate(all="ignore"):
        adam.climb([np.full_like(parameter, 1e300) for parameter in world.start.parameters])


def test_a_world_survives_its_file(world: World, tmp_path):
    world_write(tmp_path / "world.npz", world)
    again = world_read(tmp_path / "world.npz")
    assert np.array_equal(again.operators, world.operators)
    assert np.array_equal(again.test, world.test)
    assert np.array_equal(again.start.parameters[0], world.start.parameters[0])
