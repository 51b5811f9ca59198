"""Score predictions against hidden labels. Writes result.json into the working directory."""

import csv
import io
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # isolated mode leaves the script's own folder out

from metrics import METRICS, PredictionError  # noqa: E402
from verdict import InvalidOutputError, invalid_write, output_read, valid_write  # noqa: E402

OUTPUT = "data/outputs/predictions.csv"
MOST_BYTES = 1024 * 1024


def predictions_read(ids: list[str]) -> list[str]:
    """The predictions in the order of `ids`. Raises InvalidOutputError with the line at fault."""
    try:
        text = output_read(OUTPUT, MOST_BYTES).decode("utf-8")
        rows = list(csv.reader(io.StringIO(text), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidOutputError(f"{OUTPUT}: not a CSV file in UTF-8: {error}") from None
    if not rows or rows[0] != ["id", "prediction"]:
        raise InvalidOutputError("line 1: `id,prediction` is expected")
    found: dict[str, str] = {}
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != 2 or row[0] not in ids or row[0] in found:
            raise InvalidOutputError(f"line {number}: an id of the questions, each once, and a prediction are expected")
        found[row[0]] = row[1]
    missing = [name for name in ids if name not in found]
    if missing:
        raise InvalidOutputError(f"{len(missing)} ids have no prediction, the first is {missing[0]}")
    return [found[name] for name in ids]


def main() -> None:
    hidden = json.loads((HERE / "references" / "labels.json").read_text(encoding="utf-8"))
    try:
        predictions = predictions_read(hidden["ids"])
        value = METRICS[hidden["metric"]](predictions, hidden["labels"])
    except (InvalidOutputError, PredictionError) as error:
        invalid_write(str(error))
        return
    valid_write({hidden["metric"]: value})


if __name__ == "__main__":
    main()
