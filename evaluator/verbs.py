"""Room: evaluator. The verbs that work on a package folder. Output for people, then one line of JSON for programs."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evaluator.archives import archive_unpack
from evaluator.calibrating import Calibration, Row
from evaluator.checking import check, package_root
from evaluator.contract import Outcome
from evaluator.manifest import Manifest, manifest_parse, score_compute
from evaluator.packing import pack
from evaluator.sandbox import Choice, Sandbox, probe
from evaluator.scoring import score_outputs
from evaluator.taskenv import task_env_open


def sandbox_open(args: argparse.Namespace) -> Sandbox:
    """The sandbox that the command line asks for. Raises `TaskEnvMissing`, `SandboxMissing`."""
    return probe(task_env_open(args.task_env), Choice(args.level, args.bwrap, args.kernel, args.work))


def say(text: str) -> None:
    """A line for people, at once."""
    print(text, flush=True)


def say_json(data: dict[str, Any]) -> None:
    """The last line: JSON for programs."""
    say(json.dumps(data, sort_keys=True, default=str))


def recipients_read(given: Sequence[str]) -> list[str]:
    """Each recipient, or the one in the file of that name."""
    return [Path(one).read_text().strip() if not one.startswith("age1") else one for one in given]


def check_verb(args: argparse.Namespace) -> int:
    """Every fault of a folder or an archive in one list; exit 1 where there is one."""
    with tempfile.TemporaryDirectory(prefix="package-") as name:
        folder = args.folder
        if folder.is_file():
            folder = Path(name)
            archive_unpack(args.folder, folder)
        manifest = check(folder).manifest
    say(f"{manifest.id}: no faults")
    say_json({"id": manifest.id, "faults": 0, "size": manifest.size})
    return 0


def pack_verb(args: argparse.Namespace) -> int:
    """Check, then write the four files."""
    checked = check(args.folder)
    packed = pack(checked.folder, checked.manifest, recipients_read(args.recipient), args.out)
    say(f"{checked.manifest.id}: digest {packed.digest}")
    say_json({"id": checked.manifest.id, "digest": packed.digest, "sealed_sha256": packed.sealed_sha256})
    return 0


def probe_verb(args: argparse.Namespace) -> int:
    """The level that works here, with facts."""
    sandbox = sandbox_open(args)
    say(f"sandbox level {sandbox.level}: {sandbox.facts['walls']}")
    say_json(dict(sandbox.facts))
    return 0


def score_verb(args: argparse.Namespace) -> int:
    """Score a folder of outputs here and now; of the package only manifest and hidden part need to be right."""
    root = package_root(args.folder)
    manifest = manifest_parse((root / "task.yaml").read_text(encoding="utf-8"))
    sandbox = sandbox_open(args)
    with tempfile.TemporaryDirectory(prefix="outputs-") as name:
        outputs = Path(name)
        _gather(manifest, args.outputs, outputs)
        scored = score_outputs(
            sandbox, manifest=manifest, evaluation=root / "evaluation", outputs=outputs, seed=args.seed
        )
    score = score_compute(manifest.score, scored.metrics) if scored.outcome is Outcome.VALID else None
    if scored.outcome is Outcome.CRASHED:
        print(scored.log_tail, file=sys.stderr)
    say_json(
        {
            "outcome": scored.outcome,
            "score": None if score is None else float(score),
            "metrics": scored.metrics,
            "message": scored.message,
            "seconds": scored.seconds,
            "facts": scored.facts,
        }
    )
    return 1 if scored.outcome is Outcome.CRASHED else 0


def _gather(manifest: Manifest, source: Path, target: Path) -> None:
    """Outputs at their declared paths, or, in a flat folder, by their names."""
    for output in manifest.outputs:
        for candidate in (source / output.path, source / Path(output.path).name):
            if candidate.is_file():
                (target / output.path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(candidate, target / output.path)
                break


def calibrate_verb(args: argparse.Namespace) -> int:
    """Run and score all solutions; exit 1 where one is off by more than its tolerance."""
    checked = check(args.folder)
    sandbox = sandbox_open(args)
    say(f"{checked.manifest.id}: {checked.manifest.size}, sandbox level {sandbox.level}, {args.runs} runs")
    calibration = Calibration(sandbox, checked.folder, checked.manifest, say)
    rows = list(calibration.rows(args.runs, frozenset(args.only)))
    say(_table(rows))
    off = [row.name for row in rows if not row.ok]
    say("all as expected" if not off else f"off: {', '.join(off)}")
    say_json(
        {
            "id": checked.manifest.id,
            "ok": not off,
            "size": checked.manifest.size,
            "facts": dict(sandbox.facts),
            "rows": [_row_json(row) for row in rows],
        }
    )
    return 1 if off else 0


def _table(rows: list[Row]) -> str:
    lines = [f"{'solution':<28} {'expected':<22} {'mean':>7} {'spread':>7} {'run s':>7} {'eval s':>7}  metrics"]
    for row in rows:
        run_s = sum(one.run_s for one in row.tries) / len(row.tries)
        evaluation_s = sum(one.evaluation_s for one in row.tries) / len(row.tries)
        metrics = "  ".join(f"{name} {value:.4f}" for name, value in row.metric_means().items())
        mark = " " if row.ok else "*"
        figures = f"{row.mean:>7.2f} {row.spread:>7.2f} {run_s:>7.1f} {evaluation_s:>7.1f}"
        lines.append(f"{mark}{row.name:<27} {row.expected:<22} {figures}  {metrics or row.tries[0].message[:80]}")
    return "\n".join(lines)


def _row_json(row: Row) -> dict[str, Any]:
    return {
        "name": row.name,
        "expected": row.expected,
        "ok": row.ok,
        "mean": round(row.mean, 4),
        "spread": round(row.spread, 4),
        "outcomes": [one.outcome for one in row.tries],
        "scores": [float(one.score) for one in row.tries],
        "metrics": [dict(one.metrics) for one in row.tries],
        "messages": sorted({one.message for one in row.tries if one.message}),
        "run_s": [one.run_s for one in row.tries],
        "evaluation_s": [one.evaluation_s for one in row.tries],
    }
