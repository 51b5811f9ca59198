"""Score a selection: train the fixed learner on the selected rows, examine it on hidden questions.

Metrics: `accuracy` (mean over hidden trainer seeds, 0..1) and `leak` (share of selected rows whose question is in
the public benchmark). Deterministic: $SEED is not used.
"""

import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # isolated mode (-I) leaves the script's own folder out

from learner import Exam, accuracy, pool_read  # noqa: E402
from selection import MOST_BYTES, SelectionError, selection_parse  # noqa: E402
from verdict import InvalidOutputError, invalid_write, output_read, valid_write  # noqa: E402

OUTPUT = "data/outputs/selection.txt"


def main() -> None:
    pool = pool_read(HERE / "public" / "pool.jsonl")
    benchmark = set((HERE / "public" / "benchmark.txt").read_text(encoding="utf-8").split())
    hidden = json.loads((HERE / "references" / "test.json").read_text(encoding="utf-8"))
    try:
        ids = selection_parse(output_read(OUTPUT, MOST_BYTES), len(pool)).ids
    except (SelectionError, InvalidOutputError) as error:
        invalid_write(str(error))
        return
    rows = [pool[i] for i in ids]
    exam = Exam(tuple(hidden["questions"]), tuple(str(answer) for answer in hidden["answers"]))
    leak = sum(row.question in benchmark for row in rows) / len(rows)
    valid_write({"accuracy": accuracy(rows, exam, hidden["trainer_seeds"]), "leak": leak})


if __name__ == "__main__":
    main()
