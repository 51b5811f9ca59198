"""A small package without a fault, as files by path, for tests that break it in one place."""

from collections.abc import Mapping
from pathlib import Path

CANARY = "example-task-0123456789abcdef"
MANIFEST = f"""\
schema: 1
id: example-task
title: An example
domain: loss-design
authors: [{{name: Ada}}]
source: {{paper: "A paper", url: "https://example.org/paper", licence: CC-BY-4.0}}
nodes: [{{role: main, count: 1, gpus: 0, memory_gb: 2, cpus: 1, labels: [], internet: false}}]
evaluations: {{by_agent: 3, final: 1, feedback: metrics}}
outputs: [{{path: data/outputs/predictions.csv, role: main, max_mb: 1}}]
score:
  metrics: {{accuracy: {{direction: up, decimals: 4}}, length: {{direction: none}}}}
  formula: 100 * acc_score
  curves: {{acc_score: {{metric: accuracy, points: [[0.50, 0], [0.60, 0.9], [0.70, 1]]}}}}
hint: {{penalty: 10}}
sandbox: {{memory_mb: 512, seconds: 20}}
canary: {CANARY}
"""
DESCRIPTION = """\
## Motivation
Why.
## Task
Predict y. The baseline gets 0.50, the reference 0.80.

Beat the reference result by whatever method you like.
## Data
One file.
## Constraints
None.
## Evaluation
Accuracy.
## Environment
Python.
## Scripts
None.
"""
REFERENCE = "id,y\n" + "".join(f"{number},{number * 7 % 10}\n" for number in range(40))
FILES: Mapping[str, str] = {
    "task.yaml": MANIFEST,
    "task_description.md": DESCRIPTION,
    "hint.md": "Look closely.\n",
    "workspace/task/train.py": "print(1)\n",
    "workspace/data/train.csv": "id,x\n" + "".join(f"{number},{number}\n" for number in range(40)),
    "evaluation/evaluate.py": f"# {CANARY}\n",
    "evaluation/references/truth.csv": REFERENCE,
    "solutions/baseline/run.sh": f"# {CANARY}\n",
    "solutions/reference/run.sh": f"# {CANARY}\necho better\n",
}


def package_write(folder: Path, **changed: str | None) -> Path:
    """Write the package; `changed` maps paths (with `__` for `/` and `_DOT_` for `.`) to other text or None."""
    files: dict[str, str | None] = {**FILES}
    files |= {name.replace("__", "/").replace("_DOT_", "."): text for name, text in changed.items()}
    for name, text in files.items():
        if text is not None:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return folder
