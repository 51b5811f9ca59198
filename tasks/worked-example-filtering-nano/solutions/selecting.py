"""Selections by what rows say: whose facts are believed, whether rows are verified, which of them are taken.

The reference believes the authors whose own tables answer the dev questions, verifies every row by their facts, and
takes the longest. The other choices are what one might try instead; all are measured beside the reference.
Run from a copy of the workspace. Writes data/outputs/selection.txt. `--seed` orders rows that are worth the same.
"""

import argparse
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

DATA = Path("data")
LIMIT = 800
TRUST = 0.6  # of the best author's share of right dev answers
ALIGNED = re.compile(r"\.*([0-7](?:\.[0-7])+)#[0-7]")


class Key(NamedTuple):
    """One entry of the table of facts."""

    left: int
    operator: str
    right: int


class Row(NamedTuple):
    id: int
    author: int
    question: str
    steps: tuple[tuple[Key, int], ...]


Facts = Mapping[Key, int]
Votes = dict[Key, Counter[int]]


def rows_read() -> list[Row]:
    """The aligned rows of the pool, each as its steps."""
    rows = []
    with (DATA / "pool.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            raw = json.loads(line)
            match = ALIGNED.fullmatch(raw["worked"])
            if match:
                steps = steps_of(raw["question"], [int(value) for value in match[1].split(".")])
                rows.append(Row(raw["id"], raw["author"], raw["question"], steps))
    return rows


def steps_of(question: str, values: list[int]) -> tuple[tuple[Key, int], ...]:
    operators, terms = question[1:-1:2], question[2:-1:2]
    keys = (Key(value, op, int(term)) for value, op, term in zip(values, operators, terms, strict=False))
    return tuple(zip(keys, values[1:], strict=True))


def votes_count(rows: Iterable[Row]) -> Votes:
    votes: Votes = defaultdict(Counter)
    for row in rows:
        for key, value in row.steps:
            votes[key][value] += 1
    return votes


def majority(votes: Votes) -> Facts:
    return {key: counter.most_common(1)[0][0] for key, counter in votes.items()}


def answer(facts: Facts, question: str) -> int | None:
    """The value of a question by a table; None where a fact is missing."""
    value: int | None = int(question[0])
    for operator, term in zip(question[1:-1:2], question[2:-1:2], strict=True):
        value = facts.get(Key(value, operator, int(term))) if value is not None else None
    return value


def trusted_authors(rows: list[Row]) -> set[int]:
    """Authors whose own majority table answers nearly as many dev questions as the best one's."""
    with (DATA / "dev.jsonl").open(encoding="utf-8") as lines:
        dev = [json.loads(line) for line in lines]
    shares = {}
    for author in {row.author for row in rows}:
        facts = majority(votes_count(row for row in rows if row.author == author))
        shares[author] = sum(answer(facts, row["question"]) == row["answer"] for row in dev) / len(dev)
    return {author for author, share in shares.items() if share > TRUST * max(shares.values())}


def trusted_facts(rows: list[Row]) -> Facts:
    trusted = trusted_authors(rows)
    return majority(votes_count(row for row in rows if row.author in trusted))


def verified(rows: Iterable[Row], facts: Facts, *, with_benchmark: bool = False) -> list[Row]:
    """Rows right in every step, the first of each question, without those of the benchmark unless they are wanted."""
    seen = set() if with_benchmark else set((DATA / "benchmark.txt").read_text(encoding="utf-8").split())
    kept = []
    for row in rows:
        if row.question not in seen and all(facts.get(key) == value for key, value in row.steps):
            seen.add(row.question)
            kept.append(row)
    return kept


def covering(rows: list[Row], limit: int) -> list[Row]:
    """Greedily, the row whose facts and length were taken least often so far."""
    features: list[list[Key | int]] = [[*(key for key, _ in row.steps), len(row.steps)] for row in rows]
    counts: Counter[Key | int] = Counter()
    left = set(range(len(rows)))
    chosen = []
    for _ in range(min(limit, len(rows))):
        best = max(left, key=lambda i: sum(1 / (1 + counts[feature]) for feature in features[i]))
        left.discard(best)
        counts.update(features[best])
        chosen.append(rows[best])
    return chosen


def ordered(rows: list[Row], order: str, limit: int) -> list[Row]:
    if order == "cover":
        return covering(rows, limit)
    if order == "long":
        rows = sorted(rows, key=lambda row: -len(row.question))
    return rows[:limit]


def kept_rows(rows: list[Row], believe: str, *, with_benchmark: bool) -> list[Row]:
    """The rows one might take, by whom one believes."""
    match believe:
        case "trusted":
            return verified(rows, trusted_facts(rows), with_benchmark=with_benchmark)
        case "majority":
            return verified(rows, majority(votes_count(rows)), with_benchmark=with_benchmark)
        case "trusted-unverified":
            trusted = trusted_authors(rows)
            return [row for row in rows if row.author in trusted]
        case _:
            return list(rows)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--believe", default="trusted", choices=["trusted", "majority", "trusted-unverified", "all"])
    parser.add_argument("--order", default="long", choices=["long", "random", "cover"])
    parser.add_argument("--with-benchmark", action="store_true", help="keep rows on questions of the benchmark")
    parser.add_argument("--no-limit", action="store_true", help="keep more than 800 rows: the privileged solution")
    arguments = parser.parse_args()
    kept = kept_rows(rows_read(), arguments.believe, with_benchmark=arguments.with_benchmark)
    random.Random(arguments.seed).shuffle(kept)  # noqa: S311
    chosen = ordered(kept, arguments.order, len(kept) if arguments.no_limit else LIMIT)
    target = DATA / "outputs" / "selection.txt"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("".join(f"{row.id}\n" for row in chosen), encoding="utf-8")
    print(f"{len(chosen)} of {len(kept)} rows selected")


if __name__ == "__main__":
    main()
