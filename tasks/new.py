"""Room: tasks. Begins a package of one's own: a small working task (reverse the words) with the metric wanted.

Usage: python tasks/new.py ID [--metric NAME] --out FOLDER. `task check` and `task calibrate` pass on it as it is;
the author replaces text, data, evaluator and solutions piece by piece. Standard library only.
"""

import argparse
import json
import random
import re
import secrets
import shutil
import sys
from pathlib import Path
from string import Template

HERE = Path(__file__).resolve().parent
SKELETON = HERE / "skeleton"
sys.path.insert(0, str(SKELETON / "evaluation"))

from metrics import METRICS  # noqa: E402

WORDS = ("one", "two", "three", "four", "five")
QUESTIONS = 40
ID = re.compile(r"([a-z0-9]+(-[a-z0-9]+)*/)?[a-z0-9]+(-[a-z0-9]+)*")
FILLED = ("task.yaml", "task_description.md", "solutions/baseline/run.sh", "solutions/reference/run.sh")
CANARIES = ("evaluation/evaluate.py", "solutions/baseline/run.sh", "solutions/reference/run.sh")
CERTAIN, UNCERTAIN = "1.0 0.0", "0.8 0.2"  # distributions, for predictive entropy


def main() -> None:
    parser = argparse.ArgumentParser(description="Begin a task package")
    parser.add_argument("task", help="its id: small letters, digits and dashes; NAME/ID for one of your own")
    parser.add_argument("--metric", choices=sorted(METRICS), default="accuracy")
    parser.add_argument("--out", type=Path, required=True, help="the folder to write")
    arguments = parser.parse_args()
    if not ID.fullmatch(arguments.task):
        parser.error(f"{arguments.task!r} is no id: small letters, digits and single dashes between them")
    if arguments.out.exists() and any(arguments.out.iterdir()):
        parser.error(f"{arguments.out} isn't empty; name another folder")
    package_write(arguments.out, arguments.task, arguments.metric)
    print(f"{arguments.out}: a working package. Next: replace its parts, then `manage.py task check {arguments.out}`")


def package_write(out: Path, task: str, metric: str) -> None:
    """Copy the skeleton, fill it, and write the toy's data."""
    shutil.copytree(SKELETON, out, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(HERE / "common" / "verdict.py", out / "evaluation" / "verdict.py")
    questions = questions_draw()
    labels = [" ".join(reversed(question.split())) for question in questions]
    write_data(out, metric, questions, labels)
    canary = f"canary-{task.replace('/', '-')}-{secrets.token_hex(16)}"
    values = {"id": task, "metric": metric, "canary": canary, **figures(metric, questions, labels)}
    for name in FILLED:
        path = out / name
        path.write_text(Template(path.read_text(encoding="utf-8")).substitute(values), encoding="utf-8")
    for name in CANARIES:
        with (out / name).open("a", encoding="utf-8") as file:
            file.write(f"# {canary}\n")


def questions_draw() -> list[str]:
    """Forty questions of six words; no two alike in either direction."""
    chooser = random.Random(0)  # noqa: S311
    found: list[str] = []
    while len(found) < QUESTIONS:
        words = chooser.choices(WORDS, k=6)
        if words != words[::-1] and not {" ".join(words), " ".join(words[::-1])} & set(found):
            found.append(" ".join(words))
    return found


def write_data(out: Path, metric: str, questions: list[str], labels: list[str]) -> None:
    ids = [f"q{number}" for number in range(len(questions))]
    lines = [f"{name},{question}\n" for name, question in zip(ids, questions, strict=True)]
    # git keeps no empty folders, so a clone's skeleton may lack these.
    for folder in ("workspace/data", "workspace/data/outputs", "evaluation/references"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    (out / "workspace/data/questions.csv").write_text("id,question\n" + "".join(lines), encoding="utf-8")
    hidden = {"metric": metric, "ids": ids, "labels": labels}
    (out / "evaluation/references/labels.json").write_text(json.dumps(hidden) + "\n", encoding="utf-8")


def figures(metric: str, questions: list[str], labels: list[str]) -> dict[str, str]:
    """What baseline and reference reach, and the arguments that make them."""
    measure = METRICS[metric]
    if metric == "predictive_entropy":
        points = [measure([text] * len(labels), labels) for text in (CERTAIN, UNCERTAIN, "0.5 0.5")]
        arguments = (f'"{CERTAIN}"', f'"{UNCERTAIN}"')
    else:
        reference = [questions[i] if i % 5 == 0 else label for i, label in enumerate(labels)]
        points = [measure(questions, labels), measure(reference, labels), 1.0]
        arguments = ("", "")
    names = ("baseline", "reference", "cap")
    shown = {name: f"{point:.4f}" for name, point in zip(names, points, strict=True)}
    return {**shown, "baseline_argument": arguments[0], "reference_argument": arguments[1]}


if __name__ == "__main__":
    main()
