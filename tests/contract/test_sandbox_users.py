"""The same walls for an ordinary user, and where namespaces are truly forbidden."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.sandbox_cases import ROOT, interpreter, public_folder, refused

STRANGER = 59_990
_NEEDED = [
    "evaluator/__init__.py",
    *(f"evaluator/{name}.py" for name in ("sandbox", "taskenv", "users")),
    "evaluator/guard",
    "tests/__init__.py",
    *(f"tests/contract/{name}.py" for name in ("__init__", "sandbox_cases", "sandbox_driver")),
]


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """An interpreter and the modules in question where any user can reach them."""
    folder = public_folder()
    interpreter(folder)
    for name in _NEEDED:
        target = folder / "code" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(ROOT / name, target) if (ROOT / name).is_dir() else shutil.copyfile(ROOT / name, target)
    for path in (folder / "code").rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    (folder / "code").chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def drive(place: Path, level: int, *words: str, as_stranger: bool) -> dict[str, Any]:
    """Run the driver and read its answer."""
    drop = ["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups"] if as_stranger else []
    command = [
        *drop,
        place / "env/bin/python",
        "-B",
        place / "code/tests/contract/sandbox_driver.py",
        place / "env",
        str(level),
    ]
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(place / "code"), "SITE_SECRET": "known"}
    done = subprocess.run(
        [*command, *words], capture_output=True, text=True, timeout=120, check=False, env=env, cwd="/"
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def held(found: dict[str, Any]) -> None:
    """Nothing was reached, changed or left running."""
    memory = found["answers"].pop("memory")
    assert memory == "MemoryError "
    assert all(refused(answer) for answer in found["answers"].values()), found["answers"]
    assert found["left"] == []


@pytest.mark.parametrize("level", [1, 2])
def test_an_ordinary_user_gets_the_same_walls(place: Path, level: int) -> None:
    found = drive(place, level, as_stranger=os.geteuid() == 0)
    if "missing" in found:
        pytest.skip(found["missing"])
    assert found["uid"] != 0
    assert found["facts"]["own_user"] is False
    held(found)


@pytest.mark.parametrize("as_stranger", [True, False], ids=["ordinary user", "this user"])
def test_where_namespaces_are_forbidden_level_two_is_taken(place: Path, as_stranger: bool) -> None:
    found = drive(place, 0, "forbid", as_stranger=as_stranger and os.geteuid() == 0)
    if "missing" in found:
        pytest.skip(found["missing"])
    assert found["facts"]["level"] == 2
    held(found)


def test_level_one_by_force_where_it_is_forbidden_says_what_to_install(place: Path) -> None:
    found = drive(place, 1, "forbid", as_stranger=os.geteuid() == 0)
    assert "level 1:" in found["missing"]
    assert "install bubblewrap" in found["missing"]
