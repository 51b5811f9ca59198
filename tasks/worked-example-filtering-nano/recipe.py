"""Room: tasks. Builds the package of worked-example-filtering-nano from a seed.

Usage: python recipe.py --seed public|HEX|- --size full|small --out FOLDER [--measure]
The curve of the public seed is committed in public_curve.json; any other seed's is measured (about 2 minutes).
Small: 200 hidden questions, one trainer seed; the public seed's curve, about which nothing is promised.
"""

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

from generator import Sizes, World, world_draw  # noqa: E402

from tasks.common.command import Order, Size, order_parse, progress  # noqa: E402
from tasks.common.measuring import environment, evaluated, solved, spread_of  # noqa: E402
from tasks.common.packaging import PackageFolder, filled, package_begin  # noqa: E402
from tasks.common.seeds import SeedTree  # noqa: E402

TASK = "worked-example-filtering-nano"
SIZES = {
    Size.FULL: Sizes(rows=10_000, tests=800, trainer_seeds=4),
    Size.SMALL: Sizes(rows=10_000, tests=200, trainer_seeds=1),
}
SECONDS = {Size.FULL: 9, Size.SMALL: 3}
SOLVER_SEEDS = 5
LEAST_RISE = 0.35  # of the reference above the baseline
LEAST_ROOM = 0.06  # of the cap above the reference
MOST_SCATTER = 4.0  # points of score: 80 * sd / rise
MOST_DRAWS = 20
COMMITTED = HERE / "public_curve.json"


RUN = """#!/bin/sh
# {about}. Working directory: a copy of the workspace.
set -eu
exec "${{PYTHON:-python3}}" "$(dirname "$0")/selecting.py" --seed "${{SEED:-0}}" {options}
"""


@dataclass(frozen=True)
class Trick:
    """One more way to select, and the score it had when the task was designed."""

    about: str
    options: str
    score: float = 0.0
    tolerance: float = 5.0


REFERENCE = Trick("Trusted authors, verified rows, longest first", "--believe trusted --order long", 80)
TRICKS = {
    "style-long": Trick("Longest rows of the commonest style", "--believe all --order long"),
    "majority": Trick("Majority's facts, verified", "--believe majority --order random", 7.9, 7),
    "majority-long": Trick("Majority's facts, verified, longest first", "--believe majority --order long", 10.5, 11.5),
    "trusted-unverified": Trick("Trusted authors' rows", "--believe trusted-unverified --order random"),
    "trusted-random": Trick("Trusted facts, verified", "--believe trusted --order random", 52.5, 10.5),
    "trusted-leaky": Trick(
        "The reference with the benchmark's rows", "--believe trusted --order long --with-benchmark"
    ),
    "trusted-cover": Trick("Trusted facts, verified, spread over facts", "--believe trusted --order cover", 85.9, 11),
}


@dataclass(frozen=True)
class Curve:
    """What the build measured: mean accuracies, and the scatter of baseline and reference over solver seeds."""

    counter: int
    baseline: float
    reference: float
    cap: float
    baseline_sd: float
    reference_sd: float

    @property
    def points(self) -> str:
        return f"[[{self.baseline:.3f}, 0], [{self.reference:.3f}, 0.8], [{self.cap:.3f}, 1]]"

    @property
    def notes(self) -> str:
        return (
            f"accuracy over {SOLVER_SEEDS} solver seeds: baseline {self.baseline:.3f} sd {self.baseline_sd:.3f}, "
            f"reference {self.reference:.3f} sd {self.reference_sd:.3f}; cap {self.cap:.3f}"
        )

    def refusal(self) -> str:
        """Why this draw can't be used; empty where it can."""
        rise, room = self.reference - self.baseline, self.cap - self.reference
        if rise < LEAST_RISE:
            return f"the reference is only {rise:.3f} above the baseline, {LEAST_RISE} at least"
        if room < LEAST_ROOM:
            return f"the cap is only {room:.3f} above the reference, {LEAST_ROOM} at least"
        scatter = 80 * max(self.baseline_sd, self.reference_sd) / rise
        return f"scores scatter by {scatter:.1f} points, {MOST_SCATTER} at most" if scatter > MOST_SCATTER else ""


def main() -> None:
    order = order_parse("Build the package of worked-example-filtering-nano")
    committed = Curve(**json.loads(COMMITTED.read_text(encoding="utf-8"))) if COMMITTED.exists() else None
    if not order.measures:
        assert committed is not None, "no committed curve; run with --measure"
        counter = committed.counter if order.public else 0
        package_write(order, SeedTree(order.secret, counter), committed)
        progress(f"built {order.out}")
        return
    for counter in range(MOST_DRAWS):
        seeds = SeedTree(order.secret, counter)
        package_write(order, seeds, Curve(counter, 0.25, 0.83, 0.95, 0, 0))
        curve = curve_measure(order.out, counter)
        refusal = curve.refusal()
        if not refusal:
            package_write(order, seeds, curve)
            progress(f"measured {json.dumps(asdict(curve))}")
            progress(f"built {order.out}")
            return
        progress(f"draw {counter} refused: {refusal}")
    message = f"{MOST_DRAWS} draws refused; the recipe's limits no longer fit its figures"
    raise SystemExit(message)


def package_write(order: Order, seeds: SeedTree, curve: Curve) -> None:
    """Write the whole package for one draw."""
    progress(f"drawing the world: {order.size}, {order.seed_word} seed, draw {seeds.counter}")
    sizes = SIZES[order.size]
    world = world_draw(seeds, sizes)
    package = package_begin(order.out, TASK, seeds)
    values = {
        "seed": order.seed_word, "size": order.size, "counter": seeds.counter, "notes": curve.notes,
        "canary": package.canary,
        "points": curve.points, "rows": f"{sizes.rows:,}", "last_row": sizes.rows - 1, "tests": sizes.tests,
        "models": f"{sizes.trainer_seeds} models" if sizes.trainer_seeds > 1 else "1 model",
        "seconds": SECONDS[order.size], "baseline": f"{curve.baseline:.3f}",
        "reference": f"{curve.reference:.3f}", "cap": f"{curve.cap:.3f}",
    }  # fmt: skip
    for name in ("task.yaml", "task_description.md"):
        package.text(name, filled(HERE / name, values))
    for name in ("hint.md", "workspace", "evaluation"):
        package.tree(HERE / name, name)
    solutions_write(package, public=order.public)
    package.tree(HERE.parent / "common" / "verdict.py", "evaluation/verdict.py")
    for folder in ("workspace/task", "evaluation"):
        package.tree(HERE / "shared", folder)
        package.tree(HERE.parent / "common" / "characters.py", f"{folder}/characters.py")
    data_write(package, world)
    package.finish()


def solutions_write(package: PackageFolder, *, public: bool) -> None:
    """Baseline, reference and the tricks; what the tricks should score is known for the public seed only."""
    package.tree(HERE / "solutions" / "baseline", "solutions/baseline")
    for name, trick in {"reference": REFERENCE, **TRICKS}.items():
        package.tree(HERE / "solutions" / "selecting.py", f"solutions/{name}/selecting.py")
        package.text(f"solutions/{name}/run.sh", RUN.format(about=trick.about, options=trick.options))
    if public:
        expected = (f"{name}: {{score: {trick.score}, tolerance: {trick.tolerance}}}" for name, trick in TRICKS.items())
        package.lines("solutions/expected.yaml", expected)


def data_write(package: PackageFolder, world: World) -> None:
    """The public data, the evaluator's copy of it, and the hidden questions."""
    for folder in ("workspace/data", "evaluation/public"):
        rows = enumerate(world.rows)
        package.lines(
            f"{folder}/pool.jsonl",
            (json.dumps({"id": i, "author": r.author, "question": r.question, "worked": r.worked}) for i, r in rows),
        )
        package.lines(f"{folder}/benchmark.txt", world.benchmark)
    dev = (json.dumps({"question": question, "answer": answer}) for question, answer in world.dev)
    package.lines("workspace/data/dev.jsonl", dev)
    package.text("workspace/data/outputs/.keep", "")
    questions, answers = zip(*world.test, strict=True)
    hidden = {"questions": questions, "answers": answers, "trainer_seeds": world.trainer_seeds}
    package.json("evaluation/references/test.json", hidden)


def curve_measure(package: Path, counter: int) -> Curve:
    """Run baseline and reference with every solver seed, and the privileged solution once."""
    accuracies: dict[str, list[float]] = {"baseline": [], "reference": []}
    for solution, values in accuracies.items():
        for seed in range(SOLVER_SEEDS):
            with solved(package, solution, seed) as workspace:
                values.append(evaluated(package, workspace)["accuracy"])
            progress(f"{solution}, solver seed {seed}: accuracy {values[-1]:.4f}")
    baseline, reference = spread_of(accuracies["baseline"]), spread_of(accuracies["reference"])
    cap = cap_measure(package)
    progress(f"privileged: accuracy {cap:.4f}")
    figures = (baseline.mean, reference.mean, cap, baseline.sd, reference.sd)
    return Curve(counter, *(round(figure, 4) for figure in figures))


def cap_measure(package: Path) -> float:
    """All verified rows, without the limit of 800."""
    with solved(package, "reference", 0) as workspace:
        script = (package / "solutions" / "reference" / "selecting.py").resolve()
        run: list[str | Path] = [sys.executable, script, "--no-limit"]
        subprocess.run(run, cwd=workspace, env=environment(0), check=True, stdout=subprocess.DEVNULL)
        ids = workspace / "data" / "outputs" / "selection.txt"
        run = [sys.executable, HERE / "privileged.py", package / "evaluation", ids]
        return float(subprocess.run(run, env=environment(0), check=True, capture_output=True, text=True).stdout)


if __name__ == "__main__":
    main()
