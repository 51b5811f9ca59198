"""Room: evaluator.guard. What the keeper is told and what it answers: JSON over its stdin and stdout."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Limits:
    """Bytes, seconds, counts. `processes` counts processes and threads beyond the first."""

    memory: int
    cpu_s: int
    wall_s: float
    scratch: int
    disk: int
    processes: int
    files: int = 256


@dataclass(frozen=True)
class Plan:
    """One confined run. `base` holds the folders named in `read` and `write`; level 1 shows them below `/`.

    `argv`, `env` and `cwd` are final for the level. `trees` are further folders (interpreter, task environment, system)
    bound read-only at their own paths; `links` are (path, target). `staged` pairs a source that the sandbox's own user
    can't reach with the place where root binds it first. `bwrap` is empty on level 2.
    """

    level: int
    base: str
    argv: list[str]
    env: dict[str, str]
    cwd: str
    read: list[str]
    write: list[str]
    trees: list[str]
    links: list[list[str]]
    limits: Limits
    python: str
    uid: int | None = None
    bwrap: str = ""
    staged: list[list[str]] = field(default_factory=list)
    result: str = ""
    result_max: int = 1024 * 1024
    keep: list[int] = field(default_factory=list)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Plan:
        data: dict[str, Any] = json.loads(text)
        return cls(**{**data, "limits": Limits(**data["limits"])})


@dataclass(frozen=True)
class Report:
    """How it ended. `ended` is one of exit, signal, time, size, parent, setup; `fault` says why for the last."""

    ended: str
    exit_code: int | None
    seconds: float
    cpu_s: float
    stdout: str
    stderr: str
    left_running: int
    fault: str = ""
    result: str | None = None
    result_fault: str = ""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Report:
        return cls(**json.loads(text))
