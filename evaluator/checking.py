"""Room: evaluator. `check`: every fault of a package folder in one list, each with its place and what to do."""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from evaluator.leaks import canary_faults, leak_faults
from evaluator.manifest import Manifest, manifest_parse, manifest_refusals
from evaluator.prose import FILE as DESCRIPTION
from evaluator.prose import description_faults
from evaluator.yamlcore import Fault, Faults

NEEDED_FILES = (
    "task.yaml",
    DESCRIPTION,
    "evaluation/evaluate.py",
    "solutions/baseline/run.sh",
    "solutions/reference/run.sh",
)
NEEDED_FOLDERS = ("workspace", "evaluation", "solutions")
_TOP = {"task.yaml", DESCRIPTION, "hint.md", "workspace", "evaluation", "solutions", "README.md", "LICENSE"}
_ARCHIVES = (".zip", ".tar", ".tgz", ".tar.gz", ".tar.zst", ".tar.xz", ".tar.bz2", ".7z", ".rar")
_LEFT_IN = {
    ".git": "the history may tell the solution: remove the folder",
    "__MACOSX": "left by an archiver: remove the folder",
    ".DS_Store": "left by a file manager: remove it",
    ".hg": "the history may tell the solution: remove the folder",
    ".svn": "the history may tell the solution: remove the folder",
}
_ABSOLUTE = re.compile(r"""["'](/(?:outputs|evaluation|scratch))\b""")
MAX_FILES = 50_000
MAX_BYTES = 8 * 1024**3
MAX_DEPTH = 16
_FEW = 100


@dataclass(frozen=True)
class Checked:
    """A folder without faults, and the folder itself (inside a wrapping one, where there was one)."""

    folder: Path
    manifest: Manifest


def package_root(folder: Path) -> Path:
    """The folder that holds `task.yaml`: this one, or the only folder in it."""
    if (folder / "task.yaml").exists() or not folder.is_dir():
        return folder
    inside = [path for path in folder.iterdir() if path.name not in {"__MACOSX", ".DS_Store"}]
    return inside[0] if len(inside) == 1 and inside[0].is_dir() else folder


def check(folder: Path) -> Checked:
    """Raises `Faults` with all of them."""
    root = package_root(folder)
    if not root.is_dir():
        raise Faults([Fault("is no folder", "", 0, str(folder))])
    if not (root / "task.yaml").exists():
        there = ", ".join(sorted(_shown(path.name) for path in root.iterdir())[:10]) or "nothing"
        raise Faults([Fault(f"missing here and in a wrapping folder; found: {there}", "", 0, "task.yaml")])
    faults = _structure(root)
    faults += _tree(root)
    manifest, found = _manifest(root)
    faults += found
    if manifest is not None:
        faults += _against_manifest(root, manifest) + canary_faults(root, manifest.canary)
    if (root / DESCRIPTION).is_file():
        faults += _text_faults(root / DESCRIPTION)
    faults += leak_faults(root)
    if faults or manifest is None:
        raise Faults(faults[:_FEW] + ([Fault(f"and {len(faults) - _FEW} more")] if len(faults) > _FEW else []))
    return Checked(root, manifest)


def _structure(root: Path) -> list[Fault]:
    faults = [Fault("missing; a package needs it", "", 0, name) for name in NEEDED_FILES if not (root / name).is_file()]
    faults += [
        Fault("missing; a package needs this folder", "", 0, name)
        for name in NEEDED_FOLDERS
        if not (root / name).is_dir()
    ]
    for path in sorted(root.iterdir()):
        if path.name not in _TOP and path.name not in _LEFT_IN:
            faults.append(
                Fault(f"doesn't belong to a package; known here: {', '.join(sorted(_TOP))}", "", 0, _shown(path.name))
            )
    return faults


def _shown(name: str) -> str:
    return name.encode("utf-8", "backslashreplace").decode()


def _manifest(root: Path) -> tuple[Manifest | None, list[Fault]]:
    path = root / "task.yaml"
    if not path.is_file():
        return None, []
    try:
        manifest = manifest_parse(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        return None, [Fault(f"not UTF-8 (byte {error.start})", "", 0, "task.yaml")]
    except Faults as error:
        return None, [Fault(fault.message, fault.where, fault.line, "task.yaml") for fault in error.faults]
    return manifest, manifest_refusals(manifest)


def _text_faults(path: Path) -> list[Fault]:
    try:
        return description_faults(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        return [Fault(f"not UTF-8 (byte {error.start})", "", 0, path.name)]


def _against_manifest(root: Path, manifest: Manifest) -> list[Fault]:
    faults = _absolute_paths(root)
    for index, output in enumerate(manifest.outputs):
        if (root / "workspace" / output.path).exists():
            where = f"outputs[{index}].path"
            faults.append(
                Fault(
                    f"{output.path} lies in the workspace already; the agent makes it: take it out",
                    where,
                    0,
                    "task.yaml",
                )
            )
    if manifest.hint is not None and not (root / "hint.md").is_file():
        faults.append(
            Fault(
                "task.yaml has `hint:` but there is no hint.md; write it or take the field out", "hint", 0, "task.yaml"
            )
        )
    if manifest.hint is None and (root / "hint.md").is_file():
        faults.append(
            Fault("there is a hint.md but task.yaml has no `hint:`; add `hint: {penalty: 10}`", "hint", 0, "task.yaml")
        )
    if manifest.env.lock and not (root / "workspace" / manifest.env.lock).is_file():
        faults.append(Fault(f"{manifest.env.lock} isn't in the workspace", "env.lock", 0, "task.yaml"))
    if manifest.solvers and not (root / manifest.solvers.runner).is_file():
        faults.append(Fault(f"{manifest.solvers.runner} is missing", "solvers.runner", 0, "task.yaml"))
    return faults


def _absolute_paths(root: Path) -> list[Fault]:
    """Level 2 has no mounts: a path that begins at `/` works on one machine and not on the next."""
    path = root / "evaluation" / "evaluate.py"
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
    advice = "exists on sandbox level 1 only; use ../outputs, Path(__file__).resolve().parent and the working folder"
    return [
        Fault(f"{found[1]} {advice}", "", number, "evaluation/evaluate.py")
        for number, line in enumerate(lines, 1)
        if (found := _ABSOLUTE.search(line)) and not line.lstrip().startswith("#")
    ]


def _tree(root: Path) -> list[Fault]:
    """Names, links, leftovers, archives, sizes: without opening a file that isn't a plain one."""
    faults: list[Fault] = []
    total = count = 0
    for place, folders, files in os.walk(root):
        here = Path(place)
        inside = here.relative_to(root).as_posix().removeprefix(".")
        faults += _same_names(inside, [*folders, *files])
        for name in sorted([*folders, *files]):
            path = f"{inside}/{name}".lstrip("/")
            faults += _entry_faults(root, here / name, path)
            count += 1
            found = (here / name).lstat()
            total += found.st_size if stat.S_ISREG(found.st_mode) else 0
        folders[:] = [name for name in folders if name not in _LEFT_IN and not (here / name).is_symlink()]
        if count > MAX_FILES or total > MAX_BYTES:
            limit = f"more than {MAX_FILES} files or {MAX_BYTES // 1024**3} GiB; declare big files as `assets`"
            return [*faults, Fault(limit, "", 0, inside or ".")]
    return faults


def _same_names(inside: str, names: list[str]) -> list[Fault]:
    seen: dict[str, str] = {}
    faults = []
    for name in sorted(names):
        folded = unicodedata.normalize("NFC", name).casefold()
        if folded in seen:
            faults.append(
                Fault(
                    f"differs from {_shown(seen[folded])!r} only in case or accents; rename one",
                    "",
                    0,
                    _shown(f"{inside}/{name}".lstrip("/")),
                )
            )
        seen[folded] = name
    return faults


def _entry_faults(root: Path, path: Path, name: str) -> list[Fault]:
    shown = _shown(name)
    faults = []
    if shown != name:
        faults.append(Fault("the name is not UTF-8; rename it", "", 0, shown))
    elif "\\" in name or any(ord(letter) < 32 or ord(letter) == 127 for letter in name):
        faults.append(Fault("the name holds a backslash or a control character; rename it", "", 0, ascii(name)))
    if len(os.fsencode(path.name)) > 200 or name.count("/") >= MAX_DEPTH:
        faults.append(Fault(f"the name is too long or lies more than {MAX_DEPTH} folders deep", "", 0, shown))
    if path.name in _LEFT_IN:
        faults.append(Fault(_LEFT_IN[path.name], "", 0, shown))
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        faults += _link_faults(root, path, shown)
    elif not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        faults.append(Fault("neither a file nor a folder (a device, pipe or socket); remove it", "", 0, shown))
    elif stat.S_ISREG(mode) and path.name.lower().endswith(_ARCHIVES):
        faults.append(Fault("an archive within the package; unpack it, or declare it under `assets`", "", 0, shown))
    return faults


def _link_faults(root: Path, path: Path, shown: str) -> list[Fault]:
    target = path.resolve()
    top = root.resolve() / shown.split("/", 1)[0]
    if path.readlink().is_absolute() or not target.is_relative_to(top):
        return [Fault("a link that points out of its part of the package; put the file itself there", "", 0, shown)]
    if target.is_dir() or not target.exists():
        return [Fault("a link to a folder or to nothing; put the files themselves there", "", 0, shown)]
    return []
