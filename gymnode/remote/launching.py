"""Room: gymnode.remote. The command line and the restrictions of one run's keeper at each level."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Tuple

from gymnode.remote.gpus import gpu_devices, gpu_uuids_of
from gymnode.remote.keepers import Launch
from gymnode.remote.levels import (
    CLOSED_FLAGS,
    DEVICES,
    INSIDE_CODE,
    INSIDE_HOME,
    INSIDE_WORKSPACE,
    SYSTEM_FILES,
    SYSTEM_FOLDERS,
    Capabilities,
    device_flags,
    namespace_flags,
    python_prefixes,
    system_binds,
)


class Place(NamedTuple):
    """A run's folders on this machine: `work`, `tmp`, `home`, `etc` below `top`, owned by `uid` when that is set."""

    top: Path
    uid: int | None

    @property
    def work(self) -> Path:
        """The workspace."""
        return self.top / "work"


class Wants(NamedTuple):
    """What a run asks for: GPU indices, a task environment (venv), read-only assets, disk."""

    gpus: Tuple[int, ...]
    task_env: str | None
    assets: str | None
    disk_gb: float | None


def place_make(place: Place) -> None:
    """Create the folders; as root they are handed to the run's user, and others can't look in."""
    place.top.mkdir(mode=0o711, parents=True, exist_ok=True)
    place.top.chmod(0o711 if place.uid is not None else 0o700)
    for name in ("work", "tmp", "home"):
        folder = place.top / name
        folder.mkdir(mode=0o700, exist_ok=True)
        if place.uid is not None:
            os.chown(folder, place.uid, place.uid)
    _identity_write(place)


def _identity_write(place: Place) -> None:
    """The /etc/passwd and /etc/group of the inside: nobody but the run's own user."""
    uid = place.uid if place.uid is not None else os.getuid()
    gid = place.uid if place.uid is not None else os.getgid()
    folder = place.top / "etc"
    folder.mkdir(mode=0o755, exist_ok=True)
    folder.chmod(0o755)
    texts = {
        "passwd": f"agent:x:{uid}:{gid}::{INSIDE_HOME}:/bin/bash\nnobody:x:65534:65534::/:/usr/sbin/nologin\n",
        "group": f"agent:x:{gid}:\nnogroup:x:65534:\n",
        "hosts": "127.0.0.1 localhost workspace\n::1 localhost\n",
    }
    for name, text in texts.items():
        path = folder / name
        path.write_text(text)
        path.chmod(0o644)


def launch_make(level: str, place: Place, wants: Wants, found: Capabilities) -> Launch:
    """How to start the keeper of a run at `level`."""
    if level == "namespace":
        return _namespace_launch(place, wants, found)
    landlock = _landlock_plan(place, wants, found) if level == "landlock" else None
    restrict: Dict[str, Any] = {
        "uid": place.uid,
        "gid": place.uid,
        "landlock": landlock,
        "seccomp": "strict" if level == "landlock" else None,
        "file_gb": wants.disk_gb,
    }
    command = (sys.executable, "-I", "-S", "-W", "ignore", sys.argv[0], "keeper")
    return Launch(command, str(place.work), restrict, uid=None)


def _namespace_launch(place: Place, wants: Wants, found: Capabilities) -> Launch:
    extra = [*python_prefixes(found.python), *_env_folders(wants)]
    command = [found.bwrap, *namespace_flags(), *system_binds(tuple(dict.fromkeys(extra)))]
    command += ["--proc", "/proc", *device_flags(wants.disk_gb if found.sizes else None)]
    for index in gpu_devices(wants.gpus):
        command += ["--dev-bind", index, index]
    if wants.gpus:
        for folder in ("/sys/bus", "/sys/class", "/sys/devices", "/sys/module"):
            command += ["--ro-bind-try", folder, folder]
    command += ["--bind", str(place.top / "tmp"), "/tmp", "--symlink", "/tmp", "/var/tmp"]
    command += ["--bind", str(place.top / "home"), INSIDE_HOME, "--bind", str(place.work), INSIDE_WORKSPACE]
    for name in ("passwd", "group", "hosts"):
        command += ["--ro-bind", str(place.top / "etc" / name), f"/etc/{name}"]
    if wants.assets:
        command += ["--ro-bind", wants.assets, "/assets"]
    command += ["--ro-bind", str(code_publish(place)), INSIDE_CODE, *CLOSED_FLAGS, "--chdir", INSIDE_WORKSPACE]
    command += [found.python, "-I", "-S", "-W", "ignore", INSIDE_CODE, "keeper"]
    restrict: Dict[str, Any] = {"uid": None, "gid": None, "landlock": None, "seccomp": "inside"}
    restrict["file_gb"] = wants.disk_gb
    return Launch(tuple(command), INSIDE_WORKSPACE, restrict, uid=place.uid)


def code_publish(place: Place) -> Path:
    """A copy of gymd's own zipapp where the run's user can read it (gymd's folder is closed to it)."""
    target = place.top / "etc" / "gymd.pyz"
    fresh = target.with_suffix(".new")
    fresh.write_bytes(Path(sys.argv[0]).read_bytes())
    fresh.chmod(0o444)
    fresh.replace(target)  # the old one may be mounted, and may not be written to
    return target


def _env_folders(wants: Wants) -> List[str]:
    """The task environment and, where it lies elsewhere, the interpreter it was made from."""
    if not wants.task_env:
        return []
    folders = [wants.task_env]
    for name in ("python", "python3"):
        python = Path(wants.task_env, "bin", name)
        if python.exists():
            folders += [one for one in python_prefixes(str(python)) if one != wants.task_env]
            break
    return folders


def _landlock_plan(place: Place, wants: Wants, found: Capabilities) -> Dict[str, Any]:
    read = [*SYSTEM_FOLDERS, *SYSTEM_FILES, "/proc", "/sys/devices/system", "/etc/passwd", "/etc/group", "/etc/hosts"]
    read += [*python_prefixes(sys.executable), *_env_folders(wants)]
    if wants.assets:
        read.append(wants.assets)
    if wants.gpus:
        read.append("/sys")
    write = [str(place.work), str(place.top / "tmp"), str(place.top / "home"), "/dev/shm"]
    devices = [*DEVICES, *gpu_devices(wants.gpus)]
    if place.uid is not None:
        # With a user of its own, terminals of others are closed to the run by their mode.
        devices += ["/dev/ptmx", "/dev/pts"]
    return {"read": read, "write": write, "devices": devices, "network": False}


def environment_make(level: str, place: Place, wants: Wants) -> Dict[str, str]:
    """The environment every shell of the run starts with; pagers and editors can't stop a command."""
    inside = level == "namespace"
    home = INSIDE_HOME if inside else str(place.top / "home")
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    environment = {
        "HOME": home, "USER": "agent", "LOGNAME": "agent", "SHELL": "/bin/bash", "LANG": "C.UTF-8",
        "TERM": "xterm-256color", "TMPDIR": "/tmp" if inside else str(place.top / "tmp"),
        "PAGER": "cat", "MANPAGER": "cat", "GIT_PAGER": "cat", "SYSTEMD_PAGER": "cat", "BAT_PAGER": "", "LESS": "-EFRX",
        "EDITOR": "true", "VISUAL": "true", "GIT_EDITOR": "true", "GIT_SEQUENCE_EDITOR": "true",
        "GIT_TERMINAL_PROMPT": "0", "GIT_SSH_COMMAND": "ssh -oBatchMode=yes", "DEBIAN_FRONTEND": "noninteractive",
        "PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "CONDA_ALWAYS_YES": "true",
        "CUDA_VISIBLE_DEVICES": ",".join(gpu_uuids_of(wants.gpus)),
    }  # fmt: skip
    if wants.task_env:
        environment["VIRTUAL_ENV"] = wants.task_env
        path = f"{wants.task_env}/bin:{path}"
    return {**environment, "PATH": path}
