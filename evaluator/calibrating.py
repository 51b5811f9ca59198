"""Room: evaluator. Calibration: solutions run in the sandbox on a copy of the workspace, their outputs are scored.

Expected against got, spread, seconds; and what an empty, a malformed, a constant and a random submission get. Own
solutions of these names (`solutions/constant/run.sh` ...) take the place of the made ones.
"""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from evaluator.contract import Outcome
from evaluator.fields import Part, Percent
from evaluator.forging import FORGERIES, forge
from evaluator.manifest import Manifest, score_compute
from evaluator.sandbox import Ended, Job, Sandbox
from evaluator.scoring import Scored, score_outputs
from evaluator.taskenv import pinned_env
from evaluator.yamlcore import Faults, read_yaml

BASELINE, REFERENCE = "baseline", "reference"


class CalibrationBroken(RuntimeError):
    """A solution can't be run at all; the message says which and why."""


class Expected(Part):
    """What a solution should get: `score` give or take `tolerance`; without randomness it runs once."""

    score: Percent | None = None
    tolerance: Annotated[float, Field(ge=0, le=100)] = 5
    deterministic: bool = False
    invalid: bool = False


@dataclass(frozen=True)
class Try:
    """One run of one solution."""

    outcome: Outcome
    score: Decimal
    metrics: Mapping[str, float]
    message: str
    run_s: float
    evaluation_s: float
    log_tail: str = ""


@dataclass(frozen=True)
class Row:
    """One solution's tries beside what was expected."""

    name: str
    expected: str
    tries: tuple[Try, ...]
    ok: bool

    @property
    def mean(self) -> float:
        return statistics.fmean(float(one.score) for one in self.tries)

    @property
    def spread(self) -> float:
        return statistics.stdev(float(one.score) for one in self.tries) if len(self.tries) > 1 else 0.0

    def metric_means(self) -> dict[str, float]:
        """Means over the valid tries."""
        valid = [one.metrics for one in self.tries if one.outcome is Outcome.VALID]
        return {name: statistics.fmean(one[name] for one in valid) for name in valid[0]} if valid else {}


def expectations(folder: Path, manifest: Manifest) -> dict[str, Expected]:
    """By solution: baseline and reference from the manifest, others from `solutions/expected.yaml`. Raises `Faults`."""
    rule = manifest.score
    found = {
        BASELINE: Expected(score=rule.baseline, tolerance=rule.tolerance),
        REFERENCE: Expected(score=rule.reference, tolerance=rule.tolerance),
    }
    path = folder / "solutions" / "expected.yaml"
    if path.is_file():
        data = read_yaml(path.read_text()).data
        for name, value in (data if isinstance(data, dict) else {}).items():
            own = value if isinstance(value, dict) else {}
            merged = {**found[name].model_dump(), **own} if name in found else own
            found[name] = Expected.model_validate(merged)
    return found


class Calibration:
    """One package folder, calibrated in one sandbox."""

    def __init__(self, sandbox: Sandbox, folder: Path, manifest: Manifest, say: Callable[[str], None]) -> None:
        self.sandbox = sandbox
        self.folder = folder
        self.manifest = manifest
        self.say = say
        try:
            self.expected = expectations(folder, manifest)
        except (ValidationError, Faults) as error:
            raise CalibrationBroken(f"solutions/expected.yaml: {error}") from error

    def rows(self, runs: int, only: frozenset[str] = frozenset()) -> Iterator[Row]:
        """All solutions, then the made submissions. `runs` repeats with solver seeds 0, 1, ..."""
        solutions = sorted(path.parent.name for path in (self.folder / "solutions").glob("*/run.sh"))
        order = [BASELINE, REFERENCE, *(name for name in solutions if name not in {BASELINE, REFERENCE})]
        for name in order:
            if not only or name in only:
                yield self.row(name, runs)
        for name in FORGERIES:
            if name not in solutions and (not only or name in only):
                yield self.forged(name)

    def row(self, name: str, runs: int) -> Row:
        """Run one solution `runs` times and score what it leaves."""
        expected = self.expected.get(name, Expected())
        tries = []
        for seed in range(1 if expected.deterministic else runs):
            tries.append(self.one_try(name, seed))
            self.say(f"  {name} seed {seed}: {_brief(tries[-1])}")
        return self.judge(name, expected, tuple(tries))

    def judge(self, name: str, expected: Expected, tries: tuple[Try, ...]) -> Row:
        """Means are judged. Without an expectation nothing but a crash is wrong."""
        row = Row(name, _wanted(expected), tries, ok=True)
        ok = all(one.outcome is not Outcome.CRASHED for one in tries)
        if expected.invalid:
            ok = ok and all(one.outcome is Outcome.INVALID for one in tries)
        elif expected.score is not None:
            ok = ok and abs(row.mean - expected.score) <= expected.tolerance
        # A small build tests the plumbing; nothing about calibration is asserted on it.
        plumbing_only = self.manifest.size == "small" and not expected.invalid
        return Row(
            name, row.expected, tries, ok or (plumbing_only and all(t.outcome is not Outcome.CRASHED for t in tries))
        )

    def one_try(self, name: str, seed: int) -> Try:
        """One solution, one seed. Raises `CalibrationBroken` where the solution itself fails."""
        base = self.sandbox.folder()
        try:
            shutil.copytree(self.folder / "workspace", base / "workspace")
            shutil.copytree(self.folder / "solutions" / name, base / "solution")
            run_s = self.run_solution(name, base, seed)
            return self.score(base / "workspace", run_s)
        finally:
            self.sandbox.discard(base)

    def run_solution(self, name: str, base: Path, seed: int) -> float:
        """`run.sh` with cwd a copy of the workspace. Seconds."""
        limits, node = self.manifest.limits, self.manifest.nodes[0]
        env = pinned_env(seed, self.sandbox.kernel)
        env |= {"PATH": f"{self.sandbox.env.root}/bin:/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
        ran = self.sandbox.run(
            Job(
                base=base,
                argv=("/bin/bash", "{solution}/run.sh"),
                env={**env, "HOME": "/scratch", "PYTHONDONTWRITEBYTECODE": "1"},
                read=("solution",),
                write=("workspace",),
                cwd="{workspace}",
                memory_mb=int(node.memory_gb * 1024),
                seconds=limits.hours * 3600,
                cpus=node.cpus,
                scratch_mb=1024,
                disk_mb=int(limits.disk_gb * 1024),
            )
        )
        if ran.ended is not Ended.EXIT or ran.exit_code != 0:
            said = (ran.stderr or ran.stdout)[-3000:]
            raise CalibrationBroken(
                f"solutions/{name}/run.sh ended by {ran.ended} with code {ran.exit_code} after {ran.seconds:.0f} s"
                f" {ran.fault}\n{said}"
            )
        return ran.seconds

    def score(self, outputs: Path, run_s: float) -> Try:
        """Score the declared outputs below a folder."""
        scored = score_outputs(
            self.sandbox, manifest=self.manifest, evaluation=self.folder / "evaluation", outputs=outputs, seed=0
        )
        return tried(self.manifest, scored, run_s)

    def forged(self, name: str) -> Row:
        """An empty, malformed, constant or random submission, made from the baseline's outputs."""
        base = self.sandbox.folder()
        try:
            shutil.copytree(self.folder / "workspace", base / "workspace")
            shutil.copytree(self.folder / "solutions" / BASELINE, base / "solution")
            self.run_solution(BASELINE, base, 0)
            for output in self.manifest.outputs:
                path = base / "workspace" / output.path
                if path.is_file():
                    path.write_bytes(forge(name, path.read_bytes()))
            one = self.score(base / "workspace", 0)
        finally:
            self.sandbox.discard(base)
        self.say(f"  {name}: {_brief(one)}")
        most = self.manifest.score.baseline + self.manifest.score.tolerance
        harmless = one.outcome is Outcome.INVALID or (one.outcome is Outcome.VALID and float(one.score) <= most)
        must_be_invalid = name in {"empty", "malformed"}
        ok = one.outcome is Outcome.INVALID if must_be_invalid else harmless
        return Row(name, "invalid" if must_be_invalid else f"at most {most:g}, or invalid", (one,), ok)


def tried(manifest: Manifest, scored: Scored, run_s: float) -> Try:
    """A scoring as a try: invalid ones get 0, crashed ones too (and are never ok)."""
    score = score_compute(manifest.score, scored.metrics) if scored.outcome is Outcome.VALID else Decimal(0)
    return Try(scored.outcome, score, scored.metrics, scored.message, run_s, scored.seconds, scored.log_tail)


def _brief(one: Try) -> str:
    return f"{one.outcome} {float(one.score):.2f} ({one.run_s:.1f} s + {one.evaluation_s:.1f} s) {one.message[:120]}"


def _wanted(expected: Expected) -> str:
    if expected.invalid:
        return "invalid"
    return "-" if expected.score is None else f"{expected.score:g} ± {expected.tolerance:g}"
