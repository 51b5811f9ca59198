"""The shipped tasks of this instance: built from their recipes, sealed, brought into the catalog.

Which build: `IB_TASK_SIZES` may say `grpo-entropy-nano=small,...` (tests of plumbing); full is the rule.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable

from django.conf import settings

from portal.catalog.models import Suite, TaskVersion
from portal.catalog.packed import packed_read
from portal.catalog.selectors import version_by_digest
from portal.catalog.services import task_version_import
from portal.embedded.programs import ROOT

TASKS = ("worked-example-filtering-nano", "grpo-entropy-nano")


def shipped_import(say: Callable[[str], None]) -> list[TaskVersion]:
    """Every shipped task in the catalog; an unchanged one is left alone. Raises CalledProcessError."""
    sizes = dict(part.split("=", 1) for part in os.environ.get("IB_TASK_SIZES", "").split(",") if "=" in part)
    return [_one(name, sizes.get(name, "full"), say) for name in TASKS]


def _one(name: str, size: str, say: Callable[[str], None]) -> TaskVersion:
    folder = settings.PACKAGES / name
    mark = _mark(name, size)
    note = folder / "built.json"
    if note.exists():
        built = json.loads(note.read_text())
        version = version_by_digest(built["digest"])
        if built["mark"] == mark and version is not None:
            return version
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    say(f"building {name} ({size}) ...")
    recipe = [str(settings.TASK_ENV / "bin" / "python"), str(ROOT / "tasks" / name / "recipe.py")]
    _run([*recipe, "--seed", "public", "--size", size, "--out", str(folder / "plain")])
    pack = [sys.executable, "-m", "evaluator", "pack", str(folder / "plain")]
    _run([*pack, "--recipient", settings.EVALUATOR_RECIPIENT, "--out", str(folder / "packed")])
    # The plain package holds the answers; only the sealed one stays.
    shutil.rmtree(folder / "plain")
    version = task_version_import(packed=packed_read(folder / "packed"), by=None, suite=Suite.NANO)
    note.write_text(json.dumps({"mark": mark, "digest": version.digest}))
    return version


def _run(command: list[str]) -> None:
    env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LANG": "C.UTF-8"}
    subprocess.run(command, cwd=ROOT, env=env, check=True)


def _mark(name: str, size: str) -> str:
    """Changes when the recipe, what it copies in, the size or the seal's recipient changes."""
    digest = hashlib.sha256(f"{size}\n{settings.EVALUATOR_RECIPIENT}\n".encode())
    for folder in (ROOT / "tasks" / name, ROOT / "tasks" / "common"):
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts and "playbooks" not in path.parts:
                digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
