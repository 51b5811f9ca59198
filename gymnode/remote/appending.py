"""Room: gymnode.remote. Lines at the end of a file, whole or not at all, also on a full disk."""

from __future__ import annotations

import contextlib
import errno
import os
from typing import Tuple


def line_append(fd: int, data: bytes) -> Tuple[int, int]:
    """Append `data` to a file opened with O_APPEND; its place (offset, length). Raises OSError, and the file is then as
    it was: half a line would make the next one unreadable, too."""
    size = os.fstat(fd).st_size
    try:
        written = os.write(fd, data)
        if written < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError:
        with contextlib.suppress(OSError):
            os.ftruncate(fd, size)
        raise
    return size, len(data)
