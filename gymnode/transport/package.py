"""Room: gymnode.transport. gymd as one reproducible zipapp: the same sources give the same bytes, on any machine."""

import hashlib
import io
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

REMOTE = Path(__file__).resolve().parent.parent / "remote"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_MAIN = b"from gymnode.remote.main import main\n\nmain()\n"


@dataclass(frozen=True)
class Package:
    """The zipapp and its name: lower-case hex sha256 of `data`."""

    data: bytes
    sha256: str


@cache
def gymd_package() -> Package:
    """Pack `gymnode.remote`."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        _add(archive, "__main__.py", _MAIN)
        _add(archive, "gymnode/__init__.py", b"")
        for path in sorted(REMOTE.glob("*.py")):
            _add(archive, f"gymnode/remote/{path.name}", path.read_bytes())
    data = buffer.getvalue()
    return Package(data, hashlib.sha256(data).hexdigest())


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    # Stored, not deflated: compressed bytes differ between versions of zlib.
    entry = zipfile.ZipInfo(name, date_time=_EPOCH)
    entry.external_attr = 0o644 << 16
    entry.create_system = 3
    archive.writestr(entry, data, compress_type=zipfile.ZIP_STORED)
