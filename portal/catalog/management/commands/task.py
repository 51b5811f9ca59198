"""Room: portal.catalog. `manage.py task build|check|pack|calibrate|new`: doors to recipes and to the evaluator.

Starts processes only: a recipe in the task environment, `python -m evaluator`, `tasks/new.py`. No database.
"""

import os
import secrets
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.core.management.base import CommandParser as Parser

ROOT = Path(__file__).resolve().parents[4]
SECRET = "secret"  # noqa: S105  the word on the command line, not the seed itself


class Command(BaseCommand):
    help = "Build, check, pack, calibrate or begin a task package"
    requires_system_checks = ()

    def add_arguments(self, parser: Parser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="build|check|pack|calibrate|new")
        build = verbs.add_parser("build", help="make a package of a shipped task from a seed")
        build.add_argument("task", choices=task_names())
        build.add_argument(
            "--seed", default="public", help=f"public, {SECRET} (drawn once and kept), or hexadecimal digits"
        )
        build.add_argument("--size", choices=["full", "small"], default="full")
        build.add_argument("--out", type=Path, help="default: the instance's folder of packages")
        build.add_argument("--measure", action="store_true", help="measure the public seed's curve again")
        package_argument(verbs.add_parser("check", help="list every fault of a package folder"))
        calibrate = package_argument(verbs.add_parser("calibrate", help="run and score the solutions in the sandbox"))
        calibrate.add_argument("--runs", type=int, default=3)
        calibrate.add_argument("--only", action="append", default=[], help="just this solution; repeatable")
        pack = package_argument(verbs.add_parser("pack", help="seal the hidden parts"))
        pack.add_argument("--out", type=Path, required=True)
        pack.add_argument("--recipient", action="append", help="default: this installation's evaluator; repeatable")
        new = verbs.add_parser("new", help="begin a package of one's own")
        new.add_argument("task")
        new.add_argument("--metric", default="accuracy", help="what evaluate.py should measure (default: accuracy)")
        new.add_argument("--out", type=Path, required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        verb = options["verb"]
        code = {"build": build, "check": check, "calibrate": calibrate, "pack": pack, "new": new}[verb](options)
        if code != 0:
            raise CommandError(f"task {verb} ended with exit code {code}; what it said above names the reason")


def task_names() -> list[str]:
    """The shipped tasks: folders below tasks/ with a recipe."""
    return sorted(path.parent.name for path in (ROOT / "tasks").glob("*/recipe.py"))


def package_argument(parser: ArgumentParser) -> ArgumentParser:
    told = "a package folder, as `task build` and `task new` write it; or the name of a shipped task that was built"
    parser.add_argument("package", type=Path, help=told)
    return parser


def folder_of(options: dict[str, Any]) -> Path:
    """The folder itself, or where `task build` put the shipped task of that name."""
    given: Path = options["package"]
    if given.is_dir() or str(given) not in task_names():
        return given
    built = Path(settings.PACKAGES) / given / "plain"
    if not built.is_dir():
        raise CommandError(f"{given} has no package here yet; make it with `manage.py task build {given}`")
    return built


def build(options: dict[str, Any]) -> int:
    """Run the recipe in the task environment; it reports its progress itself. The seed goes through a pipe."""
    out = options["out"] or settings.PACKAGES / options["task"] / "plain"
    recipe = [task_python(), ROOT / "tasks" / options["task"] / "recipe.py", "--seed", "-", "--size", options["size"]]
    command = [*recipe, "--out", out, *(["--measure"] if options["measure"] else [])]
    seed = secret_seed() if options["seed"] == SECRET else options["seed"]
    return run(command, text=f"{seed}\n")


def check(options: dict[str, Any]) -> int:
    return evaluator("check", folder_of(options))


def calibrate(options: dict[str, Any]) -> int:
    only = [part for name in options["only"] for part in ("--only", name)]
    runs = ("--runs", options["runs"], "--task-env", settings.TASK_ENV)
    return evaluator("calibrate", folder_of(options), *runs, *only)


def pack(options: dict[str, Any]) -> int:
    recipients = options["recipient"] or [settings.EVALUATOR_RECIPIENT]
    sealed_to = [part for recipient in recipients for part in ("--recipient", recipient)]
    return evaluator("pack", folder_of(options), *sealed_to, "--out", options["out"])


def new(options: dict[str, Any]) -> int:
    script = ROOT / "tasks" / "new.py"
    return run([sys.executable, script, options["task"], "--metric", options["metric"], "--out", options["out"]])


def evaluator(*arguments: object) -> int:
    return run([sys.executable, "-m", "evaluator", *arguments])


def run(command: list[Any], text: str = "") -> int:
    """The exit code of a program that writes to our own output; of the environment it gets only where programs are."""
    sys.stdout.flush()
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
    words = [str(word) for word in command]
    return subprocess.run(words, cwd=ROOT, env=environment, input=text, text=True, check=False).returncode


def task_python() -> Path:
    python = Path(settings.TASK_ENV) / "bin" / "python"
    if not python.exists():
        raise CommandError(f"no task environment at {settings.TASK_ENV}; make it with `make install`")
    return python


def secret_seed() -> str:
    """256 bits, drawn at the first use and kept beside the evaluator's keys: whoever knows it knows all answers."""
    path = Path(settings.INSTANCE) / "evaluator-keys" / "nano_seed"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_hex(32))
    except FileExistsError:
        pass
    return path.read_text().strip()
