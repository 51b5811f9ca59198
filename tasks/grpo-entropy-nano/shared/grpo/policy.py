"""Room: tasks. The policy of grpo-entropy-nano: a small network, its gradient, its optimiser; copied into packages.

State, target and place in the sequence go in as one-hot features, 64 tanh units, logits over 31 tokens, float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

STATES = 16
OPERATORS = 6
STOP = OPERATORS  # ends a sequence; all tokens above it are junk and end it without a reward
JUNK = 24
TOKENS = OPERATORS + 1 + JUNK
LENGTH = 7  # most tokens of a sequence
HIDDEN = 64
FEATURES = STATES + STATES + LENGTH
TINY = 1e-12

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Inputs:
    """What the policy sees, one row a decision: target, state, position."""

    targets: Integers
    states: Integers
    positions: Integers

    def chosen(self, index: NDArray[np.intp] | Integers) -> Inputs:
        return Inputs(self.targets[index], self.states[index], self.positions[index])


@dataclass
class Policy:
    """Weights (39, 64), (64,), (64, 31), (31,); changed in place by training."""

    parameters: list[Floats]

    @classmethod
    def drawn(cls, random: np.random.Generator) -> Policy:
        hidden, out = random.normal(0, 0.3, (FEATURES, HIDDEN)), random.normal(0, 0.1, (HIDDEN, TOKENS))
        return cls([hidden, np.zeros(HIDDEN), out, np.zeros(TOKENS)])

    def forward(self, inputs: Inputs) -> tuple[Floats, Floats]:
        """Hidden units and probabilities of the tokens, a row each decision."""
        weights, bias, out_weights, out_bias = self.parameters
        summed = weights[inputs.targets] + weights[STATES + inputs.states] + weights[2 * STATES + inputs.positions]
        hidden = np.tanh(summed + bias)
        logits = hidden @ out_weights + out_bias
        unscaled = np.exp(logits - logits.max(axis=-1, keepdims=True))
        return hidden, unscaled / unscaled.sum(axis=-1, keepdims=True)

    def gradients(self, inputs: Inputs, hidden: Floats, logit_gradients: Floats) -> list[Floats]:
        """Gradients of the parameters from those of the logits."""
        back = (logit_gradients @ self.parameters[2].T) * (1 - hidden * hidden)
        weights = np.zeros_like(self.parameters[0])
        parts = ((0, inputs.targets, STATES), (STATES, inputs.states, STATES), (2 * STATES, inputs.positions, LENGTH))
        for offset, index, count in parts:
            # A product with one-hot columns sums the rows of each feature, many times faster than np.add.at.
            one_hot = np.zeros((count, len(index)))
            one_hot[index, np.arange(len(index))] = 1
            weights[offset : offset + count] = one_hot @ back
        return [weights, back.sum(axis=0), hidden.T @ logit_gradients, logit_gradients.sum(axis=0)]


class Adam:
    """Adam (0.9, 0.99, 1e-8, bias-corrected), uphill, after clipping the norm of the whole gradient."""

    def __init__(self, policy: Policy, rate: float, norm: float) -> None:
        self.policy, self.rate, self.norm, self.steps = policy, rate, norm, 0
        self.first = [np.zeros_like(parameter) for parameter in policy.parameters]
        self.second = [np.zeros_like(parameter) for parameter in policy.parameters]

    def climb(self, gradients: Sequence[Floats]) -> None:
        """One step. Raises FloatingPointError where the gradient's norm is not finite."""
        norm = float(np.sqrt(sum(float((gradient * gradient).sum()) for gradient in gradients)))
        if not np.isfinite(norm):
            message = "the gradient is not finite"
            raise FloatingPointError(message)
        scale = min(1.0, self.norm / norm) if norm > 0 else 1.0
        self.steps += 1
        for i, gradient in enumerate(gradients):
            clipped = gradient * scale
            self.first[i] = 0.9 * self.first[i] + 0.1 * clipped
            self.second[i] = 0.99 * self.second[i] + 0.01 * clipped * clipped
            direction = self.first[i] / (1 - 0.9**self.steps)
            rms = np.sqrt(self.second[i] / (1 - 0.99**self.steps)) + 1e-8
            self.policy.parameters[i] = self.policy.parameters[i] + self.rate * direction / rms
