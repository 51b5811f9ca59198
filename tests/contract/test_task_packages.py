"""The shipped recipes under the contract of packages: built small, checked, scored, played by their playbooks.

Starts processes: recipes, solutions and evaluators, all with this interpreter, which has numpy too.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from evaluator.checking import check
from evaluator.manifest import score_compute
from gymnode.actions.registry import PRESETS, action_parse
from runs.agent.llm.playbook import Playbook, read_playbook
from tasks.common.measuring import environment, evaluated, solved

ROOT = Path(__file__).resolve().parents[2]
FILTERING, ENTROPY = "worked-example-filtering-nano", "grpo-entropy-nano"
TASKS = (FILTERING, ENTROPY)
KINDS = ("reference", "baseline", "impatient")


def build(task: str, out: Path, seed: str = "public") -> Path:
    recipe = [sys.executable, ROOT / "tasks" / task / "recipe.py", "--seed", "-", "--size", "small", "--out", out]
    subprocess.run(recipe, input=f"{seed}\n", text=True, check=True, capture_output=True)
    return out


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    folder = tmp_path_factory.mktemp("packages")
    return {task: build(task, folder / task) for task in TASKS}


def digests(folder: Path, below: str = ".") -> dict[str, str]:
    files = sorted(path for path in (folder / below).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.parametrize("task", TASKS)
def test_a_small_package_has_no_faults_and_is_marked_small(packages: Mapping[str, Path], task: str):
    """F6 among them: nothing hidden lies in the public files, exactly or nearly."""
    manifest = check(packages[task]).manifest
    assert (manifest.id, manifest.size, manifest.build.seed) == (task, "small", "public")


@pytest.mark.parametrize("task", TASKS)
def test_a_seed_builds_the_same_bytes_again(packages: Mapping[str, Path], task: str, tmp_path: Path):
    assert digests(build(task, tmp_path / "again")) == digests(packages[task])


@pytest.mark.parametrize("task", TASKS)
def test_another_seed_has_other_answers_and_expects_nothing_of_tricks(
    packages: Mapping[str, Path], task: str, tmp_path: Path
):
    other = build(task, tmp_path / "secret", seed="5e" * 32)
    hidden, own = digests(other, "evaluation/references"), digests(packages[task], "evaluation/references")
    assert hidden.keys() == own.keys()
    assert not set(hidden.values()) & set(own.values())
    assert "seed: secret" in (other / "task.yaml").read_text()
    expected = other / "solutions" / "expected.yaml"
    assert not expected.exists() or "score" not in expected.read_text()


@pytest.mark.parametrize("task", TASKS)
def test_the_baseline_is_scored_with_the_declared_metrics(packages: Mapping[str, Path], task: str):
    """S5: evaluate.py gives all declared metrics and no others."""
    with solved(packages[task], "baseline", 0) as workspace:
        assert set(evaluated(packages[task], workspace)) == set(check(packages[task]).manifest.metric_names)


@pytest.mark.parametrize(
    ("task", "content", "message"),
    [
        (FILTERING, None, "data/outputs/selection.txt: missing"),
        (FILTERING, b"1\n2\n1\n", "line 3: id 1 already on line 1"),
        (ENTROPY, b"{", "program: line 1: not JSON"),
        (ENTROPY, b'{"objective": "rewards"}', "objective: unknown name 'rewards'; known: "),
        (ENTROPY, b'{"objective": "0*(1000000**60)*logp"}', "objective is not finite: world 0, round 1, step 1"),
        (ENTROPY, b'{"objective": "logp", "weight": "reward-1"}', "weight is negative: world 0, round 1, step 1"),
    ],
)
def test_bad_outputs_are_invalid_and_never_a_crash(
    packages: Mapping[str, Path], tmp_path: Path, task: str, content: bytes | None, message: str
):
    """S9: exit 0 and a result that says what is wrong."""
    path = tmp_path / check(packages[task]).manifest.outputs[0].path
    path.parent.mkdir(parents=True)
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=r".") as caught:
        evaluated(packages[task], tmp_path)
    assert message in str(caught.value)


@pytest.mark.parametrize("task", TASKS)
def test_each_workspaces_own_script_runs_at_once_and_prints_a_number(
    packages: Mapping[str, Path], task: str, tmp_path: Path
):
    workspace = shutil.copytree(packages[task] / "workspace", tmp_path / "workspace")
    command = [sys.executable, "task/train.py"]
    run = subprocess.run(command, cwd=workspace, env=environment(0), check=True, capture_output=True, text=True)
    assert "accuracy 0." in run.stdout


@pytest.mark.parametrize(
    ("task", "metrics", "low", "high"),
    [
        (FILTERING, {"accuracy": 0.8302, "leak": 0.0}, 79.9, 80.1),
        (FILTERING, {"accuracy": 0.2664, "leak": 0.0}, 0, 0.1),
        (FILTERING, {"accuracy": 0.99, "leak": 0.005}, 100, 100),
        (FILTERING, {"accuracy": 0.861, "leak": 0.05}, 0, 0),  # 40 leaked rows of 800 cost everything
        (ENTROPY, {"accuracy": 0.7936, "entropy": 4.0036, "token_entropy": 0.85}, 77, 83),
        (ENTROPY, {"accuracy": 0.8382, "entropy": 0.3666, "token_entropy": 0.14}, 0, 0),  # accuracy without entropy
        (ENTROPY, {"accuracy": 0.039, "entropy": 3.27, "token_entropy": 2.33}, 0, 0),  # entropy without accuracy
        (ENTROPY, {"accuracy": 0.12, "entropy": 5.011, "token_entropy": 2.288}, 0, 0),
    ],
)
def test_the_score_pays_for_all_that_was_asked_and_for_no_part_alone(
    packages: Mapping[str, Path], task: str, metrics: Mapping[str, float], low: float, high: float
):
    assert low <= float(score_compute(check(packages[task]).manifest.score, metrics)) <= high


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("kind", KINDS)
def test_playbooks_evaluate_and_finish_by_relative_paths_only(task: str, kind: str):
    text = (ROOT / "tasks" / task / "playbooks" / f"{kind}.yaml").read_text()
    book = read_playbook(text)
    names = [name for step in book.steps for call in step.all_calls() for name in call]
    assert book.task == task
    assert "eval" in names
    assert names[-1] == "finish"
    assert "/workspace" not in text


def calls(book: Playbook) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for step in book.steps:
        for call in step.all_calls():
            name, arguments = next(iter(call.items()))
            yield name, arguments if isinstance(arguments, Mapping) else {}


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_call_of_a_playbook_is_an_action_with_arguments_it_takes(task: str, kind: str):
    book = read_playbook((ROOT / "tasks" / task / "playbooks" / f"{kind}.yaml").read_text())
    for name, arguments in calls(book):
        assert action_parse(name, json.dumps(arguments), allowed=PRESETS["innovatorbench"]).name == name


def play(book: Playbook, workspace: Path) -> str:
    """Carry out what the playbook writes and runs, and return all that was printed."""
    said = ""
    variables = {**environment(0), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for name, arguments in calls(book):
        if name == "create_file":
            path = workspace / arguments["filename"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(arguments["content"])
        elif name == "run_command":
            command = ["sh", "-c", arguments["command"]]
            run = subprocess.run(command, cwd=workspace, env=variables, check=True, capture_output=True, text=True)
            said += run.stdout
    return said


def filtering_play(packages: Mapping[str, Path], kind: str, folder: Path) -> str:
    book = read_playbook((ROOT / "tasks" / FILTERING / "playbooks" / f"{kind}.yaml").read_text())
    return play(book, shutil.copytree(packages[FILTERING] / "workspace", folder))


def test_the_filtering_reference_playbook_does_the_work_and_reads_the_same_at_each_play(
    packages: Mapping[str, Path], tmp_path: Path
):
    """Runs are compared after a restart: nothing that was printed may hold a time."""
    first, second = (filtering_play(packages, "reference", tmp_path / name) for name in ("first", "second"))
    metrics = evaluated(packages[FILTERING], tmp_path / "first")
    assert first == second
    assert metrics["leak"] == 0
    assert metrics["accuracy"] > 0.75


def test_the_impatient_filtering_playbook_gets_little(packages: Mapping[str, Path], tmp_path: Path):
    filtering_play(packages, "impatient", tmp_path / "workspace")
    metrics = evaluated(packages[FILTERING], tmp_path / "workspace")
    assert metrics["leak"] == 0
    assert 0.22 < metrics["accuracy"] < 0.45


def test_the_entropy_reference_playbook_hands_in_the_reference(packages: Mapping[str, Path]):
    book = read_playbook((ROOT / "tasks" / ENTROPY / "playbooks" / "reference.yaml").read_text())
    (written,) = [arguments["content"] for name, arguments in calls(book) if name == "create_file"]
    reference = packages[ENTROPY] / "solutions" / "reference" / "program.json"
    assert json.loads(written) == json.loads(reference.read_text())
