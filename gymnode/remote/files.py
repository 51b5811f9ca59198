"""Room: gymnode.remote. File operations, carried out by a run's keeper with the run's own rights and no more.

Every function takes already mapped paths; `FileOps` maps what the caller wrote (`/workspace/...` or relative to it).
Bytes travel as base64 in the JSON answer. Raises Refusal; system errors become one in `FileOps.call`.
"""

from __future__ import annotations

import base64
import hashlib
import os
import stat
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict

from gymnode.remote.refusals import Refusal, refusal_from_os
from gymnode.remote.searching import tree_find, tree_search

ALIAS = "/workspace"
MAX_READ = 4 * 1024 * 1024
MAX_WRITE = 5 * 1024 * 1024
CHUNK = 1024 * 1024

Args = Dict[str, Any]
Result = Dict[str, Any]


class FileOps:
    """The `file.*` operations below one workspace. `root` is the workspace as this process sees it."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._calls: Dict[str, Callable[[str, Args], Result]] = {
            "file.stat": file_stat,
            "file.read": file_read,
            "file.lines": file_lines,
            "file.write": file_write,
            "file.list": file_list,
            "file.search": self._search,
            "file.find": self._find,
        }

    def call(self, op: str, args: Args) -> Result:
        """Carry one operation out. Raises Refusal with the path as the caller wrote it."""
        shown = str(args.get("path", "."))
        handler = self._calls.get(op)
        if handler is None:
            raise Refusal("bad_request", f"{op} is no file operation")
        if "\0" in shown:
            raise Refusal("bad_request", "a path can't contain a NUL byte")
        try:
            return handler(self.locate(shown), args)
        except OSError as error:
            raise refusal_from_os(shown, error) from error

    def locate(self, path: str) -> str:
        """Where a path of the agent lies for this process; relative ones start at the workspace."""
        if path == ALIAS or path.startswith(ALIAS + "/"):
            return self.root + path[len(ALIAS) :]
        return str(Path(self.root, path))

    def _search(self, path: str, args: Args) -> Result:
        return tree_search(path, str(args["term"]), int(args.get("max_hits", 100)), self.show)

    def _find(self, path: str, args: Args) -> Result:
        return tree_find(path, str(args["pattern"]), int(args.get("max_hits", 200)), self.show)

    def show(self, path: str) -> str:
        """A real path as the agent would write it, storable as text."""
        return name_show(path)


def name_show(name: str) -> str:
    """A file name as valid text: bytes that are no UTF-8 become U+FFFD."""
    return os.fsencode(name).decode("utf-8", "replace")


def file_stat(path: str, args: Args) -> Result:
    """Facts about the path itself; a link is a link."""
    facts = os.lstat(path)
    return {"path": name_show(str(args.get("path", "."))), **_facts(facts)}


def _facts(facts: os.stat_result) -> Result:
    return {
        "kind": kind_of(facts.st_mode),
        "size": facts.st_size,
        "mode": stat.S_IMODE(facts.st_mode),
        "mtime": facts.st_mtime,
    }


def kind_of(mode: int) -> str:
    """`file`, `dir`, `link` or `other`."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "dir"
    return "link" if stat.S_ISLNK(mode) else "other"


def _open_regular(path: str, shown: str) -> int:
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return fd
    os.close(fd)
    kind = "a folder" if stat.S_ISDIR(mode) else "no regular file"
    raise Refusal("wrong_path_kind", f"{shown} is {kind}")


def file_read(path: str, args: Args) -> Result:
    """`max_bytes` (at most 4 MiB) from `offset`."""
    limit = min(int(args.get("max_bytes", MAX_READ)), MAX_READ)
    fd = _open_regular(path, str(args["path"]))
    try:
        facts = os.fstat(fd)
        data = os.pread(fd, limit, int(args.get("offset", 0)))
    finally:
        os.close(fd)
    return {"data": base64.b64encode(data).decode(), **_facts(facts)}


def file_lines(path: str, args: Args) -> Result:
    """Lines `start` .. `start + count - 1` (from 1), at most `max_bytes` of them, and how many lines there are."""
    start, count = max(1, int(args.get("start", 1))), max(0, int(args.get("count", 100)))
    window = _LineWindow(start, count, min(int(args.get("max_bytes", MAX_READ)), MAX_READ))
    fd = _open_regular(path, str(args["path"]))
    try:
        facts = os.fstat(fd)
        sample = os.pread(fd, 8192, 0)
        while True:
            chunk = os.read(fd, CHUNK)
            if not chunk:
                break
            window.feed(chunk)
    finally:
        os.close(fd)
    binary = b"\0" in sample and not sample.startswith((b"\xff\xfe", b"\xfe\xff"))
    return {
        "data": base64.b64encode(bytes(window.data)).decode(),
        "first": start,
        "last": window.last_line(),
        "total_lines": window.total_lines(),
        "cut": window.cut,
        "size": facts.st_size,
        "mode": stat.S_IMODE(facts.st_mode),
        "mtime": facts.st_mtime,
        "encoding_guess": _guess_encoding(sample),
        "binary": binary,
    }


class _LineWindow:
    """Picks lines out of a stream and counts all of them, holding no more than the window."""

    def __init__(self, start: int, count: int, max_bytes: int) -> None:
        self.data = bytearray()
        self.cut = False
        self._first, self._end, self._limit = start, start + count, max_bytes
        self._line, self._open = 1, False

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the file."""
        newlines = chunk.count(b"\n")
        if self._line < self._end and self._line + newlines >= self._first:
            self._pick(chunk)
        self._line += newlines
        self._open = not chunk.endswith(b"\n")

    def _pick(self, chunk: bytes) -> None:
        begin = _after_newlines(chunk, self._first - self._line)
        end = _after_newlines(chunk, self._end - self._line)
        room = self._limit - len(self.data)
        self.data += chunk[begin : min(end, begin + room)]
        self.cut = self.cut or end - begin > room

    def total_lines(self) -> int:
        """Lines in the file; a last one without newline counts."""
        return self._line if self._open else self._line - 1

    def last_line(self) -> int:
        """The last line that stands (perhaps cut) in `data`; `first - 1` when none does."""
        newlines = self.data.count(b"\n")
        partial = bool(self.data) and not self.data.endswith(b"\n")
        return self._first - 1 + newlines + int(partial)


def _after_newlines(chunk: bytes, count: int) -> int:
    """The position after the `count`-th newline of the chunk, its end when there are fewer."""
    position = 0
    for _ in range(max(0, count)):
        found = chunk.find(b"\n", position)
        if found < 0:
            return len(chunk)
        position = found + 1
    return position


def _guess_encoding(sample: bytes) -> str:
    marks = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
    for mark, name in marks:
        if sample.startswith(mark):
            return name
    try:
        sample.decode("utf-8")
    except UnicodeDecodeError as error:
        # The sample may end in the middle of a character; anything earlier is no UTF-8.
        return "utf-8" if error.start > len(sample) - 4 and len(sample) == 8192 else "latin-1"
    return "utf-8"


def file_write(path: str, args: Args) -> Result:
    """Replace or create, all or nothing: a temporary file beside it, then a rename. Follows a link to its file."""
    data = base64.b64decode(args["data"])
    if len(data) > MAX_WRITE:
        raise Refusal("path_too_large", f"{args['path']}: {len(data)} bytes; at most {MAX_WRITE} in one write")
    target = Path(os.path.realpath(path))
    if args.get("make_dirs"):
        target.parent.mkdir(parents=True, exist_ok=True)
    mode = _check_target(target, str(args["path"]), args.get("expect_sha256"))
    wanted = args.get("mode")
    created = mode is None
    final = int(wanted) if wanted is not None else (0o644 if mode is None else mode)
    _replace(target, data, final)
    return {"created": created, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _check_target(target: Path, shown: str, expected: str | None) -> int | None:
    """The mode of the file that will be replaced, None when there is none."""
    try:
        facts = target.lstat()
    except FileNotFoundError:
        if expected is not None:
            raise Refusal("path_changed", f"{shown} was removed after it was read: open it again") from None
        return None
    if not stat.S_ISREG(facts.st_mode):
        kind = "a folder" if stat.S_ISDIR(facts.st_mode) else "no regular file"
        raise Refusal("wrong_path_kind", f"{shown} is {kind}")
    if expected is not None and _sha256_of(target) != expected:
        raise Refusal("path_changed", f"{shown} was changed after it was read: open it again")
    return stat.S_IMODE(facts.st_mode)


def _sha256_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        for chunk in iter(lambda: stream.read(CHUNK), b""):
            digest.update(chunk)
    return digest.hexdigest()


def _replace(target: Path, data: bytes, mode: int) -> None:
    fd, name = tempfile.mkstemp(prefix=".write-", dir=str(target.parent))
    temporary = Path(name)
    try:
        with os.fdopen(fd, "wb") as stream:
            stream.write(data)
        temporary.chmod(mode)
        temporary.replace(target)
    except BaseException:
        temporary.unlink()
        raise


def file_list(path: str, args: Args) -> Result:
    """One page of a folder, sorted by name; names that aren't UTF-8 carry their bytes as well (`name_base64`)."""
    size = min(max(1, int(args.get("page_size", 200))), 2000)
    page = max(1, int(args.get("page", 1)))
    hidden = bool(args.get("show_hidden", False))
    with os.scandir(path) as found:
        names = sorted(entry.name for entry in found if hidden or not entry.name.startswith("."))
    chosen = names[(page - 1) * size : page * size]
    return {"entries": [_entry(path, name) for name in chosen], "total": len(names)}


def _entry(folder: str, name: str) -> Result:
    shown = name_show(name)
    entry: Result = {"name": shown}
    if os.fsencode(name) != shown.encode():
        entry["name_base64"] = base64.b64encode(os.fsencode(name)).decode()
    try:
        facts = Path(folder, name).lstat()
    except OSError:
        return {**entry, "kind": "other", "size": 0, "mtime": 0.0}
    return {**entry, "kind": kind_of(facts.st_mode), "size": facts.st_size, "mtime": facts.st_mtime}
