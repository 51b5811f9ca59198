"""Room: gymnode.remote. The append-only output log of one session, addressed by byte offset.

Kept in segment files named by their first offset. Beyond the cap the first half stays, the newest segments stay, the
oldest ones between are dropped; a read that starts in the gap says where the bytes go on.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import List, NamedTuple, Tuple

DEFAULT_CAP = 1024 * 1024 * 1024
PIECE_LIMIT = 192 * 1024


class LogSlice(NamedTuple):
    """Bytes from `start` on; `start` is later than asked for when it was dropped."""

    data: bytes
    start: int

    @property
    def end(self) -> int:
        """The offset after the last byte."""
        return self.start + len(self.data)


class SessionLog:
    """One log in `folder`; opening it again continues where it ended."""

    def __init__(self, folder: Path, cap: int = DEFAULT_CAP) -> None:
        self._folder = folder
        self._cap = cap
        self._segment_size = max(64 * 1024, cap // 16)
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        self._segments: List[Tuple[int, int]] = self._scan()
        self.total = self._segments[-1][0] + self._segments[-1][1] if self._segments else 0
        self._fd = -1  # opened by the first append

    def append(self, data: bytes) -> None:
        """Add bytes at the end. Raises OSError (a full disk)."""
        if not self._segments or self._segments[-1][1] >= self._segment_size:
            self._start_segment()
        elif self._fd < 0:
            self._fd = self._open(self._segments[-1][0])
        view = memoryview(data)
        while view:
            written = os.write(self._fd, view)
            view = view[written:]
            start, size = self._segments[-1]
            self._segments[-1] = (start, size + written)
            self.total += written

    def read(self, offset: int, limit: int) -> LogSlice:
        """At most `limit` bytes from `offset` on, up to the next gap or the end."""
        out = bytearray()
        position = max(0, offset)
        begin = position
        for start, size in self._segments:
            if start + size <= position:
                continue
            if start > position:
                if out:
                    break
                begin = position = start
            chunk = self._pread(start, position - start, min(limit - len(out), start + size - position))
            out += chunk
            position += len(chunk)
            if len(out) >= limit:
                break
        return LogSlice(bytes(out), min(begin, self.total))

    def close(self) -> None:
        """Close the file; the log stays readable."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _scan(self) -> List[Tuple[int, int]]:
        found = [(int(path.name), path.stat().st_size) for path in self._folder.iterdir() if path.name.isdigit()]
        return sorted(found)

    def _path(self, start: int) -> Path:
        return self._folder / f"{start:020d}"

    def _open(self, start: int) -> int:
        return os.open(self._path(start), os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def _start_segment(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = self._open(self.total)
        self._segments.append((self.total, 0))
        kept = sum(size for _start, size in self._segments)
        while kept + self._segment_size > self._cap:
            victim = next((one for one in self._segments[:-2] if one[0] >= self._cap // 2), None)
            if victim is None:
                return
            self._path(victim[0]).unlink()
            self._segments.remove(victim)
            kept -= victim[1]

    def _pread(self, start: int, offset: int, size: int) -> bytes:
        try:
            fd = os.open(self._path(start), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return b""
        try:
            return os.pread(fd, size, offset)
        finally:
            os.close(fd)
