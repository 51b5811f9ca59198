"""Room: evaluator (pure). Worthless submissions made from a good one: empty, malformed, constant, random."""

from __future__ import annotations

import csv
import io
import json
import random
from typing import Any

FORGERIES = ("empty", "malformed", "constant", "random")
_MALFORMED = b'\xff\xfe{"truncated": [1, 2,\x00\n"unclosed,,,\n'


def forge(kind: str, good: bytes) -> bytes:
    """`good` is an output file of the baseline; what comes back has its shape but (constant, random) no content."""
    if kind == "empty":
        return b""
    if kind == "malformed":
        return _MALFORMED
    try:
        text = good.decode("utf-8")
    except UnicodeDecodeError:
        return bytes([good[0]]) * len(good) if kind == "constant" else random.Random(0).randbytes(len(good))  # noqa: S311
    return _reworked(text, constant=kind == "constant").encode()


def _reworked(text: str, *, constant: bool) -> str:
    """Rows keep their first column (an id, mostly); the other columns become the first row's, or are shuffled."""
    try:
        data = json.loads(text)
    except ValueError:
        return _lines(text, constant=constant)
    return json.dumps(_values(data, constant=constant))


def _lines(text: str, *, constant: bool) -> str:
    lines = text.splitlines()
    try:
        records = [json.loads(line) for line in lines if line.strip()]
        if records and all(isinstance(record, dict) for record in records):
            return "".join(json.dumps(row) + "\n" for row in _records(records, constant=constant))
    except ValueError:
        pass
    if lines and "," in lines[0]:
        rows = list(csv.reader(lines))
        head, body = rows[0], rows[1:]
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(_columns(body, constant=constant))
        return out.getvalue()
    return "\n".join(_picked(lines, constant=constant)) + "\n"


def _columns(rows: list[list[str]], *, constant: bool) -> list[list[str]]:
    if not rows:
        return rows
    others = _picked([row[1:] for row in rows], constant=constant)
    return [row[:1] + other for row, other in zip(rows, others, strict=True)]


def _records(rows: list[dict[str, Any]], *, constant: bool) -> list[dict[str, Any]]:
    keys = list(rows[0])
    others = _picked([{key: row.get(key) for key in keys[1:]} for row in rows], constant=constant)
    return [{keys[0]: row.get(keys[0]), **other} for row, other in zip(rows, others, strict=True)]


def _values(data: Any, *, constant: bool) -> Any:
    if isinstance(data, dict):
        return dict(zip(data, _picked(list(data.values()), constant=constant), strict=True))
    return _picked(data, constant=constant) if isinstance(data, list) else data


def _picked(values: list[Any], *, constant: bool) -> list[Any]:
    if constant:
        return [values[0]] * len(values) if values else values
    mixed = list(values)
    random.Random(0).shuffle(mixed)  # noqa: S311  # no secret: the same worthless submission each time
    return mixed
