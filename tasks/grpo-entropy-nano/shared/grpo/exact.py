"""Room: tasks. What a policy does on pairs, worked out exactly by dynamic programming; copied into packages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from grpo.policy import LENGTH, OPERATORS, STATES, STOP, TINY, TOKENS, Floats, Inputs, Integers, Policy

LEAST_ACCURACY = 0.01  # a pair below it has no distribution over correct sequences worth the name


@dataclass(frozen=True)
class Exact:
    """Means over pairs: probability of a correct sequence; entropy (nats) of the distribution over correct
    sequences, given correct; entropy (nats) of a token's distribution, over the tokens that are reached."""

    accuracy: float
    entropy: float
    token_entropy: float

    @classmethod
    def mean(cls, several: Sequence[Exact]) -> Exact:
        """The mean over worlds, of at least one."""
        rows = np.array([(one.accuracy, one.entropy, one.token_entropy) for one in several])
        return cls(*(float(figure) for figure in rows.mean(axis=0)))


def exact(operators: Integers, policy: Policy, pairs: Integers) -> Exact:
    """Measure a policy on pairs (n, 2) of start and target, for operators (6, 16)."""
    targets, count = pairs[:, 1], len(pairs)
    steps = [_probabilities(policy, targets, position) for position in range(LENGTH)]
    correct, weighted = _backward(operators, steps, targets)
    starts = (np.arange(count), pairs[:, 0])
    accuracy, log_mass = correct[starts], weighted[starts]
    # With p_i = P_i / A given correct: -sum p_i log p_i = -(sum P_i log P_i) / A + log A.
    known = np.maximum(accuracy, TINY)
    entropy = np.where(accuracy < LEAST_ACCURACY, 0.0, np.maximum(np.log(known) - log_mass / known, 0.0))
    return Exact(float(accuracy.mean()), float(entropy.mean()), _token_entropy(operators, steps, pairs))


def _probabilities(policy: Policy, targets: Integers, position: int) -> Floats:
    """(pairs, states, tokens): what the policy would do in every state."""
    count = len(targets)
    states = np.tile(np.arange(STATES), count)
    inputs = Inputs(np.repeat(targets, STATES), states, np.full(count * STATES, position))
    return policy.forward(inputs)[1].reshape(count, STATES, TOKENS)


def _backward(operators: Integers, steps: list[Floats], targets: Integers) -> tuple[Floats, Floats]:
    """Per pair and state: sum of P and sum of P log P over all correct ways on from here; from the end to the start."""
    at_target = (np.arange(STATES)[None] == targets[:, None]).astype(np.float64)
    correct, weighted = np.zeros_like(at_target), np.zeros_like(at_target)
    for probabilities in reversed(steps):
        logs = np.log(probabilities + TINY)
        stopping = at_target * probabilities[:, :, STOP]
        now, now_weighted = stopping, stopping * logs[:, :, STOP]
        for token in range(OPERATORS):
            p, then = probabilities[:, :, token], operators[token]
            now = now + p * correct[:, then]
            now_weighted = now_weighted + p * (logs[:, :, token] * correct[:, then] + weighted[:, then])
        correct, weighted = now, now_weighted
    return correct, weighted


def _token_entropy(operators: Integers, steps: list[Floats], pairs: Integers) -> float:
    reached = np.zeros((len(pairs), STATES))
    reached[np.arange(len(pairs)), pairs[:, 0]] = 1
    total = tokens = 0.0
    for probabilities in steps:
        total += float((reached * -(probabilities * np.log(probabilities + TINY)).sum(axis=-1)).sum())
        tokens += float(reached.sum())
        following = np.zeros_like(reached)
        for token in range(OPERATORS):
            following[:, operators[token]] += reached * probabilities[:, :, token]
        reached = following
    return total / tokens
