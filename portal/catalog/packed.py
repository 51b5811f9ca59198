"""Room: portal.catalog. Reading what `evaluator pack` made: a public tar, an age file, a manifest. Pure: no database.

Everything is checked before anything is stored. The sealed part is never opened: nobody here could.
"""

import hashlib
import re
import tarfile
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from django.utils.translation import gettext_lazy as _

from evaluator.manifest import Fault, Faults, Manifest, manifest_from_json, manifest_refusals
from evaluator.seal import SealBroken, head_read
from portal.core.errors import SiteError

MANIFEST_BYTES = 1024 * 1024
TEXT_BYTES = 256 * 1024
TAR_BYTES = 16 * 1024**3
TAR_MEMBERS = 100_000
NAME_BYTES = 255
DEPTH = 32
PARTS = ("public.tar", "sealed.age", "manifest.json", "digest")
SHA256 = re.compile(r"[0-9a-f]{64}")
WORKSPACE = "workspace/"
HINT = "hint.md"
DESCRIPTION = "task_description.md"


class PackageFaults(SiteError):
    """Everything that is wrong with a package, in one list."""

    code = "package_faults"
    template = _("The package has {count} faults: {first}")

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__(count=len(self.faults), first=str(self.faults[0]))


@dataclass(frozen=True)
class PackedTask:
    """A package as it came from its author's machine: `public` and `sealed` are files, hint and text are read."""

    manifest: Manifest
    digest: str
    public: Path
    sealed: Path
    description: str
    hint: str | None


def packed_read(folder: Path) -> PackedTask:
    """Read and check `folder` (`public.tar`, `sealed.age`, `manifest.json`, `digest`). Raises PackageFaults."""
    missing = [name for name in PARTS if not (folder / name).is_file()]
    if missing:
        raise PackageFaults(Fault("missing; make the folder with `evaluator pack`", file=name) for name in missing)
    faults: list[Fault] = []
    manifest = _manifest(folder / "manifest.json", faults)
    digest = (folder / "digest").read_text()[:200].strip().removeprefix("sha256:")
    if not SHA256.fullmatch(digest):
        faults.append(Fault("not a SHA-256 in hex", file="digest"))
    with (folder / "sealed.age").open("rb") as file:
        try:
            head_read(file)
        except SealBroken as problem:
            message = f"not sealed ({problem}); hidden parts are sealed before they come here"
            faults.append(Fault(message, file="sealed.age"))
    faults += tar_faults(folder / "public.tar")
    if faults or manifest is None:
        raise PackageFaults(faults)
    texts = _texts(folder / "public.tar")
    if DESCRIPTION not in texts:
        raise PackageFaults([Fault("missing in the public part; agents read it", file=DESCRIPTION)])
    hint = (folder / HINT).read_text() if (folder / HINT).is_file() else texts.get(HINT)
    return PackedTask(manifest, digest, folder / "public.tar", folder / "sealed.age", texts[DESCRIPTION], hint)


def tar_faults(path: Path) -> list[Fault]:
    """What keeps an uncompressed tar from being taken: links, devices, paths that climb out, twins, sizes. One list."""
    try:
        with tarfile.open(path, "r:") as tar:
            faults = list(_member_faults(iter(tar), path.name))
            end = tar.offset
    except (tarfile.TarError, EOFError, UnicodeError) as problem:
        return [Fault(f"not a readable tar: {problem}", file=path.name)]
    with path.open("rb") as file:
        file.seek(end)
        if any(chunk.strip(b"\0") for chunk in iter(lambda: file.read(1024 * 1024), b"")):
            faults.append(Fault("damaged: something that is no file header lies between its files", file=path.name))
    return faults


def tar_filtered(source: Path, target: IO[bytes], rename: Callable[[str], str | None]) -> str:
    """Write the members of `source` whose `rename` gives a name to `target`: same bytes, same order, no time, no owner.
    Returns the SHA-256 of what was written.
    """
    with tarfile.open(source, "r:") as tar, tarfile.open(fileobj=target, mode="w:", format=tarfile.PAX_FORMAT) as out:
        for member in tar:
            name = rename(member.name.removeprefix("./").rstrip("/") + ("/" if member.isdir() else ""))
            if not name or not name.strip("/"):
                continue
            info = tarfile.TarInfo(name.rstrip("/"))
            info.type, info.size = member.type, member.size
            info.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            out.addfile(info, tar.extractfile(member) if member.isfile() else None)
    target.seek(0)
    digest = hashlib.sha256()
    for chunk in iter(lambda: target.read(1024 * 1024), b""):
        digest.update(chunk)
    return digest.hexdigest()


def without_hint(name: str) -> str | None:
    """For `tar_filtered`: the public part, without the hint."""
    return None if name == HINT else name


def workspace_only(name: str) -> str | None:
    """For `tar_filtered`: what becomes /workspace, by its path in there."""
    return name.removeprefix(WORKSPACE) if name.startswith(WORKSPACE) else None


def _manifest(path: Path, faults: list[Fault]) -> Manifest | None:
    if path.stat().st_size > MANIFEST_BYTES:
        faults.append(Fault(f"larger than {MANIFEST_BYTES} bytes", file=path.name))
        return None
    try:
        manifest = manifest_from_json(path.read_bytes())
    except Faults as found:
        faults += found.faults
        return None
    faults += manifest_refusals(manifest)
    return manifest


def _member_faults(members: Iterator[tarfile.TarInfo], file: str) -> Iterator[Fault]:
    seen: set[str] = set()
    total = 0
    for number, member in enumerate(members, start=1):
        total += member.size
        if number > TAR_MEMBERS or total > TAR_BYTES:
            yield Fault(f"more than {TAR_MEMBERS} files or {TAR_BYTES // 1024**3} GiB", file=file)
            return
        problem = _member_problem(member, seen)
        if problem:
            yield Fault(problem, ascii(member.name)[:300], file=file)


def _member_problem(member: tarfile.TarInfo, seen: set[str]) -> str | None:
    """Why this member can't be taken; notes its name in `seen`."""
    name = member.name.removeprefix("./")
    parts = name.rstrip("/").split("/")
    try:
        long = any(len(part.encode()) > NAME_BYTES for part in parts)
    except UnicodeEncodeError:
        return "the name is not UTF-8; rename the file"
    # One name for file systems that fold case or accents.
    folded = unicodedata.normalize("NFC", name.rstrip("/")).casefold()
    twin = folded in seen and folded not in {"", "."}
    seen.add(folded)
    rules = [
        (not (member.isreg() or member.isdir()), "a link, device or special file; only files and folders are taken"),
        (name.startswith("/") or ".." in parts, "the path leads out of the package"),
        ("\\" in name or not name.isprintable(), "the name holds a backslash or a control character"),
        (long or len(parts) > DEPTH, f"longer than {NAME_BYTES} bytes in one part or deeper than {DEPTH} folders"),
        (twin, "stands twice, or differs from another only in case or accents"),
        (name.startswith(("evaluation/references", "solutions")), "a hidden part lies in the public one; seal it"),
        (name in {DESCRIPTION, HINT} and member.size > TEXT_BYTES, f"larger than {TEXT_BYTES} bytes"),
    ]
    return next((problem for broken, problem in rules if broken), None)


def _texts(path: Path) -> dict[str, str]:
    """Description and hint, as text."""
    texts: dict[str, str] = {}
    with tarfile.open(path, "r:") as tar:
        for member in tar:
            name = member.name.removeprefix("./")
            reader = tar.extractfile(member) if name in {DESCRIPTION, HINT} and member.isfile() else None
            if reader is None:
                continue
            try:
                texts[name] = reader.read().decode()
            except UnicodeDecodeError as problem:
                raise PackageFaults([Fault(f"not UTF-8 at byte {problem.start}", file=name)]) from None
    return texts
