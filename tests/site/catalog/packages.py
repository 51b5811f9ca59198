"""Packed tasks for tests, made by hand: what `evaluator pack` would have written."""

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings

from evaluator.seal import seal_stream

REFERENCE = b"the hidden answer: 0.8675309"
HINT = "Look at the shortest answers first."
MANIFEST: Mapping[str, Any] = {
    "schema": 1,
    "id": "example-task",
    "title": "An example",
    "domain": "loss-design",
    "authors": [{"name": "A. Author"}],
    "source": {"paper": "A paper", "url": "https://example.org/paper"},
    "outputs": [{"path": "data/outputs/predictions.csv", "max_mb": 10}],
    "score": {
        "metrics": {"accuracy": {"direction": "up", "decimals": 4}},
        "curves": {"acc": {"metric": "accuracy", "points": [[0.5, 0], [0.6, 0.8], [0.7, 1]]}},
        "formula": "acc * 100",
    },
    "hint": {"penalty": 10},
}
FILES: Mapping[str, bytes] = {
    "task_description.md": b"# Task\n\nBeat the reference result by whatever method.\n",
    "hint.md": HINT.encode(),
    "workspace/task/run.py": b"print(0.5)\n",
    "workspace/data/train.csv": b"a,b\n1,2\n",
}


def member(name: str, data: bytes = b"", **fields: Any) -> tuple[tarfile.TarInfo, bytes]:
    """One member of a tar, with whatever is odd about it."""
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in fields.items():
        setattr(info, key, value)
    return info, data


def tar_of(members: list[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:") as tar:
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def packed_folder(
    folder: Path, *, manifest: Mapping[str, Any] = {}, files: Mapping[str, bytes] = FILES, public: bytes | None = None
) -> Path:
    """Write a package to `folder`; `manifest` replaces fields, `public` the whole public tar."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**MANIFEST, **manifest}, sort_keys=True)
    public = public if public is not None else tar_of([member(name, data) for name, data in files.items()])
    (folder / "public.tar").write_bytes(public)
    seal_stream(io.BytesIO(REFERENCE), folder / "sealed.age", [settings.EVALUATOR_RECIPIENT])
    (folder / "manifest.json").write_text(text)
    (folder / "digest").write_text(hashlib.sha256(public + text.encode()).hexdigest() + "\n")
    return folder
