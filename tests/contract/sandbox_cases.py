"""Programs that try to get out of the sandbox, and what the suite needs to run them. Each prints one line of JSON."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from evaluator.sandbox import Job, Ran, Sandbox
from evaluator.users import unreachable

ROOT = Path(__file__).resolve().parents[2]
SECRET = "the answer is 42"
_LEFT_OUT = ("test", "site-packages", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3", "config-*")

TRY = """
import json, os, socket, sys, time
def attempt(call):
    try:
        return repr(call())[:200]
    except BaseException as error:
        return f"{type(error).__name__} {getattr(error, 'errno', '')}"
def say(**found):
    print(json.dumps(found), flush=True)
def read(path):
    return open(path, "rb").read(100).decode("utf-8", "replace")
def write(path):
    return open(path, "wb").write(b"changed")
"""


def public_folder() -> Path:
    """A folder that other users may pass through (pytest's own are 0700)."""
    path = Path(tempfile.mkdtemp(prefix="sandbox-suite-"))
    path.chmod(0o711)
    return path


def interpreter(folder: Path) -> Path:
    """An environment whose python any user can run: this one's, or a copy where it lies below a closed folder."""
    if unreachable(Path(sys.base_prefix), 59_999) is None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "env"], check=True)
        return folder / "env"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    env = folder / "env"
    (env / "bin").mkdir(parents=True)
    shutil.copy2(Path(sys.base_prefix) / "bin" / version, env / "bin" / "python")
    source = Path(sys.base_prefix) / "lib" / version
    shutil.copytree(source, env / "lib" / version, ignore=shutil.ignore_patterns(*_LEFT_OUT), symlinks=True)
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o055 if path.is_dir() else 0o044))
    return env


def prepared(sandbox: Sandbox) -> Path:
    """A fresh base with a reference and an output."""
    base = sandbox.folder()
    (base / "evaluation").mkdir()
    (base / "outputs").mkdir()
    (base / "evaluation" / "reference.txt").write_text(SECRET)
    (base / "outputs" / "predictions.csv").write_text("id,y\n1,2\n")
    return base


def attempt(sandbox: Sandbox, code: str, **limits: object) -> Ran:
    """Run `code` where evaluate.py runs, with a reference and an output beside it."""
    base = prepared(sandbox)
    try:
        return attempt_in(sandbox, base, code, **limits)
    finally:
        sandbox.discard(base)


def attempt_in(sandbox: Sandbox, base: Path, code: str, **limits: object) -> Ran:
    argv = (str(sandbox.env.python), "-P", "-s", "-B", "-c", TRY.replace("{", "{{").replace("}", "}}") + _braces(code))
    wanted = {"memory_mb": 512, "seconds": 20, "scratch_mb": 16, "result": "result.json", **limits}
    return sandbox.run(Job(base=base, argv=argv, env={"SEED": "7"}, read=("evaluation", "outputs"), **wanted))  # type: ignore[arg-type]


def _braces(code: str) -> str:
    return code.replace("{", "{{").replace("}", "}}")


def said(ran: Ran) -> dict[str, str]:
    """The program's one line."""
    assert ran.stdout.strip(), (ran.ended, ran.exit_code, ran.fault, ran.stderr)
    found = json.loads(ran.stdout.strip().splitlines()[-1])
    assert isinstance(found, dict)
    return found


def refused(answer: str) -> bool:
    return answer.split(maxsplit=1)[0].endswith("Error")


def running_with(mark: str) -> list[str]:
    """Processes whose command line holds `mark`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if mark.encode() in line:
                found.append(entry.name)
    return found
