"""Room: tasks. The format of a selection: one id per line; copied to the workspace and to the evaluation."""

import re
from dataclasses import dataclass

MOST_IDS = 800
MOST_BYTES = 10 * 1024
MOST_FAULTS = 5  # named in a message; the rest is counted
_INTEGER = re.compile(r"[0-9]{1,9}")


class SelectionError(ValueError):
    """The text is no selection; the message names the lines and what is wrong with each."""


@dataclass(frozen=True)
class Selection:
    """1 to 800 distinct ids of rows of the pool, in the order given."""

    ids: tuple[int, ...]


def selection_parse(data: bytes, rows: int) -> Selection:
    """Read the bytes of a selection over a pool of `rows` rows. Raises SelectionError."""
    lines = _lines(data)
    if len(lines) > MOST_IDS:
        message = f"{len(lines)} ids, at most {MOST_IDS}"
        raise SelectionError(message)
    first_line: dict[int, int] = {}
    faults = []
    for number, line in enumerate(lines, start=1):
        text = line.strip(" \t\r")  # what else `strip` takes away, `int` may not read
        if not _INTEGER.fullmatch(text):
            faults.append(f"line {number}: {line[:40]!r} is not an id (an integer from 0 to {rows - 1})")
            continue
        chosen = int(text)
        if chosen >= rows:
            faults.append(f"line {number}: id {chosen} is out of range (0 to {rows - 1})")
        elif chosen in first_line:
            faults.append(f"line {number}: id {chosen} already on line {first_line[chosen]}")
        else:
            first_line[chosen] = number
    if faults:
        more = f"; and {len(faults) - MOST_FAULTS} more" if len(faults) > MOST_FAULTS else ""
        raise SelectionError("; ".join(faults[:MOST_FAULTS]) + more)
    return Selection(tuple(first_line))


def _lines(data: bytes) -> list[str]:
    if len(data) > MOST_BYTES:
        message = f"{len(data)} bytes, at most {MOST_BYTES}"
        raise SelectionError(message)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        message = f"line {line}: not UTF-8"
        raise SelectionError(message) from error
    lines = text.removesuffix("\n").split("\n") if text.strip() else []
    if not lines:
        message = "the file is empty; 1 to 800 ids are expected, one per line"
        raise SelectionError(message)
    return lines
