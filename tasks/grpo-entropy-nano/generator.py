"""Room: tasks. The worlds of grpo-entropy-nano and their weak, biased start checkpoints; touches nothing.

Sources of the question: DAPO (arXiv 2503.14476); The Entropy Mechanism of RL for Reasoning Language Models
(arXiv 2505.22617). A world is six random permutations of 16 states; a prompt is a pair of start and target.
"""

from dataclasses import dataclass

import numpy as np
from grpo.policy import JUNK, LENGTH, OPERATORS, STATES, STOP, Adam, Inputs, Integers, Policy
from grpo.worlds import World

TRAIN_SHARE = 0.75
DEMONSTRATIONS = 1500
GOOD_SHARE = 0.2  # of demonstrations that are a shortest path
JUNK_SHARE = 0.2  # of the other ones' tokens
HABIT = 0.5  # weight of one draw of Dirichlet(0.6) against the uniform
HABIT_CONCENTRATION = 0.6
STEPS = 300
BATCH = 256
RATE = 5e-3
NORM = 9.0
FAR = 99


@dataclass(frozen=True)
class WorldSeeds:
    """Separate generators: operators and split, first weights, demonstrations."""

    world: np.random.Generator
    weights: np.random.Generator
    demonstrations: np.random.Generator


@dataclass(frozen=True)
class Decisions:
    """Single tokens of demonstrations: what was seen, what was written."""

    inputs: Inputs
    tokens: Integers


def world_draw(seeds: WorldSeeds) -> World:
    """A world with 180 train and 60 test pairs, and a policy trained on demonstrations."""
    operators = np.array([seeds.world.permutation(STATES) for _ in range(OPERATORS)])
    pairs = np.array([(start, end) for start in range(STATES) for end in range(STATES) if start != end])
    seeds.world.shuffle(pairs)
    train, test = np.split(pairs, [int(TRAIN_SHARE * len(pairs))])
    decisions = demonstrations_draw(operators, train, seeds.demonstrations)
    start = policy_imitate(Policy.drawn(seeds.weights), decisions, seeds.demonstrations)
    return World(operators, train, test, start)


def distances_of(operators: Integers) -> Integers:
    """(target, state): the fewest operators from state to target."""
    distances = np.full((STATES, STATES), FAR)
    np.fill_diagonal(distances, 0)
    for _ in range(STATES):
        onward = distances[:, operators].min(axis=1) + 1
        distances = np.minimum(distances, onward)
    return distances


def demonstrations_draw(operators: Integers, train: Integers, random: np.random.Generator) -> Decisions:
    """Mostly habit, some of it junk; one in five a random shortest path."""
    distances = distances_of(operators)
    habits = random.dirichlet(np.full(OPERATORS, HABIT_CONCENTRATION))
    shares = HABIT * habits + (1 - HABIT) / OPERATORS
    rows: list[tuple[int, int, int, int]] = []
    for _ in range(DEMONSTRATIONS):
        state, target = (int(value) for value in train[random.integers(len(train))])
        good, operators_written = random.random() < GOOD_SHARE, int(random.integers(1, LENGTH))
        for position in range(LENGTH):
            if good:
                token = _step_closer(operators, distances, state, target, random)
            else:
                token = STOP if position >= operators_written else int(random.choice(OPERATORS, p=shares))
                if random.random() < JUNK_SHARE:
                    token = STOP + 1 + int(random.integers(JUNK))
            rows.append((target, state, position, token))
            if token >= STOP:
                break
            state = int(operators[token, state])
    targets, states, positions, tokens = np.array(rows).T
    return Decisions(Inputs(targets, states, positions), tokens)


def _step_closer(operators: Integers, distances: Integers, state: int, target: int, random: np.random.Generator) -> int:
    if state == target:
        return STOP
    closer = np.flatnonzero(distances[target, operators[:, state]] == distances[target, state] - 1)
    return int(closer[random.integers(len(closer))])


def policy_imitate(policy: Policy, decisions: Decisions, random: np.random.Generator) -> Policy:
    """Cross-entropy on the demonstrations, 300 steps; the optimiser is thrown away."""
    adam = Adam(policy, RATE, NORM)
    for _ in range(STEPS):
        chosen = random.integers(len(decisions.tokens), size=BATCH)
        inputs = decisions.inputs.chosen(chosen)
        hidden, probabilities = policy.forward(inputs)
        gradient = -probabilities
        gradient[np.arange(BATCH), decisions.tokens[chosen]] += 1
        adam.climb(policy.gradients(inputs, hidden, gradient / BATCH))
    return policy
