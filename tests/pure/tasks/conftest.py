"""Packages of tasks import their own modules by bare names, as they lie side by side in a built package."""

import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

# Small matrices on several threads take ten times as long. To be said before any test loads numpy.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parents[3]
TASKS = ROOT / "tasks"
for folder in (
    TASKS / "grpo-entropy-nano" / "shared",
    TASKS / "worked-example-filtering-nano" / "shared",
    TASKS / "common",
):
    sys.path.append(str(folder))


@pytest.fixture(scope="session")
def task_module() -> Callable[[str, str], ModuleType]:
    """Loads a module of a task's folder, whose dash keeps it from being imported by name."""

    def load(task: str, name: str) -> ModuleType:
        full = f"{task.replace('-', '_')}_{name}"
        if full not in sys.modules:
            spec = importlib.util.spec_from_file_location(full, TASKS / task / f"{name}.py")
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[full] = module
            spec.loader.exec_module(module)
        return sys.modules[full]

    return load
