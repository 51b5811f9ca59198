"""Room: tasks. Training a policy by a submitted program; copied to the workspace and to the evaluation.

A round: 24 train pairs, 12 samples each, 8 full-batch Adam steps uphill on the program's objective. Whatever a
program does wrong while it runs ends in ProgramFailedError and is the program's fault, never the trainer's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from lang.autodiff import Value, backward, unbroadcast
from lang.program import NotFiniteError, Program

from grpo.dialect import DIFFERENTIABLE, PAIRS, SAMPLES, SHAPE
from grpo.policy import LENGTH, TINY, TOKENS, Adam, Floats, Integers, Policy
from grpo.rollouts import Rollouts, rollouts_sample
from grpo.worlds import World

ROUNDS = 200
STEPS = 8
RATE = 4e-3
NORM = 1.0
MEMORY = 0.5  # of the moving average of a pair's pass rate
LEAST_SHARE = 1e-12  # of the largest draw weight: smaller ones would vanish in the sum


class ProgramFailedError(Exception):
    """The program gave something that can't be trained on: `what`, and at which round and step."""

    def __init__(self, what: str, place: str) -> None:
        super().__init__(f"{what}: {place}")
        self.what, self.place = what, place


class NegativeWeightError(ArithmeticError):
    """A weight below 0: the token mean divides by their sum."""


PROGRAM_FAULTS = (NotFiniteError, NegativeWeightError, FloatingPointError)


@dataclass
class History:
    """What is remembered of the train pairs: a moving average of their pass rates, NaN where never drawn."""

    rates: Floats

    def record(self, index: Integers, rates: Floats) -> None:
        old = self.rates[index]
        self.rates[index] = np.where(np.isnan(old), rates, (1 - MEMORY) * old + MEMORY * rates)


def train(world: World, program: Program, seed: int, rounds: int = ROUNDS) -> Policy:
    """The policy after training from the world's start checkpoint. Raises ProgramFailedError."""
    policy = Policy([parameter.copy() for parameter in world.start.parameters])
    adam = Adam(policy, RATE, NORM)
    random = np.random.default_rng(seed)
    history = History(np.full(len(world.train), np.nan))
    place = ""
    try:
        for number in range(rounds):
            place = f"round {number + 1}"
            index = _pairs_draw(program, history, random, number / rounds)
            rollouts = rollouts_sample(world.operators, policy, world.train[index], random)
            history.record(index, rollouts.rewards.reshape(PAIRS, SAMPLES).mean(axis=1))
            batch = _Batch(policy, rollouts, history.rates[index], number / rounds)
            for step in range(STEPS):
                place = f"round {number + 1}, step {step + 1}"
                batch.climb(program, adam)
    except PROGRAM_FAULTS as error:
        raise ProgramFailedError(str(error), place) from None
    return policy


def _pairs_draw(program: Program, history: History, random: np.random.Generator, progress: float) -> Integers:
    count = len(history.rates)
    if "sampling" not in program.outputs:
        return random.choice(count, PAIRS, replace=False)
    seen = ~np.isnan(history.rates)
    variables = {
        "pass_rate": Value(np.where(seen, history.rates, 0.5)),
        "seen": Value(seen.astype(np.float64)),
        "progress": Value(progress),
    }
    weights = program.run(variables, ("sampling",))["sampling"].array
    floored = np.maximum(np.broadcast_to(weights, (count,)), 1e-6)
    shares = np.maximum(floored / floored.max(), LEAST_SHARE)
    return random.choice(count, PAIRS, replace=False, p=shares / shares.sum())


class _Batch:
    """The samples of one round, as the program sees them.

    Many cells are the same decision (target, state, position), so the network runs on the distinct ones only
    (`inputs`), and `decision` says which one each cell is: the same sums, at a fraction of the work.
    """

    def __init__(self, policy: Policy, rollouts: Rollouts, history: Floats, progress: float) -> None:
        self.alive = rollouts.alive
        self.inputs, self.decision = rollouts.decisions()
        self.tokens = rollouts.tokens.ravel()[self.alive]
        self.mask = rollouts.mask.reshape(SHAPE)
        self.length = self.mask.sum(axis=2, keepdims=True)
        probabilities = policy.forward(self.inputs)[1]
        rewards = rollouts.rewards.reshape(PAIRS, SAMPLES, 1)
        self.fixed: Mapping[str, Value] = {
            "reward": Value(rewards),
            "old_logp": Value(rollouts.logp.reshape(SHAPE)),
            "old_entropy": Value(self._full(_entropies(probabilities)[self.decision])),
            "mask": Value(self.mask),
            "length": Value(self.length),
            "truncated": Value(rollouts.truncated.reshape(PAIRS, SAMPLES, 1)),
            "pass_rate": Value(rewards.mean(axis=1, keepdims=True)),
            "history": Value(history.reshape(PAIRS, 1, 1)),
            "position": Value(np.arange(LENGTH, dtype=np.float64).reshape(1, 1, LENGTH)),
            "max_length": Value(float(LENGTH)),
            "progress": Value(progress),
        }

    def climb(self, program: Program, adam: Adam) -> None:
        """One Adam step. Raises what PROGRAM_FAULTS lists."""
        hidden, probabilities = adam.policy.forward(self.inputs)
        logs = np.log(probabilities + TINY)
        entropies = _entropies(probabilities)
        moving = {
            "logp": Value(self._full(logs[self.decision, self.tokens]), traced=True),
            "entropy": Value(self._full(entropies[self.decision]), traced=True),
        }
        results = program.run({**self.fixed, **moving}, ("objective", "weight"))
        with np.errstate(all="ignore"):
            self._pull(results, program.choices["aggregate"])
            by_logp, by_entropy = (self._gradient(moving[name], name) for name in DIFFERENTIABLE)
            logits = self._summed(by_logp, self.tokens)
            logits -= probabilities * logits.sum(axis=1, keepdims=True)
            by_decision = np.bincount(self.decision, by_entropy, minlength=len(probabilities))
            logits -= by_decision[:, None] * probabilities * (logs + entropies[:, None])
            adam.climb(adam.policy.gradients(self.inputs, hidden, logits))

    def _summed(self, cells: Floats, tokens: Integers) -> Floats:
        """(decisions, tokens): the sum of what stands in the cells of each decision and token."""
        count = len(self.inputs.targets)
        flat = np.bincount(self.decision * TOKENS + tokens, cells, minlength=count * TOKENS)
        return np.asarray(flat, dtype=np.float64).reshape(count, TOKENS)

    def _pull(self, results: Mapping[str, Value], aggregate: str) -> None:
        """Send each cell's share of the objective back through the program."""
        weight = np.broadcast_to(results["weight"].array if "weight" in results else 1.0, SHAPE)
        if (weight < 0).any():
            message = "weight is negative"
            raise NegativeWeightError(message)
        weight = weight * self.mask
        if aggregate == "sequence":
            shares = weight / np.maximum(self.length, 1) / (PAIRS * SAMPLES)
        else:
            shares = weight / max(float(weight.sum()), 1.0)
        objective = results["objective"]
        if objective.traced:
            backward(objective, unbroadcast(shares, objective.array.shape))

    def _gradient(self, value: Value, name: str) -> Floats:
        if value.gradient is None:
            return np.zeros(len(self.alive))
        if not np.isfinite(value.gradient).all():
            raise NotFiniteError(f"the gradient of objective by {name}")
        return np.asarray(value.gradient.ravel()[self.alive])

    def _full(self, cells: Floats) -> Floats:
        """Values of the cells that hold a token, as (24, 12, 7), 0 elsewhere."""
        out = np.zeros(self.mask.size)
        out[self.alive] = cells
        return out.reshape(SHAPE)


def _entropies(probabilities: Floats) -> Floats:
    return np.asarray(-(probabilities * np.log(probabilities + TINY)).sum(axis=1))
