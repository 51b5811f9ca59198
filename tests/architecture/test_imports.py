"""Arrows point one way: import contracts, and purity seen by a fresh interpreter."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("django", "celery", "channels", "rest_framework", "redis", "boto3")
PURE = ["runs.agent.loop", "runs.agent.spec", "gymnode.actions.registry", "evaluator.contract", "evaluator.manifest"]
PURE += [
    "evaluator.seal",
    "evaluator.sandbox",
    "evaluator.__main__",
    "portal.leaderboard.ranking",
    "portal.client.client",
]


def test_import_contracts_hold() -> None:
    done = subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports")], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]


@pytest.mark.parametrize("module", PURE)
def test_pure_rooms_load_nothing_heavy_even_through_others(module: str) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); import {module}; "
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == "[]"
