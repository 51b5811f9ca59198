"""Room: gymnode.transport. The file system of the fake node: paths to bytes, nothing else."""

import base64
import fnmatch
import hashlib
import io
import tarfile
from pathlib import PurePosixPath
from typing import Any

ALIAS = "/workspace"


class Refused(Exception):
    """The fake node's refusal, with the status and code gymd would give."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class FakeFiles:
    """Files below /workspace by relative path."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self._upload = b""

    def call(self, op: str, args: dict[str, Any]) -> dict[str, Any]:
        """One `file.*` operation. Raises Refused, KeyError for one the fake doesn't know."""
        name = self._name(str(args.get("path", ".")))
        handlers = {
            "file.stat": self._stat,
            "file.read": self._read,
            "file.lines": self._lines,
            "file.write": self._write,
            "file.list": self._list,
            "file.find": self._find,
            "file.search": self._search,
        }
        return handlers[op](name, args)

    def tree_put(self, body: dict[str, Any], payload: bytes) -> dict[str, Any]:
        """One chunk of a tar; the last one unpacks it."""
        self._upload = self._upload[: int(body["offset"])] + payload
        if not body.get("last"):
            return {"unpacked": False, "size": len(self._upload)}
        if hashlib.sha256(self._upload).hexdigest() != body["sha256"]:
            raise Refused(400, "bad_request", "the archive arrived damaged (sha256 differs)")
        with tarfile.open(fileobj=io.BytesIO(self._upload)) as archive:
            for member in archive:
                source = archive.extractfile(member) if member.isreg() else None
                if source is not None:
                    self.files[str(PurePosixPath(member.name))] = source.read()
        return {"unpacked": True, "size": len(self._upload)}

    def collect(self, wanted: list[dict[str, Any]]) -> tuple[list[bytes], list[dict[str, Any]]]:
        """Declared outputs: their bytes, and an entry each."""
        found: list[bytes] = []
        entries: list[dict[str, Any]] = []
        for one in wanted:
            data = self.files.get(self._name(one["path"]))
            found.append(data or b"")
            if data is None:
                entries.append({"path": one["path"], "error": "does not exist", "code": "no_such_path"})
            elif len(data) > one.get("max_bytes", len(data)):
                entries.append({"path": one["path"], "error": "too large", "code": "path_too_large"})
            else:
                digest = hashlib.sha256(data).hexdigest()
                entries.append({"path": one["path"], "size": len(data), "sha256": digest})
        return found, entries

    def _name(self, path: str) -> str:
        if path == ALIAS:
            return "."
        return str(PurePosixPath(path.removeprefix(ALIAS + "/")))

    def _get(self, name: str) -> bytes:
        if name not in self.files:
            raise Refused(404, "no_such_path", f"{name}: does not exist")
        return self.files[name]

    def _stat(self, name: str, args: dict[str, Any]) -> dict[str, Any]:
        if name == "." or any(known.startswith(name + "/") for known in self.files):
            return {"path": args["path"], "kind": "dir", "size": 0, "mode": 0o755, "mtime": 0.0}
        return {"path": args["path"], "kind": "file", "size": len(self._get(name)), "mode": 0o644, "mtime": 0.0}

    def _read(self, name: str, args: dict[str, Any]) -> dict[str, Any]:
        data, offset = self._get(name), int(args.get("offset", 0))
        part = data[offset : offset + int(args.get("max_bytes", 1 << 22))]
        return {"data": base64.b64encode(part).decode(), "size": len(data), "mode": 0o644, "mtime": 0.0}

    def _lines(self, name: str, args: dict[str, Any]) -> dict[str, Any]:
        data = self._get(name)
        lines = data.splitlines(keepends=True)
        start = max(1, int(args.get("start", 1)))
        chosen = lines[start - 1 : start - 1 + int(args.get("count", 100))]
        facts = {"first": start, "last": start + len(chosen) - 1, "total_lines": len(lines), "size": len(data)}
        text = {"encoding_guess": "utf-8", "binary": b"\0" in data, "cut": False}
        return {"data": base64.b64encode(b"".join(chosen)).decode(), **facts, **text}

    def _write(self, name: str, args: dict[str, Any]) -> dict[str, Any]:
        data = base64.b64decode(args["data"])
        expected = args.get("expect_sha256")
        if expected is not None and hashlib.sha256(self.files.get(name, b"")).hexdigest() != expected:
            raise Refused(412, "path_changed", f"{args['path']} was changed after it was read")
        created = name not in self.files
        self.files[name] = data
        return {"created": created, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}

    def _list(self, name: str, args: dict[str, Any]) -> dict[str, Any]:
        prefix = "" if name == "." else name + "/"
        names: dict[str, str] = {}
        for path in self.files:
            if path.startswith(prefix):
                first, _mark, rest = path[len(prefix) :].partition("/")
                names[first] = "dir" if rest else "file"
        shown = sorted(one for one in names if args.get("show_hidden") or not one.startswith("."))
        entries = [
            {"name": one, "kind": names[one], "size": len(self.files.get(prefix + one, b"")), "mtime": 0.0}
            for one in shown
        ]
        return {"entries": entries, "total": len(entries)}

    def _find(self, _name: str, args: dict[str, Any]) -> dict[str, Any]:
        pattern = args["pattern"] if any(mark in args["pattern"] for mark in "*?[") else f"*{args['pattern']}*"
        found = [path for path in sorted(self.files) if fnmatch.fnmatchcase(PurePosixPath(path).name, pattern)]
        return {"paths": [f"{ALIAS}/{path}" for path in found], "truncated": False}

    def _search(self, name: str, args: dict[str, Any]) -> dict[str, Any]:
        inside = [path for path in sorted(self.files) if name in (".", path) or path.startswith(name + "/")]
        hits = [
            {"path": f"{ALIAS}/{path}", "line": number, "text": line}
            for path in inside
            for number, line in enumerate(self.files[path].decode("utf-8", "replace").splitlines(), 1)
            if args["term"] in line
        ]
        return {"hits": hits, "files_searched": len(inside), "skipped": [], "truncated": False}
