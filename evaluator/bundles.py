"""Room: evaluator. Reading the bundle of a run's outputs: its hash first, then declared files only.

May import: `evaluator.{tars,trees,fields}`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evaluator.fields import Output
from evaluator.tars import TarLimits, TarRefused, tar_unpack
from evaluator.trees import file_sha256

_HEADERS = 4096


class BundleBroken(RuntimeError):
    """Not what was asked to be scored (hash, format, undeclared entries): the machinery's fault, never a score."""


class OutputsInvalid(ValueError):
    """The run's own fault: an output is missing or too large. Counts as an evaluation; the message says which."""


def bundle_open(bundle: Path, sha256: str, outputs: Sequence[Output], into: Path) -> None:
    """Check and unpack `bundle` into the fresh folder `into`, each file at its declared path.

    Raises `BundleBroken` or `OutputsInvalid`.
    """
    declared = {output.path: output for output in outputs}
    most = sum(_limit(output) + _HEADERS for output in outputs) + 20 * 512
    size = bundle.stat().st_size
    if size > most + 10_240:
        raise BundleBroken(f"the bundle has {size} bytes; its declared outputs allow {most}")
    if file_sha256(bundle) != sha256:
        raise BundleBroken("the bundle's SHA-256 isn't the one in the request")
    try:
        with bundle.open("rb") as stream:
            names = tar_unpack(stream, into, TarLimits(2 * len(outputs) + 64, most))
    except TarRefused as error:
        raise BundleBroken(f"the bundle is refused: {error}") from error
    unknown = sorted(set(names) - set(declared))
    if unknown:
        raise BundleBroken(f"undeclared in the bundle: {', '.join(unknown)[:500]}")
    outputs_check(into, outputs)


def outputs_check(folder: Path, outputs: Sequence[Output]) -> None:
    """Every required output is there and none is larger than declared. Raises `OutputsInvalid` naming all of them."""
    faults = []
    for output in outputs:
        path = folder / output.path
        if not path.is_file() or path.is_symlink():
            if output.required:
                faults.append(f"{output.path} is missing (a regular file of at most {output.max_mb:g} MB is asked for)")
        elif path.stat().st_size > _limit(output):
            faults.append(f"{output.path} has {path.stat().st_size} bytes, more than {output.max_mb:g} MB")
    if faults:
        raise OutputsInvalid("; ".join(faults))


def _limit(output: Output) -> int:
    return int(output.max_mb * 1024 * 1024)
