"""Room: gymnode.remote. A whole workspace in (a tar), declared outputs out: carried out by the keeper on descriptors.

Both walk folder by folder with O_NOFOLLOW, so no link planted in the workspace leads anywhere else.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import stat
import tarfile
from pathlib import PurePosixPath
from typing import Any, Dict, Tuple

from gymnode.remote.refusals import Refusal, refusal_from_os

CHUNK = 1024 * 1024
MAX_MEMBERS = 500_000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def tree_unpack(root: str, source_fd: int, sha256: str) -> Dict[str, Any]:
    """Unpack a tar below `root`: files, folders and links that stay inside; anything else is refused, by name."""
    _check_digest(source_fd, sha256)
    count = size = 0
    top = os.open(root, _FOLDER)
    try:
        with os.fdopen(os.dup(source_fd), "rb") as stream, tarfile.open(fileobj=stream, mode="r:*") as archive:
            for member in archive:
                count += 1
                if count > MAX_MEMBERS:
                    raise Refusal("path_too_large", f"the archive has more than {MAX_MEMBERS} members")
                _unpack_member(archive, member, top)
                size += member.size
    except tarfile.TarError as error:
        raise Refusal("bad_request", f"the archive can't be read: {error}") from error
    except OSError as error:
        raise refusal_from_os("the archive", error) from error
    finally:
        os.close(top)
    return {"members": count, "bytes": size}


def _check_digest(fd: int, wanted: str) -> None:
    digest = hashlib.sha256()
    position = 0
    while True:
        chunk = os.pread(fd, CHUNK, position)
        if not chunk:
            break
        digest.update(chunk)
        position += len(chunk)
    if digest.hexdigest() != wanted:
        raise Refusal("bad_request", "the archive arrived damaged (sha256 differs): send it again from the start")
    os.lseek(fd, 0, os.SEEK_SET)


def _parts_of(name: str) -> Tuple[str, ...]:
    pure = PurePosixPath(name)
    if pure.is_absolute() or ".." in pure.parts or "\0" in name:
        raise Refusal("bad_request", f"the archive names {name!r}, outside the workspace")
    return tuple(part for part in pure.parts if part != ".")


def _unpack_member(archive: tarfile.TarFile, member: tarfile.TarInfo, top: int) -> None:
    parts = _parts_of(member.name)
    if not parts:
        return
    parent = _folder_make(top, parts[:-1])
    try:
        if member.isdir():
            os.close(_folder_make(parent, parts[-1:]))
        elif member.isreg():
            _file_write(archive, member, parent, parts[-1])
        elif member.issym():
            _link_make(member, parts, parent)
        else:
            raise Refusal("bad_request", f"the archive holds {member.name!r}, neither file, folder nor symbolic link")
    finally:
        os.close(parent)


def _folder_make(start: int, parts: Tuple[str, ...]) -> int:
    """A descriptor of the folder `parts` below `start`, made where missing. The caller closes it."""
    current = os.dup(start)
    for part in parts:
        with contextlib.suppress(FileExistsError):
            os.mkdir(part, 0o755, dir_fd=current)
        following = os.open(part, _FOLDER, dir_fd=current)
        os.close(current)
        current = following
    return current


def _file_write(archive: tarfile.TarFile, member: tarfile.TarInfo, parent: int, name: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    source = archive.extractfile(member)
    fd = os.open(name, flags, 0o644, dir_fd=parent)
    with os.fdopen(fd, "wb") as target:
        if source is not None:
            shutil.copyfileobj(source, target, CHUNK)
        os.fchmod(target.fileno(), 0o755 if member.mode & 0o100 else 0o644)
    if member.mtime > 0:
        os.utime(name, (member.mtime, member.mtime), dir_fd=parent, follow_symlinks=False)


def _link_make(member: tarfile.TarInfo, parts: Tuple[str, ...], parent: int) -> None:
    depth = len(parts) - 1
    target = PurePosixPath(member.linkname)
    for part in target.parts:
        depth += -1 if part == ".." else int(part != ".")
        if depth < 0 or target.is_absolute():
            raise Refusal("bad_request", f"the archive links {member.name!r} to {member.linkname!r}, outside")
    os.symlink(member.linkname, parts[-1], dir_fd=parent)


def output_copy(root: str, path: str, max_bytes: int, target_fd: int) -> Dict[str, Any]:
    """Copy one declared output into `target_fd`, hashed on the way. Regular files only; links are refused."""
    parts = _parts_of(path)
    if not parts:
        raise Refusal("wrong_path_kind", f"{path!r} names no file")
    try:
        source = _open_nofollow(root, parts)
    except OSError as error:
        raise _output_refusal(path, error) from error
    try:
        return _copy_checked(source, path, max_bytes, target_fd)
    finally:
        os.close(source)


def _output_refusal(path: str, error: OSError) -> Refusal:
    if error.errno == errno.ELOOP:
        return Refusal("wrong_path_kind", f"{path} is a link, or lies behind one: outputs must be regular files")
    return refusal_from_os(path, error)


def _open_nofollow(root: str, parts: Tuple[str, ...]) -> int:
    current = os.open(root, _FOLDER)
    for part in parts[:-1]:
        facts = os.stat(part, dir_fd=current, follow_symlinks=False)
        if stat.S_ISLNK(facts.st_mode):
            os.close(current)
            raise OSError(errno.ELOOP, "is a link")
        following = os.open(part, _FOLDER, dir_fd=current)
        os.close(current)
        current = following
    try:
        return os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=current)
    finally:
        os.close(current)


def _copy_checked(source: int, path: str, max_bytes: int, target_fd: int) -> Dict[str, Any]:
    facts = os.fstat(source)
    if not stat.S_ISREG(facts.st_mode):
        raise Refusal("wrong_path_kind", f"{path} is no regular file")
    digest = hashlib.sha256()
    size = 0
    while True:
        chunk = os.read(source, CHUNK)
        if not chunk:
            return {"size": size, "sha256": digest.hexdigest()}
        size += len(chunk)
        if size > max_bytes:
            raise Refusal("path_too_large", f"{path} is larger than the {max_bytes} bytes the task allows")
        digest.update(chunk)
        view = memoryview(chunk)
        while view:
            view = view[os.write(target_fd, view) :]
