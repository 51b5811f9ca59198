"""The toy's reference: the words of a question in reverse, right for four questions out of five."""

import csv
import sys
from pathlib import Path

DATA = Path("data")


def prediction(number: int, question: str) -> str:
    if len(sys.argv) > 1:
        return sys.argv[1]
    return question if number % 5 == 0 else " ".join(reversed(question.split()))


def main() -> None:
    with (DATA / "questions.csv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    with (DATA / "outputs" / "predictions.csv").open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["id", "prediction"])
        writer.writerows([row["id"], prediction(number, row["question"])] for number, row in enumerate(rows))


if __name__ == "__main__":
    main()
