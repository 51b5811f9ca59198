"""File operations, workspace upload and outputs of the real gymd, over SSH."""

import base64
import hashlib
import io
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.node.machines import NodeRun


def tar_of(members: list[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    """A tar of these members."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for info, data in members:
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    """One member's head."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, link, 0o755 if kind == tarfile.DIRTYPE else 0o644
    return info


def put_tree(run: NodeRun, data: bytes, upload: str = "u1", chunk: int = 4096) -> Any:
    """Upload in chunks; the last reply."""
    digest = hashlib.sha256(data).hexdigest()
    reply = None
    for offset in range(0, len(data), chunk):
        part = data[offset : offset + chunk]
        last = offset + chunk >= len(data)
        body = {"epoch": run.epoch, "upload_id": upload, "offset": offset, "last": last, "sha256": digest}
        reply = run.link.request("PUT", f"/v1/runs/{run.name}/tree", body, payload=part)
    return reply


def write(run: NodeRun, path: str, data: bytes, **more: Any) -> Any:
    """file.write; the raw reply."""
    return run.send("file.write", {"path": path, "data": base64.b64encode(data).decode(), **more})


def test_written_bytes_come_back_and_modes_are_kept(run: NodeRun) -> None:
    assert write(run, "a/b/tool.sh", b"#!/bin/sh\necho hi\n", make_dirs=True, mode=0o750).body["result"]["created"]
    again = write(run, "/workspace/a/b/tool.sh", b"#!/bin/sh\necho ho\n").body["result"]
    assert not again["created"]
    facts = run.op("file.stat", path="a/b/tool.sh")
    assert (facts["kind"], facts["mode"], facts["size"]) == ("file", 0o750, 18)
    assert run.sh("a/b/tool.sh; ls -A a/b")["text"] == "ho\ntool.sh\n"


def test_a_write_against_another_content_is_refused(run: NodeRun) -> None:
    write(run, "f", b"one")
    stale = write(run, "f", b"three", expect_sha256=hashlib.sha256(b"two").hexdigest())
    assert (stale.status, stale.body["code"]) == (412, "path_changed")
    assert write(run, "f", b"two", expect_sha256=hashlib.sha256(b"one").hexdigest()).status == 200


def test_line_windows_count_all_lines_and_reach_every_one(run: NodeRun) -> None:
    run.sh("seq 1 100000 > numbers; printf 'a\\nb' > open")
    window = run.op("file.lines", path="numbers", start=99999, count=10)
    assert base64.b64decode(window["data"]) == b"99999\n100000\n"
    assert (window["first"], window["last"], window["total_lines"]) == (99999, 100000, 100000)
    assert run.op("file.lines", path="open", start=2, count=5)["last"] == 2
    beyond = run.op("file.lines", path="open", start=9, count=5)
    assert (beyond["last"], beyond["total_lines"], beyond["data"]) == (8, 2, "")
    run.sh("head -c 9000000 /dev/zero | tr '\\0' z > wide")
    wide = run.op("file.lines", path="wide", start=1, count=1, max_bytes=1000)
    assert (wide["cut"], len(base64.b64decode(wide["data"])), wide["total_lines"]) == (True, 1000, 1)


def test_search_and_find_tell_what_they_passed_over(run: NodeRun) -> None:
    run.sh("mkdir d; printf 'x\\nneedle here\\n' > d/t.txt; printf 'needle\\0' > d/b.bin; truncate -s 40M d/huge")
    found = run.op("file.search", term="needle", path=".", max_hits=10)
    assert found["hits"] == [{"path": "/workspace/d/t.txt", "line": 2, "text": "needle here"}]
    assert {Path(one["path"]).name for one in found["skipped"]} == {"b.bin", "huge"}
    assert run.op("file.find", pattern="*.txt", path="/workspace")["paths"] == ["/workspace/d/t.txt"]
    assert run.op("file.find", pattern="ug", path=".", max_hits=5)["paths"] == ["/workspace/d/huge"]


@pytest.mark.parametrize(
    ("op", "path", "code"),
    [
        ("file.read", "missing", "no_such_path"),
        ("file.read", ".", "wrong_path_kind"),
        ("file.read", "/dev/null", "wrong_path_kind"),
        ("file.lines", "pipe", "wrong_path_kind"),
        ("file.list", "plain/x", "wrong_path_kind"),
        ("file.stat", "/etc/shadow", "no_such_path"),
        ("file.search", "missing", "no_such_path"),
    ],
)
def test_wrong_paths_have_their_own_refusal(run: NodeRun, op: str, path: str, code: str) -> None:
    run.sh("mkfifo pipe; touch plain")
    reply = run.send(op, {"path": path, "term": "x"})
    assert reply.body["code"] == code
    assert path in str(reply.body["message"])


def test_a_tree_arrives_whole_and_only_once(run: NodeRun) -> None:
    data = tar_of([(member("task", tarfile.DIRTYPE), b""), (member("task/data.bin"), bytes(range(256)) * 400)])
    first = put_tree(run, data)
    assert (first.status, first.body["unpacked"]) == (200, True)
    run.sh("echo changed > task/data.bin")
    assert put_tree(run, data).status == 200
    assert run.sh("cat task/data.bin")["text"] == "changed\n"


def test_a_damaged_tree_is_refused(run: NodeRun) -> None:
    body = {"epoch": 1, "upload_id": "d", "offset": 0, "last": True, "sha256": "0" * 64}
    reply = run.link.request("PUT", f"/v1/runs/{run.name}/tree", body, payload=b"nonsense")
    assert (reply.status, reply.body["code"]) == (400, "bad_request")


@pytest.mark.parametrize(
    "bad",
    [
        member("../out"),
        member("/tmp/out"),
        member("link", tarfile.SYMTYPE, "../../etc"),
        member("link", tarfile.SYMTYPE, "/etc/passwd"),
        member("hard", tarfile.LNKTYPE, "../x"),
        member("device", tarfile.CHRTYPE),
    ],
)
def test_a_tree_that_leads_out_is_refused(run: NodeRun, bad: tarfile.TarInfo) -> None:
    reply = put_tree(run, tar_of([(bad, b"")]))
    assert (reply.status, reply.body["code"]) == (400, "bad_request")


def test_outputs_are_copied_hashed_and_read_in_chunks(run: NodeRun) -> None:
    run.sh("mkdir out; head -c 5000000 /dev/urandom > out/big; echo small > out/small; sha256sum out/big > sum")
    files = run.post("outputs", paths=[{"path": "out/big"}, {"path": "/workspace/out/small", "max_bytes": 6}])["files"]
    run.sh("rm -r out")
    data = b""
    while len(data) < files[0]["size"]:
        path = f"/v1/runs/{run.name}/outputs/0?offset={len(data)}"
        data += run.link.request("GET", path).payload
    assert hashlib.sha256(data).hexdigest() == files[0]["sha256"] == run.sh("cut -c1-64 sum")["text"].strip()
    assert run.link.request("GET", f"/v1/runs/{run.name}/outputs/1?offset=0").payload == b"small\n"


def test_outputs_that_are_no_regular_files_are_refused_by_name(run: NodeRun) -> None:
    run.sh("echo x > real; ln -s real link; mkdir dir; ln -s /etc etc; mkfifo pipe; echo 1234567 > long")
    wanted = ["link", "dir", "etc/passwd", "pipe", "missing", "../../etc/passwd"]
    paths = [{"path": path, "max_bytes": 5} for path in [*wanted, "long", "real"]]
    files = run.post("outputs", paths=paths)["files"]
    codes = [entry.get("code") for entry in files]
    wrong = "wrong_path_kind"
    assert codes == [wrong, wrong, wrong, wrong, "no_such_path", "bad_request", "path_too_large", None]
    assert run.link.request("GET", f"/v1/runs/{run.name}/outputs/6?offset=0").payload == b""
