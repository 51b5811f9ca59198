"""Room: tasks. The accuracy of a selection of any length: it sets the cap of this task's curve, at build only.

Usage: privileged.py EVALUATION IDS. Prints the mean accuracy on the hidden questions.
"""

import json
import sys
from pathlib import Path

EVALUATION = Path(sys.argv[1])
sys.path.insert(0, str(EVALUATION))

from learner import Exam, accuracy, pool_read  # noqa: E402


def main() -> None:
    hidden = json.loads((EVALUATION / "references" / "test.json").read_text(encoding="utf-8"))
    exam = Exam(tuple(hidden["questions"]), tuple(str(answer) for answer in hidden["answers"]))
    pool = pool_read(EVALUATION / "public" / "pool.jsonl")
    rows = [pool[int(line)] for line in Path(sys.argv[2]).read_text(encoding="utf-8").split()]
    print(accuracy(rows, exam, hidden["trainer_seeds"]))


if __name__ == "__main__":
    main()
