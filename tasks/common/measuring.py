"""Room: tasks. Running a package's own solutions and its own evaluator while it is built.

Starts processes: the solutions on a copy of the workspace, evaluate.py in a scratch folder, both with one thread.
This is the builder's own code on the builder's own machine, so no sandbox is needed.
"""

import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PINNED = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
KERNEL = "OPENBLAS_CORETYPE"


def kernel_of_machine() -> str:
    """The BLAS kernel the evaluator pins as well: training is chaotic, another kernel gives other figures."""
    if platform.machine() != "x86_64":
        return "ARMV8"
    flags = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    return "HASWELL" if " avx2" in flags and " fma" in flags else "NEHALEM"


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation (n-1) of repeated measurements."""

    mean: float
    sd: float
    runs: int


def spread_of(values: Sequence[float]) -> Spread:
    return Spread(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0, len(values))


def environment(seed: int) -> dict[str, str]:
    """All that a solution or an evaluator gets: the seed, pinned threads, where programs are."""
    kernel = os.environ.get(KERNEL) or kernel_of_machine()
    path = os.environ.get("PATH", os.defpath)
    return {"PATH": path, "PYTHON": sys.executable, "SEED": str(seed), KERNEL: kernel, **PINNED}


@contextmanager
def solved(package: Path, solution: str, seed: int) -> Iterator[Path]:
    """A copy of the workspace in which a solution has run."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder) / "workspace"
        shutil.copytree(package / "workspace", workspace)
        script = (package / "solutions" / solution / "run.sh").resolve()
        subprocess.run(["sh", script], cwd=workspace, env=environment(seed), check=True, stdout=subprocess.DEVNULL)
        yield workspace


def evaluated(package: Path, outputs: Path, seed: int = 0) -> Mapping[str, float]:
    """The metrics evaluate.py gives for a folder of outputs. Raises ValueError where it calls them invalid."""
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder) / "scratch"
        scratch.mkdir()
        (Path(folder) / "outputs").symlink_to(outputs.resolve(), target_is_directory=True)
        script = (package / "evaluation" / "evaluate.py").resolve()
        subprocess.run([sys.executable, "-I", "-B", script], cwd=scratch, env=environment(seed), check=True)
        result = json.loads((scratch / "result.json").read_text(encoding="utf-8"))
    if not result["valid"]:
        raise ValueError(result["message"])
    metrics: dict[str, float] = result["metrics"]
    return metrics
