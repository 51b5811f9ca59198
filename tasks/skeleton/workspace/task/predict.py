"""The baseline: every question is its own prediction. Writes data/outputs/predictions.csv.

Usage, from the workspace: python task/predict.py [PREDICTION]
"""

import csv
import sys
from pathlib import Path

WORKSPACE = Path(__file__).resolve().parents[1]


def main() -> None:
    with (WORKSPACE / "data" / "questions.csv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    target = WORKSPACE / "data" / "outputs" / "predictions.csv"
    with target.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["id", "prediction"])
        writer.writerows([row["id"], sys.argv[1] if len(sys.argv) > 1 else row["question"]] for row in rows)
    print(f"{len(rows)} predictions")


if __name__ == "__main__":
    main()
