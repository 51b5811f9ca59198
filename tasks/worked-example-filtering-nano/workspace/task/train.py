"""Train the fixed learner on selected rows and print its accuracy on the answered questions of data/dev.jsonl.

Usage, from the workspace: python task/train.py [--ids FILE] [--seeds N]
Without --ids it takes data/outputs/selection.txt, or the first 800 rows where there is none yet.
"""

import argparse
import json
from pathlib import Path

from learner import Exam, accuracy, pool_read
from selection import MOST_IDS, SelectionError, selection_parse

WORKSPACE = Path(__file__).resolve().parents[1]
SELECTION = WORKSPACE / "data" / "outputs" / "selection.txt"


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the fixed learner on selected rows; accuracy on data/dev.jsonl")
    parser.add_argument("--ids", type=Path, help="a file of ids, one per line (default: data/outputs/selection.txt)")
    parser.add_argument("--seeds", type=int, default=1, help="trainer seeds to average over; about 2 s each")
    arguments = parser.parse_args()
    pool = pool_read(WORKSPACE / "data" / "pool.jsonl")
    with (WORKSPACE / "data" / "dev.jsonl").open(encoding="utf-8") as lines:
        dev = [json.loads(line) for line in lines]
    exam = Exam(tuple(row["question"] for row in dev), tuple(str(row["answer"]) for row in dev))
    path = arguments.ids or SELECTION
    if arguments.ids is None and not path.exists():
        print(f"no selection yet: the first {MOST_IDS} rows of the pool")
        ids = tuple(range(MOST_IDS))
    else:
        try:
            ids = selection_parse(path.read_bytes(), len(pool)).ids
        except SelectionError as error:
            raise SystemExit(f"{path}: {error}") from None
    share = accuracy([pool[i] for i in ids], exam, range(max(1, arguments.seeds)))
    print(f"rows {len(ids)}  dev accuracy {share:.3f}")


if __name__ == "__main__":
    main()
