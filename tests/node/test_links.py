"""The way to a node: pinned keys, breaks, silence, jump hosts; what runs there goes on meanwhile."""

import os
import shutil
import signal
import socket
import struct
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gymnode.errors import HostKeyChanged, HostKeyUnknown, NodeUnreachable
from gymnode.remote.connections import Connection
from gymnode.remote.frames import FrameReader
from gymnode.remote.loop import Loop
from gymnode.transport.ssh import SshHop, SshLink, SshTarget, host_key_read, ssh_doctor
from tests.node.machines import (
    SSHD,
    NodeRun,
    embedded_node,
    gymd_end,
    key_pair,
    local_link,
    open_folder,
    openssh_node,
    wait_until,
)
from tests.node.test_files import member, put_tree, tar_of


@pytest.fixture
def folder() -> Iterator[Path]:
    """An open folder of the test's own."""
    made = open_folder()
    yield made
    shutil.rmtree(made, ignore_errors=True)


def test_work_goes_on_while_nobody_is_connected(folder: Path) -> None:
    with embedded_node(folder) as door:
        link = SshLink(door.target())
        run = NodeRun(link)
        run.sh("sleep 1; touch done; echo finished", wait=False)
        link.close()
        wait_until(Path(run.opened["real_root"], "done").exists)
        run.link = SshLink(door.target())
        wait_until(lambda: run.op("session.idle", session_id="main")["idle"])
        assert run.op("session.status", session_id="main")["job"]["exit_code"] == 0
        assert run.log("main") == b"finished\r\n"
        run.close()
        gymd_end(run.link)


def test_a_broken_link_is_dialled_again_and_the_same_job_goes_on(folder: Path) -> None:
    """N9, node side: the link breaks under a waiting command; same job, same output, one side effect."""
    with embedded_node(folder) as door:
        link = SshLink(door.target())
        run = NodeRun(link)
        threading.Timer(0.7, link.break_link).start()
        ran = run.sh("sleep 2; echo once >> effect; cat effect", timeout_s=20)
        assert (ran["text"], ran["code"]) == ("once\n", 0)
        run.close()
        gymd_end(link)


def test_a_node_that_is_gone_is_unreachable_and_comes_back(folder: Path) -> None:
    """N9, node side: no server any more is NodeUnreachable; when it is back, the same job is found again."""
    with embedded_node(folder) as door:
        link = SshLink(door.target())
        run = NodeRun(link)
        run.sh("sleep 2; echo same", wait=False)
    with pytest.raises(NodeUnreachable, match="n1"):
        link.request("GET", "/v1/hello", timeout_s=3)
    port = door.port
    with (
        openssh_node(folder / "again", port)
        if SSHD and (folder / "again").mkdir() is None
        else embedded_node(folder) as back
    ):
        run.link = SshLink(back.target())
        run.link.target = SshTarget("n1", back.target().hop, python=door.target().python, home=door.target().home)
        run.link = SshLink(run.link.target)
        wait_until(lambda: run.log("main") == b"same\r\n")
        run.close()
        gymd_end(run.link)


def test_a_silent_link_is_noticed_within_two_intervals(folder: Path) -> None:
    """N6: silence (the server is stopped) mid-command: unreachable in time, later the same job, same output."""
    with embedded_node(folder) as door:
        link = SshLink(door.target(), keepalive_s=1)
        run = NodeRun(link)
        run.sh("sleep 3; echo same", wait=False)
        os.kill(door.pid, signal.SIGSTOP)
        began = time.monotonic()
        with pytest.raises(NodeUnreachable):
            link.request("GET", "/v1/hello", timeout_s=4)
        assert time.monotonic() - began < 60
        os.kill(door.pid, signal.SIGCONT)
        wait_until(lambda: run.log("main") == b"same\r\n")
        assert len(run.op("session.list")["sessions"]) == 1
        run.close()
        gymd_end(link)


def test_a_link_that_breaks_while_a_tree_is_unpacked_harms_nobody(folder: Path) -> None:
    """The request is sent again meanwhile: it gets the first one's answer, and another run of the node goes on."""
    link = local_link(folder)
    other, run = NodeRun(link), NodeRun(link)
    other.sh("sleep 500", wait=False)
    pid = link.request("GET", "/v1/hello").body["pid"]
    data = tar_of([(member(f"f{number}"), b"x" * 1000) for number in range(6000)])
    replies: list[Any] = []
    sending = threading.Thread(target=lambda: replies.append(put_tree(run, data, chunk=len(data))))
    sending.start()
    wait_until(Path(run.opened["real_root"], "f1").exists)
    link.break_link()
    sending.join()
    assert (replies[0].body["unpacked"], replies[0].body["members"]) == (True, 6000)
    assert not list((folder / "gymd").glob("*/v1/runs/*/upload-*"))
    assert link.request("GET", "/v1/hello").body["pid"] == pid
    assert other.op("session.list")["sessions"][0]["state"] == "busy"
    gymd_end(link)


def test_a_frame_that_gymd_cannot_digest_ends_only_its_connection(folder: Path) -> None:
    """A header nested deeper than a parser goes: that connection is closed, gymd and its runs go on."""
    link = local_link(folder)
    run = NodeRun(link)
    header = b'{"id": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    with socket.socket(socket.AF_UNIX) as raw:
        raw.connect(str(next((folder / "gymd").glob("*/v1/s"))))
        raw.sendall(struct.pack(">II", len(header), 0) + header)
        assert raw.recv(10) == b""
    assert run.sh("echo on")["text"] == "on\n"
    assert b"RecursionError" in next((folder / "gymd").glob("*/v1/gymd.log")).read_bytes()
    gymd_end(link)


def test_a_request_larger_than_a_frame_is_refused_with_the_limit(folder: Path) -> None:
    """The sender is told, the link stands, and what is under way on it goes on."""
    link = local_link(folder)
    run = NodeRun(link)
    waiting = threading.Thread(target=lambda: run.sh("sleep 2", session=None))
    waiting.start()
    refused = run.send("session.run", {"session_id": None, "command": "\u00e9" * 1_500_000})
    assert (refused.status, refused.body["code"]) == (413, "path_too_large")
    assert "8388608" in str(refused.body["message"])
    waiting.join()
    assert run.sh("echo on")["text"] == "on\n"
    gymd_end(link)


def test_an_answer_larger_than_a_frame_becomes_a_refusal() -> None:
    """The connection stays, and what is answered next arrives."""
    ours, theirs = socket.socketpair()
    connection = Connection(Loop(), theirs, lambda *_: None, lambda _: None)
    connection.answer(7, 200, {"result": "x" * 9_000_000})
    connection.answer(8, 200, {})
    first, second = FrameReader().feed(ours.recv(100_000))
    assert (first.header["id"], first.header["status"], first.header["body"]["code"]) == (7, 413, "path_too_large")
    assert second.header == {"id": 8, "status": 200, "body": {}}
    connection.close()
    ours.close()


def test_unknown_and_changed_host_keys_are_refused_with_the_key(folder: Path) -> None:
    """N8: another host key than the pinned one is refused; nothing is sent."""
    other = key_pair(folder, "other")
    with embedded_node(folder) as door:
        with pytest.raises(HostKeyUnknown) as unknown:
            SshLink(door.target(host_key=None)).request("GET", "/v1/hello")
        assert unknown.value.presented == door.pinned() == host_key_read(door.target())
        wrong = " ".join(Path(f"{other}.pub").read_text().split()[:2])
        with pytest.raises(HostKeyChanged) as changed:
            SshLink(door.target(host_key=wrong)).request("GET", "/v1/hello")
        assert (changed.value.presented, changed.value.expected) == (door.pinned(), wrong)


def test_a_foreign_key_does_not_enter(folder: Path) -> None:
    foreign = key_pair(folder, "foreign").read_text()
    with embedded_node(folder) as door, pytest.raises(NodeUnreachable, match="can't be entered"):
        SshLink(door.target(private_key=foreign)).request("GET", "/v1/hello")


def test_a_jump_host_leads_to_the_node(folder: Path) -> None:
    if not SSHD:
        pytest.skip("no sshd here: install openssh-server")
    (folder / "jump").mkdir()
    with embedded_node(folder) as door, openssh_node(folder / "jump", forwarding=True) as jump:
        hop: SshHop = jump.target().hop
        target = door.target()
        link = SshLink(SshTarget("n1", target.hop, (hop,), python=target.python, home=target.home, root=target.root))
        assert link.request("GET", "/v1/hello").status == 200
        gymd_end(link)


def test_a_link_whose_connection_just_died_is_closed_all_the_same(folder: Path) -> None:
    """What is sent as a farewell fails then; that must not reach the caller, nor leave a hop behind."""
    with embedded_node(folder) as door:
        before = set(threading.enumerate())
        link = SshLink(door.target())
        assert link.request("GET", "/v1/hello").status == 200
        (hop,) = [thread for thread in threading.enumerate() if thread not in before and hasattr(thread, "packetizer")]
        hop.packetizer.close()
        link.break_link()
        wait_until(lambda: not hop.is_alive())
        assert link.request("GET", "/v1/hello").status == 200
        gymd_end(link)


def test_an_unused_gymd_of_another_release_makes_room_and_a_used_one_stays(folder: Path) -> None:
    first = local_link(folder)
    old = first.request("GET", "/v1/hello").body
    run = NodeRun(first)
    code = next((folder / "gymd").glob("gymd-*.pyz"))
    with zipfile.ZipFile(code, "a") as archive:
        archive.writestr("another", "release")
    second = local_link(folder)
    assert second.request("GET", "/v1/hello").body["pid"] == old["pid"]
    run.close()
    first.close()
    second.close()
    third = local_link(folder)
    assert third.request("GET", "/v1/hello").body["pid"] != old["pid"]
    gymd_end(third)


def test_doctor_tells_levels_and_faults_over_ssh(folder: Path) -> None:
    with embedded_node(folder) as door:
        report = ssh_doctor(door.target())
    assert '"levels"' in report
    assert '"faults"' in report
