"""Environments outside the site's own: one for task code, one for the scoring program. `make install` runs this file.

Both are made by uv from hash-locked files, with bytecode compiled (a read-only sandbox can't write it), by an
interpreter that other users can reach. A mark holds the lock's hash, so an unchanged environment is left alone.
"""

import hashlib
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from portal.embedded.reach import folder, home_folder, interpreter
from portal.settings.instance import Instance, instance_of

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("tasks", "evaluator")


def environment(instance: Instance, name: str, lock: Path) -> Path:
    """Make (or keep) the environment `name` from `lock`; returns its folder. Raises CalledProcessError."""
    target = instance.envs / name
    python = interpreter(instance.home)
    mark = hashlib.sha256(lock.read_bytes() + str(python).encode()).hexdigest()
    if (target / ".mark").exists() and (target / ".mark").read_text() == mark:
        return target
    shutil.rmtree(target, ignore_errors=True)
    uv = str(Path(sys.executable).parent / "uv")
    subprocess.run([uv, "venv", "-q", "--python", str(python), str(target)], check=True)
    inside = str(target / "bin" / "python")
    install = [
        uv,
        "pip",
        "install",
        "-q",
        "--python",
        inside,
        "--require-hashes",
        "--compile-bytecode",
        "--link-mode=copy",
    ]
    subprocess.run([*install, "-r", str(lock)], check=True)
    for path in (target, *target.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o555 if path.is_dir() else 0o444))
    (target / ".mark").write_text(mark)
    return target


def environments(instance: Instance) -> None:
    """Both environments of this instance, side by side."""
    home_folder(instance.home)
    folder(instance.envs)
    interpreter(instance.home)  # may copy one: once, before two need it
    with ThreadPoolExecutor(2) as pool:
        made = [pool.submit(environment, instance, name, ROOT / name / "requirements.lock") for name in NAMES]
        for one in made:
            one.result()


if __name__ == "__main__":
    try:
        environments(instance_of(ROOT))
    except RuntimeError as error:
        sys.exit(str(error))
