"""Room: tasks. One world as a file: operators, pairs and the start checkpoint; copied into packages."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from grpo.policy import Integers, Policy

WEIGHTS = ("W1", "b1", "W2", "b2")


@dataclass(frozen=True)
class World:
    """`operators` (6, 16): state after each operator; pairs (n, 2) of start and target; the policy to start from."""

    operators: Integers
    train: Integers
    test: Integers
    start: Policy


def world_read(path: Path) -> World:
    """A world from an .npz file of plain arrays (objects are refused)."""
    with np.load(path, allow_pickle=False) as arrays:
        ops, train, test = (arrays[name].astype(np.int64) for name in ("ops", "train", "test"))
        return World(ops, train, test, Policy([arrays[name] for name in WEIGHTS]))


def world_write(path: Path, world: World) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    W1, b1, W2, b2 = world.start.parameters
    ops, train, test = (array.astype(np.int8) for array in (world.operators, world.train, world.test))
    np.savez(path, ops=ops, train=train, test=test, W1=W1, b1=b1, W2=W2, b2=b2)
