"""Room: tasks. The reference program of grpo-entropy-nano and what one might try instead, with the scores they had."""

from collections.abc import Mapping
from dataclasses import dataclass

RUN = """#!/bin/sh
# {about}. Working directory: a copy of the workspace.
# The program is the method itself: nothing has to be computed before it is handed in.
set -eu
mkdir -p data/outputs
cp "$(dirname "$0")/program.json" data/outputs/program.json
"""
RATIO = ["ratio", "exp(logp - old_logp)"]
GRPO_ADVANTAGE = ["adv", "(reward - group_mean(reward)) / (group_std(reward) + 0.0001)"]


@dataclass(frozen=True)
class Trick:
    """A program, and the score it had when the task was designed."""

    about: str
    program: Mapping[str, object]
    score: float = 0.0
    tolerance: float = 5.0


def clipped(high: float, extra: str = "", **parts: str) -> dict[str, object]:
    """Plain GRPO with another upper clip, another term, other parts."""
    objective = f"min(ratio * adv, clip(ratio, 0.8, {high}) * adv){extra}"
    return {"let": [GRPO_ADVANTAGE, RATIO], "objective": objective, "aggregate": "sequence", **parts}


def shaped(reward: str, high: float) -> dict[str, object]:
    """GRPO on a reward that knows how likely the whole sequence was under the policy that sampled it."""
    lets = [
        ["seqlp", "stop(seq_sum(old_logp * mask))"],
        ["r2", reward],
        ["adv", "(r2 - group_mean(r2)) / (group_std(r2) + 0.0001)"],
        RATIO,
    ]
    objective = f"min(ratio * adv, clip(ratio, 0.8, {high}) * adv)"
    return {"let": lets, "objective": objective, "aggregate": "sequence"}


DYNAMIC = {
    "weight": "(pass_rate > 0) * (pass_rate < 1)",
    "sampling": "where(pass_rate > 0.99, 0.05, where(pass_rate < 0.01, 0.3, 1))",
    "aggregate": "token",
}
RANK = "reward * (1 - 0.5 * (exp(seqlp) > group_mean(exp(seqlp))))"

REFERENCE = Trick(
    "A correct sequence's reward grows with its unlikeliness; wide upper clip",
    shaped("reward * (1 - 0.3 * seqlp)", 1.5),
    80,
)
TRICKS = {
    "untrained": Trick("No training at all", {"objective": "0 * logp"}),
    "clip-higher": Trick("A higher upper clip", clipped(1.5)),
    "dapo": Trick("DAPO: higher clip, dynamic sampling, token mean", clipped(1.28, **DYNAMIC)),
    "entropy-bonus": Trick("An entropy bonus of 0.02", clipped(1.2, " + 0.02 * entropy")),
    "rank": Trick("Correct but likelier than the group's mean counts half, wide clip", shaped(RANK, 1.5), 76),
    "strong": Trick(
        "The reference with 1.0 instead of 0.3, wider clip", shaped("reward * (1 - 1.0 * seqlp)", 2.0), 84, 9
    ),
    "strongest": Trick("With 2.0 instead of 0.3, wider clip", shaped("reward * (1 - 2.0 * seqlp)", 2.0), 93, 9),
}
