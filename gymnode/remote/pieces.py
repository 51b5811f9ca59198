"""Room: gymnode.remote. A stretch of a log as it travels: head, tail, and how much was left out between."""

from __future__ import annotations

import base64
from typing import Any, Dict

from gymnode.remote.logs import PIECE_LIMIT, SessionLog


def piece_make(log: SessionLog, start: int, end: int, limit: int = PIECE_LIMIT) -> Dict[str, Any]:
    """Bytes `start` to `end` of the log; beyond `limit` its first and last halves. Dropped bytes count as omitted."""
    end = min(end, log.total)
    start = min(max(0, start), end)
    if end - start <= limit:
        head = _collect(log, start, end)
        tail, omitted = b"", end - start - len(head)
        return _piece(log, head, tail, (start, end, omitted))
    half = limit // 2
    head, tail = _collect(log, start, start + half), _collect(log, end - half, end)
    return _piece(log, head, tail, (start, end, end - start - len(head) - len(tail)))


def _piece(log: SessionLog, head: bytes, tail: bytes, numbers: tuple[int, int, int]) -> Dict[str, Any]:
    start, end, omitted = numbers
    return {
        "head": base64.b64encode(head).decode(),
        "tail": base64.b64encode(tail).decode(),
        "omitted": omitted,
        "start_offset": start,
        "next_offset": end,
        "total_bytes": log.total,
    }


def _collect(log: SessionLog, start: int, end: int) -> bytes:
    """Bytes from `start` on that lie together; fewer where the log has a gap."""
    part = log.read(start, end - start)
    return part.data if part.start == start else b""
