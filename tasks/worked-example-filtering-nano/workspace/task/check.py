"""Check the format of data/outputs/selection.txt and its overlap with the benchmark; no score.

Usage, from the workspace: python task/check.py [FILE]
"""

import argparse
from pathlib import Path

from learner import pool_read
from selection import SelectionError, selection_parse

WORKSPACE = Path(__file__).resolve().parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(description="Check a selection's format and its overlap with the benchmark")
    parser.add_argument("file", nargs="?", type=Path, default=WORKSPACE / "data" / "outputs" / "selection.txt")
    path = parser.parse_args().file
    pool = pool_read(WORKSPACE / "data" / "pool.jsonl")
    benchmark = set((WORKSPACE / "data" / "benchmark.txt").read_text(encoding="utf-8").split())
    try:
        ids = selection_parse(path.read_bytes(), len(pool)).ids
    except (SelectionError, OSError) as error:
        raise SystemExit(f"{path.name}: {error}") from None
    questions = [pool[i].question for i in ids]
    leaked = sum(question in benchmark for question in questions)
    print(f"valid: {len(ids)} ids, {len(set(questions))} different questions, {leaked} of the benchmark's questions")


if __name__ == "__main__":
    main()
