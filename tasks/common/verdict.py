"""Room: tasks. How a task's evaluate.py finds the outputs and says its verdict; copied into packages.

The contract: run as `python -I evaluate.py` with a scratch folder as working directory, it writes `result.json`
there and exits 0. Any exception is the evaluator's own fault and never the submission's.
"""

import json
from collections.abc import Mapping
from pathlib import Path

LONGEST_MESSAGE = 2000


class InvalidOutputError(Exception):
    """The submission's fault; the message says what is wrong, where, and what is expected."""


def outputs_folder() -> Path:
    """Where the outputs lie: beside the scratch folder, at every sandbox level; `/outputs` where that is `/scratch`."""
    return Path("..") / "outputs"


def output_read(path: str, limit: int) -> bytes:
    """The bytes of one declared output. Raises InvalidOutputError where it is missing or longer than `limit`."""
    file = outputs_folder() / path
    if not file.is_file():
        message = f"{path}: missing"
        raise InvalidOutputError(message)
    size = file.stat().st_size
    if size > limit:
        message = f"{path}: {size} bytes, at most {limit}"
        raise InvalidOutputError(message)
    return file.read_bytes()


def valid_write(metrics: Mapping[str, float], message: str = "") -> None:
    """Say that the outputs are valid, and their raw metrics."""
    _write({"schema": 1, "valid": True, "metrics": dict(metrics), "message": message[:LONGEST_MESSAGE]})


def invalid_write(message: str) -> None:
    """Say what is wrong with the outputs."""
    _write({"schema": 1, "valid": False, "message": message[:LONGEST_MESSAGE]})


def _write(result: Mapping[str, object]) -> None:
    Path("result.json").write_text(json.dumps(result, allow_nan=False), encoding="utf-8")
