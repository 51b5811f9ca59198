"""`python -m benchmarks [NAME ...]`: run `benchmarks.NAME.measure()`, of every benchmark when none is named.

The last line of each is one JSON object with figures, targets and `ok`; the exit status is 1 when a target was missed.
"""

import importlib
import pkgutil
import sys
from pathlib import Path

NOT_BENCHMARKS = {"__main__", "report", "nodes", "database"}


def main(wanted: list[str]) -> int:
    """Run the named benchmarks, all of them when none is named. 2: an unknown name, 1: a target missed."""
    names = sorted({module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)])} - NOT_BENCHMARKS)
    unknown = sorted(set(wanted) - set(names))
    if unknown:
        print(f"no benchmark named {', '.join(unknown)}; there are: {', '.join(names)}", file=sys.stderr)
        return 2
    return max([run(name) for name in wanted or names])


def run(name: str) -> int:
    """Measure, print figures and targets; the last line is one JSON object."""
    report = importlib.import_module(f"benchmarks.{name}").measure()
    for figure, value in report.figures.items():
        target = report.targets.get(figure)
        held = f"   {target.bound.replace('_', ' ')} {target.value}" if target else ""
        print(f"{figure:40} {value:12.4f}{held}{'   MISSED' if figure in report.missed else ''}")
    print(report.line())
    return 0 if not report.missed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
