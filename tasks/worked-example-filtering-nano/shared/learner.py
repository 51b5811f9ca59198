"""Room: tasks. The fixed learner on rows of the pool; copied to the workspace and to the evaluation."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from characters import CharacterModel, Document, answer_of

ALPHABET = "0123456789@%&=#|.;:?abcdefghijklmnopqrstuvwxyz \n"


@dataclass(frozen=True)
class Exam:
    """Questions and their answers, one digit each."""

    questions: tuple[str, ...]
    answers: tuple[str, ...]


def pool_read(path: Path) -> list[Document]:
    """The rows of pool.jsonl as documents, in the order of their ids."""
    with path.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [Document(row["question"], row["worked"]) for row in rows]


def accuracy(documents: Sequence[Document], exam: Exam, seeds: Sequence[int]) -> float:
    """Train one model a seed on these documents; the mean share of the exam's answers that are right."""
    shares = []
    for seed in seeds:
        completions = CharacterModel(ALPHABET, seed).fit(documents).complete(exam.questions)
        right = [answer_of(text) == answer for text, answer in zip(completions, exam.answers, strict=True)]
        shares.append(sum(right) / len(right))
    return sum(shares) / len(shares)
