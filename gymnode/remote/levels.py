"""Room: gymnode.remote. The isolation levels: what this machine can do (probed once), and how a keeper is started.

`namespace` is bubblewrap; as root it is started under the run's own user, since as root it isolates nothing.
`landlock` is Landlock and seccomp on the real folders; `plain` is no wall and only used when a request names it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Dict, List, NamedTuple, Tuple

from gymnode.remote.landlock import landlock_abi
from gymnode.remote.seccomp import filter_build

LEVELS = ("namespace", "landlock", "plain")
PROBE_UID = 60999
INSIDE_CODE = "/run/gymd/gymd.pyz"
INSIDE_WORKSPACE = "/workspace"
INSIDE_HOME = "/home/agent"

SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt/conda", "/opt/cuda")
SYSTEM_FILES = (
    "/etc/alternatives", "/etc/bash.bashrc", "/etc/ca-certificates", "/etc/debian_version", "/etc/environment",
    "/etc/fonts", "/etc/gitconfig", "/etc/host.conf", "/etc/inputrc", "/etc/ld.so.cache", "/etc/ld.so.conf",
    "/etc/ld.so.conf.d", "/etc/localtime", "/etc/locale.alias", "/etc/magic", "/etc/mime.types", "/etc/nsswitch.conf",
    "/etc/OpenCL", "/etc/os-release", "/etc/pki", "/etc/profile", "/etc/protocols", "/etc/services", "/etc/shells",
    "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/terminfo", "/etc/timezone", "/etc/vim",
)  # fmt: skip
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")


class Level(NamedTuple):
    """Whether one level works here, and if not why, with the remedy."""

    name: str
    available: bool
    reason: str = ""


class Capabilities(NamedTuple):
    """What was probed: levels in order of strength, the tools found."""

    levels: Dict[str, Level]
    bwrap: str
    python: str
    sizes: bool = False  # whether this bubblewrap can bound a tmpfs

    def best(self) -> str:
        """The strongest available level; `plain` is never chosen by itself, so this may be empty."""
        return next((name for name in LEVELS[:2] if self.levels[name].available), "")


def capabilities_probe() -> Capabilities:
    """Try each level once. Takes some 50 ms; remember the answer."""
    bwrap = bwrap_find()
    namespace, python = _namespace_probe(bwrap)
    levels = {"namespace": namespace, "landlock": _landlock_probe(), "plain": Level("plain", available=True)}
    return Capabilities(levels, bwrap, python or sys.executable, sizes=namespace.available and _bwrap_sizes(bwrap))


def _bwrap_sizes(bwrap: str) -> bool:
    told = subprocess.run([bwrap, "--help"], capture_output=True, timeout=10, check=False)
    return b"--size" in told.stdout + told.stderr


def device_flags(size_gb: float | None) -> List[str]:
    """/dev with a shared memory of its own, bounded where a size is given."""
    size = ["--size", str(int(size_gb * 10**9))] if size_gb else []
    return ["--dev", "/dev", *size, "--tmpfs", "/dev/shm"]


# Last of all: what lies in memory and belongs to nobody takes no file.
CLOSED_FLAGS = ("--remount-ro", "/dev", "--remount-ro", "/")


def bwrap_find() -> str:
    """Bubblewrap's path: `GYMD_BWRAP`, the system's, or the one beside this interpreter; empty when there is none."""
    beside = Path(sys.executable).parent / "bwrap"
    chosen = os.environ.get("GYMD_BWRAP") or shutil.which("bwrap")
    return chosen or (str(beside) if beside.exists() else "")


def python_prefixes(python: str) -> Tuple[str, ...]:
    """Folders an interpreter needs that are no system folders: where it lies and where its library lies."""
    if not python:
        return ()
    real = Path(python).resolve()
    places = {str(real.parent.parent), str(Path(python).absolute().parent.parent)}
    return tuple(sorted(place for place in places if not is_system(place)))


def is_system(path: str) -> bool:
    """True for a path below one of the system folders."""
    return path == "/" or any(path == top or path.startswith(top + "/") for top in SYSTEM_FOLDERS)


def _pythons() -> List[str]:
    found = [str(Path(sys.executable).resolve())]
    found += [path for path in ("/usr/bin/python3", "/usr/local/bin/python3") if Path(path).exists()]
    return found


def _namespace_probe(bwrap: str) -> Tuple[Level, str]:
    if os.environ.get("GYMD_NO_NAMESPACES"):
        return Level("namespace", available=False, reason="switched off by GYMD_NO_NAMESPACES"), ""
    if not bwrap:
        return Level("namespace", available=False, reason="bubblewrap is missing: install the package bubblewrap"), ""
    reason = ""
    for python in _pythons():
        reason = _bwrap_try(bwrap, python)
        if not reason:
            return Level("namespace", available=True), python
    return Level("namespace", available=False, reason=_remedy(reason)), ""


def _bwrap_try(bwrap: str, python: str) -> str:
    """Empty when a program really starts inside; else what was said."""
    command = [
        bwrap,
        *namespace_flags(),
        *system_binds(python_prefixes(python)),
        "--proc",
        "/proc",
        *device_flags(None),
    ]
    command += [*CLOSED_FLAGS, python, "-I", "-S", "-c", "print('inside')"]

    def become() -> None:
        if os.getuid() == 0:
            os.setgroups([])
            os.setresgid(PROBE_UID, PROBE_UID, PROBE_UID)
            os.setresuid(PROBE_UID, PROBE_UID, PROBE_UID)

    try:
        done = subprocess.run(command, capture_output=True, timeout=10, check=False, cwd="/", preexec_fn=become)
    except (OSError, subprocess.SubprocessError) as error:
        return f"{error}"
    if done.stdout.strip() == b"inside":
        return ""
    return done.stderr.decode("utf-8", "replace").strip()[-300:] or f"bubblewrap ended with {done.returncode}"


def _remedy(reason: str) -> str:
    hints = (
        ("/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"),
        ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
         "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for bwrap"),
        ("/proc/sys/user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=10000"),
    )  # fmt: skip
    for path, bad, remedy in hints:
        try:
            if Path(path).read_text().strip() == bad:
                return f"{reason}: {remedy}"
        except OSError:
            continue
    return f"{reason}: allow user namespaces for this user (in a container: seccomp and AppArmor profiles that do)"


def _landlock_probe() -> Level:
    if os.environ.get("GYMD_NO_LANDLOCK"):
        return Level("landlock", available=False, reason="switched off by GYMD_NO_LANDLOCK")
    if landlock_abi() < 1:
        return Level(
            "landlock", available=False, reason="the kernel has no Landlock: boot 5.13 or later with lsm=landlock"
        )
    try:
        filter_build(os.uname().machine, strict=True)
    except OSError as error:
        return Level("landlock", available=False, reason=f"{error}")
    return Level("landlock", available=True)


def namespace_flags(*, network: bool = False) -> List[str]:
    """bubblewrap's flags for all namespaces."""
    flags = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    if not network:
        flags.append("--unshare-net")
    return [*flags, "--cap-drop", "ALL", "--die-with-parent", "--new-session", "--as-pid-1", "--hostname", "workspace"]


def system_binds(more: Tuple[str, ...]) -> List[str]:
    """The root of a run: an empty one and an allow-list of read-only system paths, links kept as links."""
    binds = ["--tmpfs", "/"]
    for path in (*SYSTEM_FOLDERS, *SYSTEM_FILES, *more):
        place = Path(path)
        if place.is_symlink() and path in SYSTEM_FOLDERS:
            binds += ["--symlink", os.readlink(path), path]  # noqa: PTH115 - Path.readlink is 3.9
        elif place.exists():
            binds += ["--ro-bind", path, path]
    if Path("/sys/devices/system").exists():
        binds += ["--ro-bind", "/sys/devices/system", "/sys/devices/system"]
    return binds
