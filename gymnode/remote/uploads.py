"""Room: gymnode.remote. Bytes in and out of a run: the workspace's tar in chunks, outputs as checked copies."""

from __future__ import annotations

import contextlib
import os
import re
from typing import Any, Callable, Dict, List, Tuple

from gymnode.remote.keepers import Failed
from gymnode.remote.refusals import Refusal, refusal_from_os
from gymnode.remote.runs import Run

MAX_TREE = 64 * 2**30
MAX_OUTPUT = 16 * 2**30
MAX_OUTPUTS = 10_000
OUTPUT_CHUNK = 4 * 2**20

Done = Callable[[Dict[str, Any]], None]


def tree_put(run: Run, body: Dict[str, Any], payload: bytes, done: Done, failed: Failed) -> None:
    """One chunk {upload_id, offset, last, sha256} of a tar; the last one is checked and unpacked."""
    upload = str(body["upload_id"])
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", upload):
        raise Refusal("bad_request", "upload_id: letters, digits, '.', '_' and '-', at most 64")
    path = run.folder / f"upload-{upload}"
    marker = run.folder / f"unpacked-{upload}"
    if marker.exists():
        done({"unpacked": True, "size": int(body["offset"]) + len(payload)})
        return
    if upload in run.unpacking:
        run.unpacking[upload].append((done, failed))  # sent again while it is unpacked: the same answer for both
        return
    offset = int(body["offset"])
    if offset > MAX_TREE:
        raise Refusal("path_too_large", f"the workspace is larger than {MAX_TREE} bytes")
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    size = os.fstat(fd).st_size
    if offset > size:
        os.close(fd)
        raise Refusal("bad_request", f"chunk at {offset}, but only {size} bytes have arrived: send from there")
    os.pwrite(fd, payload, offset)
    if not body.get("last"):
        os.close(fd)
        done({"unpacked": False, "size": offset + len(payload)})
        return
    try:
        _unpack(run, upload, fd, str(body["sha256"]), (done, failed))
    finally:
        os.close(fd)


def _unpack(run: Run, upload: str, fd: int, sha256: str, first: Tuple[Done, Failed]) -> None:
    """Have the keeper unpack what has arrived; `first`, and who asks meanwhile, hear what came of it."""
    keeper = run.keeper_get()
    path = run.folder / f"upload-{upload}"
    run.unpacking[upload] = [first]

    def unpacked(result: Dict[str, Any]) -> None:
        path.unlink(missing_ok=True)
        try:
            (run.folder / f"unpacked-{upload}").touch()
        except OSError as error:
            refused(Refusal("storage_full", f"the workspace is unpacked, but this can't be remembered: {error}"))
            return
        for done, _failed in run.unpacking.pop(upload, []):
            done({"unpacked": True, **result})

    def refused(refusal: Refusal) -> None:
        path.unlink(missing_ok=True)
        for _done, failed in run.unpacking.pop(upload, []):
            failed(refusal)

    keeper.ask_with({"op": "unpack", "sha256": sha256}, fd, unpacked, refused)


class OutputCollection:
    """Copies declared outputs one after the other; a file's fault is told beside its name, the others go on. For a disk
    of the node without room no file can be blamed: then nothing is collected, and it can be asked for again.
    """

    def __init__(self, run: Run, wanted: List[Dict[str, Any]], done: Done, failed: Failed) -> None:
        if len(wanted) > MAX_OUTPUTS:
            raise Refusal("bad_request", f"at most {MAX_OUTPUTS} outputs")
        self._run, self._wanted, self._done, self._failed = run, wanted, done, failed
        self._files: List[Dict[str, Any]] = []
        self._folder = run.folder / "outputs"
        self._folder.mkdir(mode=0o700, exist_ok=True)
        run.outputs = []

    def start(self) -> None:
        """Copy the next one, or answer."""
        index = len(self._files)
        if index == len(self._wanted):
            self._done({"files": self._files})
            return
        wanted = self._wanted[index]
        path = self._folder / str(index)
        shown = str(wanted["path"])
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        except OSError as error:
            self._failed(refusal_from_os(f"the copy of {shown}", error))
            return
        self._run.outputs.append(path)
        name = shown[len("/workspace/") :] if shown.startswith("/workspace/") else shown
        limit = min(int(wanted.get("max_bytes", MAX_OUTPUT)), MAX_OUTPUT)
        message = {"op": "output", "path": name, "max_bytes": limit}
        try:
            self._run.keeper_get().ask_with(
                message,
                fd,
                lambda result: self._next({"path": shown, **result}),
                lambda refusal: self._refused(shown, refusal),
            )
        finally:
            os.close(fd)

    def _refused(self, shown: str, refusal: Refusal) -> None:
        if refusal.code == "storage_full":
            self._failed(refusal)
            return
        with contextlib.suppress(OSError):
            os.truncate(self._run.outputs[-1], 0)
        self._next({"path": shown, "error": refusal.message, "code": refusal.code})

    def _next(self, entry: Dict[str, Any]) -> None:
        self._files.append(entry)
        self.start()


def output_read(run: Run, index: int, offset: int) -> Dict[str, Any]:
    """At most 4 MiB of a collected output: {"data": bytes, "size": int}."""
    if not 0 <= index < len(run.outputs):
        raise Refusal("no_such_path", f"there is no collected output {index}: {len(run.outputs)} were collected")
    fd = os.open(run.outputs[index], os.O_RDONLY | os.O_CLOEXEC)
    try:
        return {"data": os.pread(fd, OUTPUT_CHUNK, offset), "size": os.fstat(fd).st_size}
    finally:
        os.close(fd)
