"""Submitted code plays its worlds in sandboxes of its own, beside the scoring one, at both levels."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator.contract import Outcome
from evaluator.manifest import Manifest, manifest_parse
from evaluator.sandbox import Choice, Sandbox, SandboxMissing, probe
from evaluator.scoring import Scored, score_outputs
from evaluator.taskenv import TaskEnv, task_env_open
from tests.contract.sandbox_cases import interpreter, public_folder
from tests.pure.evaluator.packages import MANIFEST

EVALUATE = """
import json, os, socket, struct
from pathlib import Path
def frame(sock, data):
    raw = json.dumps(data).encode(); sock.sendall(struct.pack("<I", len(raw)) + raw)
def read(sock, size):
    out = b""
    while len(out) < size:
        more = sock.recv(size - len(out))
        if not more: return None
        out += more
    return out
control, secret, share, notes = socket.socket(fileno=3), (Path(__file__).parent / "truth.txt").read_text(), 0, []
for world in range(2):
    sock = socket.socket(fileno=4 + world)
    control.sendall(bytes([world]))
    frame(sock, {"questions": [1, 2, 3]})
    head = read(sock, 4)
    answer = json.loads(read(sock, struct.unpack("<I", head)[0])) if head else None
    share += answer == [2, 4, 6]
    notes.append(str(answer)); sock.close()
ends = b""
while ends.count(b"\\n") < 2: ends += control.recv(4096)
metrics = {"accuracy": share / 2, "length": float(secret in str(notes))}
found = {"schema": 1, "valid": True, "metrics": metrics, "message": ends.decode() + str(notes)}
Path("result.json").write_text(json.dumps(found))
"""
RUNNER = """
import json, os, runpy, socket, struct, sys
sock = socket.socket(fileno=int(os.environ["NANO_MODEL_FD"]))
size = struct.unpack("<I", sock.recv(4))[0]
questions = json.loads(sock.recv(size))["questions"]
answer = runpy.run_path(sys.argv[1])["solve"](questions)
raw = json.dumps(answer).encode()
sock.sendall(struct.pack("<I", len(raw)) + raw)
"""
GOOD = "def solve(questions): return [2 * one for one in questions]"
SPY = """
import os, glob
def solve(questions):
    found = []
    patterns = ["/evaluation/*", "../evaluation/*", "../../*/evaluation/*", "/tmp/*/evaluation/*"]
    for pattern in patterns + ["/proc/*/environ", "/proc/*/fd/*"]:
        found += glob.glob(pattern)
    for path in found + ["/evaluation/truth.txt", "../evaluation/truth.txt", "/proc/self/fd/4"]:
        try: found.append(open(path).read())
        except OSError: pass
    for number in range(4, 64):
        try: found.append(os.read(number, 99).decode())
        except OSError: pass
    return found
"""


@pytest.fixture(scope="module")
def task_env() -> Iterator[TaskEnv]:
    folder = public_folder()
    yield task_env_open(interpreter(folder))
    shutil.rmtree(folder)


@pytest.fixture(params=[1, 2], ids=["bubblewrap", "landlock"])
def sandbox(request: pytest.FixtureRequest, task_env: TaskEnv) -> Sandbox:
    try:
        return probe(task_env, Choice(level=request.param))
    except SandboxMissing as error:
        pytest.skip(f"this machine can't: {error}")


def manifest() -> Manifest:
    text = MANIFEST.replace("data/outputs/predictions.csv", "data/outputs/scaffold.py")
    solvers = "{entry: data/outputs/scaffold.py, runner: evaluation/solver.py, count: 2, seconds: 3, memory_mb: 256}"
    return manifest_parse(f"{text}solvers: {solvers}\n")


def score(sandbox: Sandbox, folder: Path, scaffold: str) -> Scored:
    files = {"evaluate.py": EVALUATE, "solver.py": RUNNER, "truth.txt": "hidden 42"}
    files = {f"evaluation/{name}": text for name, text in files.items()}
    for name, text in {**files, "out/data/outputs/scaffold.py": scaffold}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return score_outputs(sandbox, manifest=manifest(), evaluation=folder / "evaluation", outputs=folder / "out", seed=0)


def test_a_good_solver_plays_all_its_worlds(sandbox: Sandbox, tmp_path: Path) -> None:
    scored = score(sandbox, tmp_path, GOOD)
    assert scored.outcome is Outcome.VALID, scored
    assert scored.metrics["accuracy"] == 1


@pytest.mark.parametrize(
    ("code", "end"),
    [("def solve(q): raise ValueError", '"exit_code": 1'), ("def solve(q):\n while True: pass", '"time"'),
     ("import os, signal\ndef solve(q): os.kill(os.getpid(), 9)", '"exit_code": '), ("syntax error", '"exit_code": 1'),
     ("def solve(q): return bytearray(1 << 30)", '"exit_code": 1')],
)  # fmt: skip
def test_a_solver_that_fails_loses_its_worlds_and_no_more(
    sandbox: Sandbox, tmp_path: Path, code: str, end: str
) -> None:
    scored = score(sandbox, tmp_path, code)
    assert scored.outcome is Outcome.VALID, scored
    assert scored.metrics["accuracy"] == 0
    assert scored.message.count(end) == 2


def test_a_spy_finds_nothing_of_the_hidden_parts(sandbox: Sandbox, tmp_path: Path) -> None:
    scored = score(sandbox, tmp_path, SPY)
    assert scored.outcome is Outcome.VALID, scored
    assert scored.metrics == {"accuracy": 0.0, "length": 0.0}
    assert scored.message.count("[]") == 2
