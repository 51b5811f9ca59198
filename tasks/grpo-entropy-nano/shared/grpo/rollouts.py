"""Room: tasks. Sampling sequences from a policy; copied into packages."""

from dataclasses import dataclass

import numpy as np

from grpo.dialect import PAIRS, SAMPLES
from grpo.policy import LENGTH, OPERATORS, STATES, STOP, TINY, TOKENS, Floats, Inputs, Integers, Policy


@dataclass(frozen=True)
class Rollouts:
    """288 sequences, 12 of each of 24 pairs; arrays (288, 7) but for targets, rewards, truncated (288,)."""

    targets: Integers
    states: Integers
    tokens: Integers
    mask: Floats
    logp: Floats
    rewards: Floats
    truncated: Floats

    @property
    def alive(self) -> Integers:
        """Flat indices of the cells that hold a token."""
        return np.flatnonzero(self.mask.ravel())

    def decisions(self) -> tuple[Inputs, Integers]:
        """The distinct (target, state, position) of the cells that hold a token, and which one each cell is."""
        positions = np.tile(np.arange(LENGTH), len(self.targets))
        shape = (STATES, STATES, LENGTH)
        all_cells = (np.repeat(self.targets, LENGTH), self.states.ravel(), positions)
        codes = np.ravel_multi_index(tuple(cells[self.alive] for cells in all_cells), shape)
        distinct, which = np.unique(codes, return_inverse=True)
        return Inputs(*np.unravel_index(distinct, shape)), which


def rollouts_sample(operators: Integers, policy: Policy, pairs: Integers, random: np.random.Generator) -> Rollouts:
    """Sample at temperature 1: an operator moves the state, stop and junk end, the seventh token ends too."""
    state, targets = np.repeat(pairs[:, 0], SAMPLES), np.repeat(pairs[:, 1], SAMPLES)
    count = PAIRS * SAMPLES
    states, tokens = np.zeros((count, LENGTH), np.int64), np.zeros((count, LENGTH), np.int64)
    mask, logp = np.zeros((count, LENGTH)), np.zeros((count, LENGTH))
    alive, rewards, rows = np.ones(count, bool), np.zeros(count), np.arange(count)
    for position in range(LENGTH):
        probabilities = policy.forward(Inputs(targets, state, np.full(count, position)))[1]
        draws = random.random((count, 1))
        token = (draws > probabilities.cumsum(axis=1)).sum(axis=1).clip(0, TOKENS - 1)
        states[:, position], tokens[:, position], mask[:, position] = state, token, alive
        logp[:, position] = np.where(alive, np.log(probabilities[rows, token] + TINY), 0)
        stopped = alive & (token == STOP)
        rewards[stopped] = state[stopped] == targets[stopped]
        alive &= token < OPERATORS
        state = np.where(alive, operators[np.minimum(token, OPERATORS - 1), state], state)
    return Rollouts(targets, states, tokens, mask, logp, rewards, alive.astype(np.float64))
