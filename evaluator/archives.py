"""Room: evaluator. Uploaded archives (zip, tar, tar.gz): known by their bytes, checked before anything is written.

Names are kept as the archive has them and only ever used below a fresh folder of our own. Standard library only.
"""

from __future__ import annotations

import gzip
import stat
import tarfile
import zipfile
import zlib
from pathlib import Path

from evaluator.tars import TarLimits, TarRefused, safe_name, tar_unpack
from evaluator.yamlcore import Fault, Faults

MAX_RATIO = 200
_SMALL = 16 * 1024 * 1024
_CHUNK = 1024 * 1024
_KNOWN = (
    (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "zip"),
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"7z\xbc\xaf\x27\x1c", "7z"),
    (b"Rar!", "rar"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ", "xz"),
    (b"%PDF", "application/pdf"),
)
_TEXTS = ((b"<!doctype html", "text/html"), (b"<html", "text/html"), (b"<?xml", "text/xml"), (b"{", "application/json"))


def kind_of(path: Path) -> str:
    """`zip`, `gzip`, `tar`, or what else the first bytes say."""
    with path.open("rb") as stream:
        head = stream.read(512)
    for magic, name in _KNOWN:
        if head.startswith(magic):
            return name
    if head[257:262] == b"ustar":
        return "tar"
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return next(
        (name for magic, name in _TEXTS if start.startswith(magic)), "unknown bytes" if head else "an empty file"
    )


def archive_unpack(path: Path, into: Path, limits: TarLimits | None = None) -> None:
    """Unpack into the fresh folder `into`. Raises `Faults` before anything is written."""
    limits = limits or TarLimits(entries=50_000, total=8 * 1024**3)
    kind = kind_of(path)
    try:
        if kind == "zip":
            _unzip(path, into, limits)
        elif kind == "gzip":
            with gzip.open(path) as stream:
                tar_unpack(stream, into, _by_ratio(path, limits))  # type: ignore[arg-type]  # a GzipFile is a binary stream
        elif kind == "tar":
            with path.open("rb") as stream:
                tar_unpack(stream, into, limits)
        else:
            wanted = (
                "a zip, tar or tar.gz"
                if kind != "zstd"
                else "a zip, tar or tar.gz (tar.zst is not read in this release)"
            )
            raise TarRefused(f"not a zip: {kind}; send {wanted}")
    except (TarRefused, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, tarfile.TarError, EOFError) as error:
        raise Faults([Fault(str(error) or "cut short or damaged", "", 0, path.name)]) from error


def _by_ratio(path: Path, limits: TarLimits) -> TarLimits:
    """A total that a bomb can't reach: so many times the compressed size."""
    most = max(_SMALL, path.stat().st_size * MAX_RATIO)
    return TarLimits(limits.entries, min(limits.total, most), limits.depth)


def _unzip(path: Path, into: Path, limits: TarLimits) -> None:
    limits = _by_ratio(path, limits)
    with zipfile.ZipFile(path) as archive:
        infos = archive.infolist()
        _zip_check(infos, limits)
        total = 0
        for info in infos:
            target = into / safe_name(info.filename, limits.depth)
            if info.is_dir():
                target.mkdir(parents=True, exist_ok=True)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(info) as source, target.open("xb") as out:
                while data := source.read(_CHUNK):
                    total += len(data)
                    if total > limits.total:
                        raise TarRefused(f"more than {limits.total} bytes unpacked, against what its directory says")
                    out.write(data)
            target.chmod(0o755 if info.external_attr >> 16 & 0o100 else 0o644)


def _zip_check(infos: list[zipfile.ZipInfo], limits: TarLimits) -> None:
    if len(infos) > limits.entries:
        raise TarRefused(f"{len(infos)} entries, more than {limits.entries}")
    if sum(info.file_size for info in infos) > limits.total:
        raise TarRefused(
            f"unpacks to more than {limits.total} bytes ({MAX_RATIO} times its size, or the limit of a package)"
        )
    seen: set[str] = set()
    for info in infos:
        if "\\" in getattr(info, "orig_filename", info.filename):
            raise TarRefused(f"{info.orig_filename[:200]!r} holds a backslash")
        name = safe_name(info.filename, limits.depth).casefold()
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in {0, stat.S_IFREG, stat.S_IFDIR}:
            raise TarRefused(f"{info.filename[:200]!r} is neither a plain file nor a folder (links are refused)")
        if info.flag_bits & 1:
            raise TarRefused(f"{info.filename[:200]!r} is encrypted")
        if name in seen:
            raise TarRefused(f"{info.filename[:200]!r} stands twice (or differs only in case)")
        seen.add(name)
