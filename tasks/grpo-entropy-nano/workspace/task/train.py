"""Train a program in worlds of data/worlds/ and print exact accuracy, solution entropy and token entropy.

Usage, from the workspace: python task/train.py [--program FILE] [--worlds 0,1,2]
Without --program it takes data/outputs/program.json, or data/grpo.json where there is none yet.
"""

import argparse
import json
import os
import time
from pathlib import Path

# One thread: the matrices are small, and figures should repeat. It has to be said before numpy is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

from grpo.dialect import LANGUAGE
from grpo.exact import Exact, exact
from grpo.training import ProgramFailedError, train
from grpo.worlds import world_read
from lang.program import ProgramFaultsError, program_parse

WORKSPACE = Path(__file__).resolve().parents[1]
DATA = WORKSPACE / "data"
PUBLIC_WORLDS = range(6)


def worlds_parse(text: str) -> list[int]:
    try:
        numbers = [int(word) for word in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or any(number not in PUBLIC_WORLDS for number in numbers):
        message = "numbers from 0 to 5, with commas between them"
        raise argparse.ArgumentTypeError(message)
    return numbers


def line(name: str, figures: Exact, seconds: float) -> str:
    return (
        f"{name:8s} accuracy {figures.accuracy:.4f}  entropy {figures.entropy:.4f}  "
        f"token entropy {figures.token_entropy:.4f}  seconds {seconds:.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a program and measure the policy it gives, exactly")
    parser.add_argument("--program", type=Path, help="default: data/outputs/program.json, else data/grpo.json")
    parser.add_argument("--worlds", type=worlds_parse, default=[0], help="which of worlds 0 to 5 (default: 0)")
    arguments = parser.parse_args()
    own = DATA / "outputs" / "program.json"
    path = arguments.program or (own if own.exists() else DATA / "grpo.json")
    rounds = json.loads((DATA / "trainer.json").read_text(encoding="utf-8"))["rounds"]
    began, results = time.monotonic(), []
    try:
        program = program_parse(path.read_bytes(), LANGUAGE)
        for number in arguments.worlds:
            started = time.monotonic()
            world = world_read(DATA / "worlds" / f"world_{number}.npz")
            results.append(exact(world.operators, train(world, program, number, rounds), world.test))
            print(line(f"world {number}", results[-1], time.monotonic() - started), flush=True)
    except ProgramFaultsError as error:
        raise SystemExit(f"{path}:\n" + "\n".join(error.faults)) from None
    except ProgramFailedError as error:
        raise SystemExit(f"{path}: {error.what}: world {number}, {error.place}") from None
    print(line("mean", Exact.mean(results), time.monotonic() - began))


if __name__ == "__main__":
    main()
