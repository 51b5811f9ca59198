"""Room: evaluator. The task environment: whose interpreter runs evaluators and solutions. Standard library only."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/etc/ld.so.cache", "/etc/alternatives", "/nix/store")
_ASK = (
    "import json, platform, sys\n"
    "try:\n    import numpy\n    numpy = numpy.__version__\nexcept ImportError:\n    numpy = ''\n"
    "print(json.dumps([sys.base_prefix, platform.python_version(), numpy, sys.version_info >= (3, 11)]))"
)
THREADS = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "BLIS_NUM_THREADS"), "1"
)


class TaskEnvMissing(RuntimeError):
    """The task environment isn't there or can't be used; the message says what to do."""


@dataclass(frozen=True)
class TaskEnv:
    """A virtual environment, the folders it needs, and its versions."""

    root: Path
    python: Path
    trees: tuple[Path, ...]
    version: str
    numpy: str


def core_type() -> str:
    """The one BLAS kernel of an installation: the oldest that all its machines have, by their instruction set."""
    if platform.machine() != "x86_64":
        return "ARMV8"
    try:
        flags = Path("/proc/cpuinfo").read_text()
    except OSError:
        flags = ""
    return "HASWELL" if " avx2" in flags and " fma" in flags else "NEHALEM"


def pinned_env(seed: int, kernel: str) -> dict[str, str]:
    """The whole environment of a scored program: the seed, and what makes figures the same everywhere."""
    return {"SEED": str(seed), "PYTHONHASHSEED": "0", "OPENBLAS_CORETYPE": kernel, **THREADS}


def task_env_open(root: Path) -> TaskEnv:
    """Look at the environment by asking its interpreter. Raises `TaskEnvMissing`."""
    root = Path(os.path.abspath(root))  # noqa: PTH100  # resolve() would follow the links that venvs are made of
    python = root / "bin" / "python"
    advice = "make one with `python -m venv DIR` and install tasks/requirements.lock there, then pass --task-env DIR"
    if not python.exists():
        raise TaskEnvMissing(f"{python} does not exist: {advice}")
    asked = subprocess.run([python, "-I", "-c", _ASK], capture_output=True, text=True, timeout=60, check=False, env={})
    if asked.returncode != 0:
        raise TaskEnvMissing(f"{python} doesn't run ({asked.stderr.strip()[-300:]}): {advice}")
    base, version, numpy, recent = json.loads(asked.stdout)
    if not recent:
        raise TaskEnvMissing(f"{python} is Python {version}; 3.11 or later is needed")
    return TaskEnv(root, python, _trees(root, python, Path(base)), version, numpy)


def _trees(root: Path, python: Path, base: Path) -> tuple[Path, ...]:
    wanted = [root, base]
    link = python
    while link.is_symlink():  # python -> python3.11 -> /elsewhere/bin/python3.11
        link = Path(os.path.normpath(link.parent / link.readlink()))
        wanted.append(link.parent.parent)
    wanted += [path.resolve() for path in wanted]
    kept: list[Path] = []
    for path in sorted(set(wanted)):
        inside = (*SYSTEM, *map(str, kept))
        if path != Path("/") and not any(str(path) == one or str(path).startswith(f"{one}/") for one in inside):
            kept.append(path)
    return tuple(kept)


def system_trees() -> tuple[list[str], list[list[str]]]:
    """Read-only system folders that exist here, and the top-level links among them as (path, target)."""
    trees, links = [], []
    for path in SYSTEM:
        if Path(path).is_symlink():
            links.append([path, str(Path(path).readlink())])
        elif Path(path).exists():
            trees.append(path)
    return trees, links
