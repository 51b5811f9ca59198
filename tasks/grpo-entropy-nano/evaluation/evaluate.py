"""Score a program: train it in hidden worlds and measure the policies exactly, on test pairs.

Metrics, means over worlds: `accuracy` (0..1), `entropy` (nats, over correct sequences), `token_entropy` (nats, shown
only). Worlds are independent, so they are shared out to two processes: `evaluate.py PART` trains every second one.
Repeats on one machine; $SEED is not used, each world has its own.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # isolated mode (-I) leaves the script's own folder out

from grpo.dialect import LANGUAGE  # noqa: E402
from grpo.exact import Exact, exact  # noqa: E402
from grpo.training import ProgramFailedError, train  # noqa: E402
from grpo.worlds import world_read  # noqa: E402
from lang.program import ProgramFaultsError, program_parse  # noqa: E402
from verdict import InvalidOutputError, invalid_write, output_read, valid_write  # noqa: E402

OUTPUT = "data/outputs/program.json"
REFERENCES = HERE / "references"
PROCESSES = 2


def settings_read() -> dict[str, Any]:
    """`rounds`, and `seeds`: that of each hidden world."""
    settings: dict[str, Any] = json.loads((REFERENCES / "hidden.json").read_text(encoding="utf-8"))
    return settings


def program_read() -> bytes:
    return output_read(OUTPUT, LANGUAGE.limits.bytes)


def part_run(part: int, parts: int) -> None:
    """Train every `parts`-th world, and write what came out to a file of this part."""
    program, settings = program_parse(program_read(), LANGUAGE), settings_read()
    figures: dict[int, list[float]] = {}
    failed: dict[int, str] = {}
    for number in range(part, len(settings["seeds"]), parts):
        world = world_read(REFERENCES / f"world_{number}.npz")
        try:
            policy = train(world, program, settings["seeds"][number], settings["rounds"])
        except ProgramFailedError as error:
            failed[number] = f"{error.what}: world {number}, {error.place}"
            break
        one = exact(world.operators, policy, world.test)
        figures[number] = [one.accuracy, one.entropy, one.token_entropy]
    Path(f"part_{part}.json").write_text(json.dumps({"figures": figures, "failed": failed}), encoding="utf-8")


def parts_run() -> tuple[list[Exact], str]:
    """Figures of all worlds, and what failed in the first world that did."""
    parts = min(PROCESSES, len(os.sched_getaffinity(0)))
    command = [sys.executable, "-I", "-B", str(Path(__file__).resolve())]
    running = [subprocess.Popen([*command, str(part), str(parts)]) for part in range(parts)]
    codes = [process.wait() for process in running]
    if any(codes):
        message = f"parts of the evaluation ended with {codes}"
        raise RuntimeError(message)
    results = [json.loads(Path(f"part_{part}.json").read_text(encoding="utf-8")) for part in range(parts)]
    failed = {int(number): text for result in results for number, text in result["failed"].items()}
    figures = {int(number): Exact(*row) for result in results for number, row in result["figures"].items()}
    return [figures[number] for number in sorted(figures)], failed[min(failed)] if failed else ""


def main() -> None:
    try:
        program_parse(program_read(), LANGUAGE)
    except (ProgramFaultsError, InvalidOutputError) as error:
        invalid_write(str(error))
        return
    figures, failed = parts_run()
    if failed:
        invalid_write(failed)
        return
    mean = Exact.mean(figures)
    valid_write({"accuracy": mean.accuracy, "entropy": mean.entropy, "token_entropy": mean.token_entropy})


if __name__ == "__main__":
    if len(sys.argv) > 1:
        part_run(int(sys.argv[1]), int(sys.argv[2]))
    else:
        main()
