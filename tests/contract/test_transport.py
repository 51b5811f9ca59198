"""One contract for everything that speaks the node port: SSH to a real server, gymd without SSH, the node in memory."""

import base64
import hashlib
import io
import shutil
import tarfile
from collections.abc import Iterator

import pytest

from gymnode.errors import NodeUnreachable
from gymnode.transport.base import NodeLink
from gymnode.transport.fake import FakeLink, Scripted
from gymnode.transport.ssh import SshLink
from tests.node.machines import NodeRun, embedded_node, gymd_end, local_link, open_folder, piece_bytes, wait_until

SCRIPT = {
    "true": Scripted(),
    "exit 3": Scripted(exit_code=3),
    "(exit 3)": Scripted(exit_code=3),
    "echo one; echo two": Scripted(b"one\r\ntwo\r\n"),
    "sleep 4; echo late": Scripted(b"late\r\n", seconds=4),
}


@pytest.fixture(scope="module", params=["ssh", "local", "fake"])
def link(request: pytest.FixtureRequest) -> Iterator[NodeLink]:
    """Each implementation of the port."""
    if request.param == "fake":
        yield FakeLink("n1", SCRIPT)
        return
    folder = open_folder()
    if request.param == "local":
        made: NodeLink = local_link(folder)
        yield made
        gymd_end(made)
    else:
        with embedded_node(folder) as door:
            made = SshLink(door.target())
            yield made
            gymd_end(made)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def run(link: NodeLink) -> Iterator[NodeRun]:
    """A run of the test's own."""
    opened = NodeRun(link)
    yield opened
    opened.close()


def test_hello_tells_protocol_and_instance(link: NodeLink) -> None:
    hello = link.request("GET", "/v1/hello")
    assert (hello.status, hello.body["protocol"]) == (200, 1)
    assert hello.body["instance"] == link.request("GET", "/v1/hello").body["instance"]


def test_status_tells_the_machine(link: NodeLink) -> None:
    status = link.request("GET", "/v1/status")
    assert status.status == 200
    assert {"cpu", "load", "gpus"} <= set(status.body)


def test_opening_twice_is_opening_once(run: NodeRun) -> None:
    assert run.post("open") == run.opened
    assert {"level", "workspace", "real_root", "egress_enforced"} <= set(run.opened)


def test_a_run_nobody_opened_is_refused(link: NodeLink) -> None:
    reply = link.request("POST", "/v1/runs/nobody/ops", {"epoch": 1, "action_id": "a.1.0", "op": "session.list"})
    assert (reply.status, reply.body["code"]) == (404, "no_such_run")


def test_an_unknown_path_is_refused(link: NodeLink) -> None:
    assert link.request("GET", "/v2/nothing").status == 404


def test_commands_end_with_their_code_and_output(run: NodeRun) -> None:
    first = run.sh("echo one; echo two")
    second = run.sh("(exit 3)")
    assert (first["text"], first["code"], second["code"]) == ("one\ntwo\n", 0, 3)
    assert second["output"]["start_offset"] == first["output"]["next_offset"] == 10
    assert run.log("main") == b"one\r\ntwo\r\n"


def test_a_long_command_outlasts_the_wait_and_is_told_by_watch(run: NodeRun) -> None:
    cursor = int(str(run.link.request("GET", "/v1/watch?after=0&wait_s=0").body["cursor"]))
    ran = run.sh("sleep 4; echo late", timeout_s=1)
    assert (ran["timed_out"], ran["job"]["state"]) == (True, "running")
    assert run.send("session.run", {"session_id": "main", "command": "true"}).body["code"] == "session_busy"
    ended: list[object] = []

    def job_ended() -> bool:
        reply = run.link.request("GET", f"/v1/watch?after={cursor}&wait_s=1")
        changes = [dict(change) for change in reply.body["changes"]]  # type: ignore[union-attr, arg-type, call-overload]  # JSON
        ended.extend(one for one in changes if one["kind"] == "job_ended" and one["run"] == run.name)
        return bool(ended)

    wait_until(job_ended)
    read = run.op("session.read", session_id="main", since_offset=0, tail_bytes=100)
    assert (read["job"]["state"], piece_bytes(read["output"])) == ("exited", b"late\r\n")


def test_the_same_action_id_gets_the_stored_result(run: NodeRun) -> None:
    """N7: one side effect, whoever carries the action."""
    args = {"session_id": None, "command": "echo one; echo two"}
    first = run.send("session.run", args, action="r.1.0")
    assert run.send("session.run", args, action="r.1.0", resend=True).body == first.body
    assert run.log("main") == b"one\r\ntwo\r\n"


def test_a_resent_action_without_memory_is_unknown(run: NodeRun) -> None:
    reply = run.send("session.run", {"session_id": None, "command": "true"}, action="q.1.0", resend=True)
    assert (reply.status, reply.body["code"]) == (410, "outcome_unknown")


def test_a_former_holder_is_refused(run: NodeRun) -> None:
    run.epoch = 3
    run.post("open")
    run.epoch = 2
    reply = run.send("session.list", {})
    assert (reply.status, reply.body["code"]) == (409, "epoch_too_low")
    run.epoch = 3


def test_sessions_have_names_and_unknown_ones_are_refused(run: NodeRun) -> None:
    made = run.op("session.create", session_id=None, cwd="/workspace", cols=80, rows=24)
    assert made["session"]["id"] == "s1"
    assert run.send("session.create", {"session_id": "s1"}).body["code"] == "session_exists"
    assert run.send("session.read", {"session_id": "s9", "since_offset": 0}).body["code"] == "no_such_session"
    assert run.op("session.close", session_id="s1")["ended"] == []
    assert run.op("session.list")["sessions"] == []


def test_files_are_written_read_and_listed(run: NodeRun) -> None:
    data = base64.b64encode(b"alpha\nbeta\n").decode()
    written = run.op("file.write", path="d/f.txt", data=data, make_dirs=True)
    assert written == {"created": True, "size": 11, "sha256": hashlib.sha256(b"alpha\nbeta\n").hexdigest()}
    window = run.op("file.lines", path="/workspace/d/f.txt", start=2, count=5)
    assert (base64.b64decode(window["data"]), window["total_lines"]) == (b"beta\n", 2)
    assert [entry["name"] for entry in run.op("file.list", path=".")["entries"]] == ["d"]
    assert run.op("file.search", term="bet", path=".")["hits"][0]["line"] == 2
    assert run.send("file.read", {"path": "missing"}).body["code"] == "no_such_path"


def test_a_tree_goes_in_and_outputs_come_out(run: NodeRun) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        info = tarfile.TarInfo("data/in.csv")
        info.size = 4
        archive.addfile(info, io.BytesIO(b"1,2\n"))
    data = buffer.getvalue()
    digest = hashlib.sha256(data).hexdigest()
    body = {"epoch": 1, "upload_id": "u", "offset": 0, "last": True, "sha256": digest}
    assert run.link.request("PUT", f"/v1/runs/{run.name}/tree", body, payload=data).body["unpacked"]
    files = run.post("outputs", paths=[{"path": "data/in.csv"}, {"path": "none"}])["files"]
    assert (files[0]["size"], files[1]["code"]) == (4, "no_such_path")
    assert run.link.request("GET", f"/v1/runs/{run.name}/outputs/0?offset=2").payload == b"2\n"


def test_a_closed_link_is_unreachable() -> None:
    made = FakeLink("gone", SCRIPT)
    made.close()
    with pytest.raises(NodeUnreachable, match="gone"):
        made.request("GET", "/v1/hello")
