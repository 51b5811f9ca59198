"""Room: gymnode.remote. The frame both sides speak: on the bridge, on gymd's socket and between gymd and its keepers.

A frame is `>II` (header length, payload length), the header as UTF-8 JSON, then the payload's raw bytes.
Standard library only, Python >= 3.8, as everything in this room.
"""

from __future__ import annotations

import json
import struct
from typing import Any, NamedTuple

PROTOCOL = 1
READY = b"\ngymd bridge ready 1\n"
MAX_HEADER = 8 * 1024 * 1024
MAX_PAYLOAD = 64 * 1024 * 1024
_LENGTHS = struct.Struct(">II")


class FrameError(Exception):
    """The bytes are no frame, or a frame larger than both sides agreed on. The connection is of no further use."""


class Frame(NamedTuple):
    """One message: `header` is the JSON object, `payload` raw bytes that belong to it."""

    header: dict[str, Any]
    payload: bytes = b""


def frame_pack(header: dict[str, Any], payload: bytes = b"") -> bytes:
    """The bytes of one frame. Raises FrameError when header or payload is over the limit."""
    head = json.dumps(header, separators=(",", ":")).encode()
    if len(head) > MAX_HEADER or len(payload) > MAX_PAYLOAD:
        raise FrameError(f"frame of {len(head)} + {len(payload)} bytes; limits are {MAX_HEADER} + {MAX_PAYLOAD}")
    return _LENGTHS.pack(len(head), len(payload)) + head + payload


class FrameReader:
    """Cuts a byte stream into frames; keeps what is incomplete."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """Frames completed by `data`, in order. Raises FrameError for bytes that can't be a frame."""
        self._buffer += data
        frames = []
        position = 0
        while len(self._buffer) - position >= _LENGTHS.size:
            head_length, payload_length = _LENGTHS.unpack_from(self._buffer, position)
            if head_length > MAX_HEADER or payload_length > MAX_PAYLOAD:
                raise FrameError(f"announced frame of {head_length} + {payload_length} bytes is over the limit")
            start = position + _LENGTHS.size
            end = start + head_length + payload_length
            if len(self._buffer) < end:
                break
            frames.append(_frame_parse(bytes(self._buffer[start:end]), head_length))
            position = end
        if position:
            del self._buffer[:position]
        return frames


def _frame_parse(raw: bytes, head_length: int) -> Frame:
    try:
        header = json.loads(raw[:head_length])
    except ValueError as error:
        raise FrameError(f"frame header is no JSON: {error}") from error
    if not isinstance(header, dict):
        raise FrameError("frame header is no JSON object")
    return Frame(header, raw[head_length:])
