"""Room: evaluator. One evaluation: outputs and hidden parts into a fresh sandbox, the result read strictly.

May import the evaluator's own modules; no network, no queue, no database. The score itself is computed outside the
sandbox, by whoever holds the scoring revision.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from evaluator.bundles import OutputsInvalid, outputs_check
from evaluator.contract import Outcome
from evaluator.fields import Solvers
from evaluator.manifest import Manifest, manifest_refusals
from evaluator.results import ResultRefused, message_clean, result_parse
from evaluator.sandbox import Ended, Job, Ran, Sandbox
from evaluator.solving import SolverHost
from evaluator.taskenv import pinned_env
from evaluator.trees import tree_digest, tree_entries

_LOG = 16 * 1024
Facts = Mapping[str, str | int | float | bool]


@dataclass(frozen=True)
class Scored:
    """What came out. `message` is for everybody, `log_tail` for the task's curators only."""

    outcome: Outcome
    metrics: Mapping[str, float]
    message: str
    seconds: float
    facts: Facts
    log_tail: str = ""


def score_outputs(sandbox: Sandbox, *, manifest: Manifest, evaluation: Path, outputs: Path, seed: int) -> Scored:
    """Score the folder `outputs` (files at their declared paths) with the hidden folder `evaluation`."""
    refusals = manifest_refusals(manifest)
    if refusals:
        return _crashed(sandbox, "; ".join(fault.message for fault in refusals))
    try:
        outputs_check(outputs, manifest.outputs)
    except OutputsInvalid as error:
        return Scored(Outcome.INVALID, {}, message_clean(str(error)), 0, sandbox.facts)
    base = sandbox.folder()
    try:
        shutil.copytree(evaluation, base / "evaluation", ignore=shutil.ignore_patterns("__pycache__"))
        _copy_outputs(outputs, base / "outputs", manifest)
        return _run(sandbox, manifest, base, seed)
    finally:
        sandbox.discard(base)


def _copy_outputs(source: Path, target: Path, manifest: Manifest) -> None:
    """Only what is declared, each at its declared path."""
    target.mkdir()
    for output in manifest.outputs:
        if (source / output.path).is_file():
            (target / output.path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / output.path, target / output.path)


def _run(sandbox: Sandbox, manifest: Manifest, base: Path, seed: int) -> Scored:
    before = _content(base)
    if manifest.solvers is None:
        ran, fault = sandbox.run(_job(sandbox, manifest, base, seed)), ""
    else:
        ran, fault = _with_solvers(sandbox, manifest.solvers, base, _job(sandbox, manifest, base, seed))
    facts: Facts = {**sandbox.facts, "cpu_s": ran.cpu_s, "left_running": ran.left_running, "seed": seed}
    if _content(base) != before:
        fault = "references or outputs were changed during the scoring; it was thrown away"
        facts = {**facts, "tampered": True}
    if fault:
        return Scored(Outcome.CRASHED, {}, message_clean(fault), ran.seconds, facts, _log(ran, base))
    return judge(ran, manifest, facts, _log(ran, base))


def _with_solvers(sandbox: Sandbox, rule: Solvers, base: Path, job: Job) -> tuple[Ran, str]:
    """evaluate.py with the submission's sandboxes beside it; what kept one from being set up, if anything."""
    runner = base / rule.runner  # `evaluation/...`, as in the package
    host = SolverHost(sandbox, rule, entry=base / "outputs" / rule.entry, runner=runner)
    with host:
        ran = sandbox.run(replace(job, keep=host.handles))
    return ran, host.fault


def _job(sandbox: Sandbox, manifest: Manifest, base: Path, seed: int) -> Job:
    rule = manifest.sandbox
    # -P and -s are what -I does on a clean environment; -I itself would ignore PYTHONHASHSEED.
    argv = (str(sandbox.env.python), "-P", "-s", "-B", "{evaluation}/evaluate.py")
    return Job(
        base=base,
        argv=argv,
        env=pinned_env(seed, sandbox.kernel),
        read=("evaluation", "outputs"),
        memory_mb=rule.memory_mb,
        seconds=rule.seconds,
        cpus=rule.cpus,
        scratch_mb=rule.scratch_mb,
        result="result.json",
    )


def _content(base: Path) -> str:
    return tree_digest([*tree_entries(base / "evaluation", "e/"), *tree_entries(base / "outputs", "o/")])


def judge(ran: Ran, manifest: Manifest, facts: Facts, log: str) -> Scored:
    """What a run of evaluate.py means: only exit 0 with a good result counts."""
    fault = _fault(ran, manifest)
    if not fault:
        try:
            result = result_parse(ran.result or b"", manifest.metric_names)
        except ResultRefused as error:
            fault = str(error)
        else:
            outcome = Outcome.VALID if result.valid else Outcome.INVALID
            return Scored(outcome, result.metrics, result.message, ran.seconds, facts, log)
    return Scored(Outcome.CRASHED, {}, message_clean(fault), ran.seconds, facts, log)


def _fault(ran: Ran, manifest: Manifest) -> str:
    """Why the evaluator program itself failed; empty where it did its work. Text on stderr alone is no fault."""
    rule = manifest.sandbox
    if ran.ended is Ended.SETUP:
        return f"the sandbox could not be set up: {ran.fault}"
    if ran.ended is Ended.TIME:
        return f"the evaluator took longer than {rule.seconds} s"
    if ran.ended is Ended.SIZE:
        return f"the evaluator wrote more than {rule.scratch_mb} MB"
    if ran.ended is not Ended.EXIT or ran.exit_code != 0:
        return f"the evaluator ended by {ran.ended} with code {ran.exit_code}"
    return ran.result_fault if ran.result is None else ""


def _log(ran: Ran, base: Path) -> str:
    text = f"{ran.fault}\n--- stdout\n{ran.stdout[-_LOG // 2 :]}\n--- stderr\n{ran.stderr[-_LOG // 2 :]}"
    return text.replace(str(base), "").replace("\0", "\ufffd")


def _crashed(sandbox: Sandbox, message: str) -> Scored:
    return Scored(Outcome.CRASHED, {}, message, 0, sandbox.facts)
