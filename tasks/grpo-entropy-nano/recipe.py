"""Room: tasks. Builds the package of grpo-entropy-nano from a seed.

Usage: python recipe.py --seed public|HEX|- --size full|small --out FOLDER [--measure]
The public seed's figures are committed in public_curve.json; any other seed's are measured (about 100 s of CPU).
Small: 3 hidden worlds and 150 rounds; the public seed's curve, about which nothing is promised.
"""

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
COMMON = HERE.parent / "common"
sys.path[:0] = [str(HERE), str(HERE / "shared"), str(COMMON), str(HERE.parents[1])]

import numpy as np  # noqa: E402
from generator import WorldSeeds, world_draw  # noqa: E402
from grpo.worlds import world_write  # noqa: E402
from programs import REFERENCE, RUN, TRICKS  # noqa: E402

from tasks.common.command import Order, Size, order_parse, progress  # noqa: E402
from tasks.common.measuring import evaluated, solved  # noqa: E402
from tasks.common.packaging import PackageFolder, filled, package_begin  # noqa: E402
from tasks.common.seeds import SeedTree  # noqa: E402

TASK = "grpo-entropy-nano"
PUBLIC_WORLDS = 6
ACCURACY_POINTS = ((0.50, 0.0), (0.70, 0.85), (0.78, 1.0))
ENTROPY_POINTS = ((0.80, 0.0), (2.80, 0.65), (3.90, 0.80), (5.40, 1.0))
REFERENCE_ENTROPY = 3.90
TOLERANCE = 3.0
MOST_SHIFT = 0.3
LEAST_ACCURACY = 0.76  # of baseline and reference
MOST_DRAWS = 20
COMMITTED = HERE / "public_curve.json"


@dataclass(frozen=True)
class Sizes:
    worlds: int
    rounds: int
    seconds: str


SIZES = {Size.FULL: Sizes(24, 200, "a minute"), Size.SMALL: Sizes(3, 150, "5 seconds")}


@dataclass(frozen=True)
class Figures:
    """What the build measured, and by how much it moves the entropy curve from 2.80 up."""

    counter: int
    baseline_accuracy: float
    baseline_entropy: float
    reference_accuracy: float
    reference_entropy: float

    @property
    def shift(self) -> float:
        """0 where both scores are within the tolerance, else what puts the reference at 0.80 again."""
        scores = (
            score_of(self.baseline_accuracy, self.baseline_entropy, 0),
            score_of(self.reference_accuracy, self.reference_entropy, 0) - 80,
        )
        return 0.0 if max(map(abs, scores)) <= TOLERANCE else round(self.reference_entropy - REFERENCE_ENTROPY, 3)

    @property
    def notes(self) -> str:
        return (
            f"baseline accuracy {self.baseline_accuracy:.4f} entropy {self.baseline_entropy:.4f}, reference accuracy "
            f"{self.reference_accuracy:.4f} entropy {self.reference_entropy:.4f}, curve moved by {self.shift:.3f}"
        )

    def refusal(self) -> str:
        """Why this draw can't be used; empty where it can."""
        if abs(self.shift) > MOST_SHIFT:
            return f"the curve would have to move by {self.shift:.2f} nats, {MOST_SHIFT} at most"
        lower = min(self.baseline_accuracy, self.reference_accuracy)
        return f"an accuracy of {lower:.3f}, {LEAST_ACCURACY} at least" if lower < LEAST_ACCURACY else ""


def entropy_points(shift: float) -> list[list[float]]:
    return [[round(x + shift * (x >= 2.80), 3), y] for x, y in ENTROPY_POINTS]


def score_of(accuracy: float, entropy: float, shift: float) -> float:
    """The score, 0 to 100, of raw metrics."""
    points = np.array(ACCURACY_POINTS), np.array(entropy_points(shift))
    shares = (np.interp(x, curve[:, 0], curve[:, 1]) for x, curve in zip((accuracy, entropy), points, strict=True))
    return float(100 * np.prod(list(shares)))


def main() -> None:
    order = order_parse("Build the package of grpo-entropy-nano")
    committed = Figures(**json.loads(COMMITTED.read_text(encoding="utf-8"))) if COMMITTED.exists() else None
    if not order.measures:
        assert committed is not None, "no committed figures; run with --measure"
        package_write(order, SeedTree(order.secret, committed.counter if order.public else 0), committed)
        progress(f"built {order.out}")
        return
    for counter in range(MOST_DRAWS):
        seeds = SeedTree(order.secret, counter)
        package_write(order, seeds, Figures(counter, 0.82, 0.34, 0.80, REFERENCE_ENTROPY))
        figures = figures_measure(order.out, counter)
        refusal = figures.refusal()
        if not refusal:
            package_write(order, seeds, figures)
            progress(f"measured {json.dumps(asdict(figures))}")
            progress(f"built {order.out}")
            return
        progress(f"draw {counter} refused: {refusal}")
    message = f"{MOST_DRAWS} draws refused; the recipe's limits no longer fit its figures"
    raise SystemExit(message)


def package_write(order: Order, seeds: SeedTree, figures: Figures) -> None:
    """Write the whole package for one draw."""
    progress(f"writing the package: {order.size}, {order.seed_word} seed, draw {seeds.counter}")
    sizes, package = SIZES[order.size], package_begin(order.out, TASK, seeds)
    values = {
        "seed": order.seed_word, "size": order.size, "counter": seeds.counter, "notes": figures.notes,
        "canary": package.canary, "worlds": sizes.worlds, "rounds": sizes.rounds, "seconds": sizes.seconds,
        "accuracy_points": [list(point) for point in ACCURACY_POINTS], "entropy_points": entropy_points(figures.shift),
        "baseline_accuracy": f"{figures.baseline_accuracy:.2f}", "baseline_entropy": f"{figures.baseline_entropy:.2f}",
        "reference_accuracy": f"{figures.reference_accuracy:.2f}",
        "reference_entropy": f"{figures.reference_entropy:.2f}",
    }  # fmt: skip
    for name in ("task.yaml", "task_description.md"):
        package.text(name, filled(HERE / name, values))
    for name in ("hint.md", "workspace", "evaluation"):
        package.tree(HERE / name, name)
    solutions_write(package, public=order.public)
    package.tree(COMMON / "verdict.py", "evaluation/verdict.py")
    for folder in ("workspace/task", "evaluation"):
        package.tree(HERE / "shared", folder)
        package.tree(COMMON / "lang", f"{folder}/lang")
    worlds_write(package, seeds, sizes)
    package.finish()


def solutions_write(package: PackageFolder, *, public: bool) -> None:
    """Baseline, reference and the tricks; none has randomness. Scores of tricks are known for the public seed only."""
    package.tree(HERE / "solutions" / "baseline", "solutions/baseline")
    expected = ["baseline: {deterministic: true}", "reference: {deterministic: true}"]
    for name, trick in {"reference": REFERENCE, **TRICKS}.items():
        package.text(f"solutions/{name}/program.json", json.dumps(trick.program, indent=2) + "\n")
        package.text(f"solutions/{name}/run.sh", RUN.format(about=trick.about))
        if public and name in TRICKS:
            expected.append(f"{name}: {{score: {trick.score}, tolerance: {trick.tolerance}, deterministic: true}}")
    package.lines("solutions/expected.yaml", expected)


def worlds_write(package: PackageFolder, seeds: SeedTree, sizes: Sizes) -> None:
    """Public and hidden worlds, from separate streams; the hidden ones' sampling seeds."""
    package.json("workspace/data/trainer.json", {"rounds": sizes.rounds})
    package.text("workspace/data/outputs/.keep", "")
    for number in range(PUBLIC_WORLDS):
        world = world_draw(world_seeds(seeds, f"public {number}"))
        world_write(package.root / f"workspace/data/worlds/world_{number}.npz", world)
    for number in range(sizes.worlds):
        progress(f"hidden world {number + 1} of {sizes.worlds}")
        world = world_draw(world_seeds(seeds, f"hidden {number}"))
        world_write(package.root / f"evaluation/references/world_{number}.npz", world)
    sampling = [seeds.number(f"hidden {number} sampling") for number in range(sizes.worlds)]
    package.json("evaluation/references/hidden.json", {"rounds": sizes.rounds, "seeds": sampling})


def world_seeds(seeds: SeedTree, name: str) -> WorldSeeds:
    return WorldSeeds(*(seeds.generator(f"{name} {part}") for part in ("world", "weights", "demonstrations")))


def figures_measure(package: Path, counter: int) -> Figures:
    """Run baseline and reference once: they have no randomness of their own."""
    figures = []
    for solution in ("baseline", "reference"):
        progress(f"evaluating {solution}")
        with solved(package, solution, 0) as workspace:
            metrics = evaluated(package, workspace)
        progress(f"{solution}: accuracy {metrics['accuracy']:.4f}, entropy {metrics['entropy']:.4f}")
        figures += [round(metrics["accuracy"], 4), round(metrics["entropy"], 4)]
    return Figures(counter, *figures)


if __name__ == "__main__":
    main()
