"""Room: gymnode.remote. The one exception gymd and its keepers answer requests with.

The codes are those of `gymnode.errors.REFUSALS`; the numbers follow HTTP.
"""

from __future__ import annotations

import errno

STATUS = {
    "bad_request": 400,
    "not_permitted": 403,
    "no_such_run": 404,
    "no_such_session": 404,
    "no_such_path": 404,
    "session_exists": 409,
    "session_busy": 409,
    "session_closed": 409,
    "epoch_too_low": 409,
    "wrong_path_kind": 409,
    "path_changed": 412,
    "outcome_unknown": 410,
    "path_too_large": 413,
    "broken": 500,
    "storage_full": 507,
}

_BY_ERRNO = {
    errno.ENOENT: ("no_such_path", "does not exist"),
    errno.ENOTDIR: ("wrong_path_kind", "lies below something that is no folder"),
    errno.EISDIR: ("wrong_path_kind", "is a folder"),
    errno.ELOOP: ("wrong_path_kind", "leads through a link that can't be followed"),
    errno.EACCES: ("not_permitted", "permission denied"),
    errno.EPERM: ("not_permitted", "operation not permitted"),
    errno.EROFS: ("not_permitted", "lies on a read-only disk"),
    errno.EEXIST: ("wrong_path_kind", "exists already"),
    errno.ENOSPC: ("storage_full", "no space left on the disk"),
    errno.EDQUOT: ("storage_full", "the disk quota is used up"),
    errno.EFBIG: ("path_too_large", "would become too large"),
    errno.ENAMETOOLONG: ("bad_request", "has too long a name"),
}


class Refusal(Exception):
    """A request that isn't carried out. `code` is stable, the message is for the caller's eyes."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.status = STATUS[code]
        self.message = message


def refusal_from_os(path: str, error: OSError) -> Refusal:
    """The refusal for a failed system call on `path` (as the caller named it)."""
    code, words = _BY_ERRNO.get(error.errno or 0, ("broken", error.strerror or "failed"))
    return Refusal(code, f"{path}: {words}")
