"""What the tests of this folder run against: the embedded node, OpenSSH's sshd, or gymd without SSH."""

import base64
import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from gymnode.transport.base import NodeLink
from gymnode.transport.local import LocalLink
from gymnode.transport.ssh import SshHop, SshTarget

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin") or ""


def open_folder() -> Path:
    """A folder that other users can pass through, which a temporary folder of pytest is not."""
    folder = Path(mkdtemp(prefix="gym-", dir="/tmp"))
    folder.chmod(0o711)
    return folder


def key_pair(folder: Path, name: str) -> Path:
    """An Ed25519 pair; the private key's path."""
    path = folder / name
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return path


class Door:
    """An SSH server on a free port with its keys; `target()` is how to reach it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.host_key = key_pair(folder, "host")
        self.client_key = key_pair(folder, "client")
        self.authorized = folder / "authorized"
        shutil.copy(f"{self.client_key}.pub", self.authorized)
        self.authorized.chmod(0o600)
        self.port = 0
        self.pid = 0

    def pinned(self) -> str:
        """The host's public key as it is pinned."""
        return " ".join(Path(f"{self.host_key}.pub").read_text().split()[:2])

    def target(self, **changes: Any) -> SshTarget:
        """The node behind the door; `changes` replace fields of its hop."""
        facts: dict[str, Any] = {
            "host": "127.0.0.1",
            "port": self.port,
            "user": pwd.getpwuid(os.getuid()).pw_name,
            "private_key": self.client_key.read_text(),
            "host_key": self.pinned(),
        }
        home, root = self.folder / "gymd", self.folder / "runs"
        return SshTarget("n1", SshHop(**{**facts, **changes}), python=node_python(), home=str(home), root=str(root))


def node_python() -> str:
    """An interpreter that users of runs can reach; the system's when this one lies in a closed folder."""
    closed = any(not parent.stat().st_mode & 0o001 for parent in Path(sys.executable).resolve().parents)
    return "/usr/bin/python3" if closed and Path("/usr/bin/python3").exists() else sys.executable


@contextlib.contextmanager
def embedded_node(folder: Path) -> Iterator[Door]:
    """`python -m gymnode.localnode` as the embedded stack starts it."""
    door = Door(folder)
    command = [sys.executable, "-m", "gymnode.localnode", "--port", "0", "--root", str(folder / "node")]
    command += ["--host-key", str(door.host_key), "--authorized-keys", str(door.authorized)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        door.port = int(server.stdout.readline().rsplit(":", 1)[1])
        door.pid = server.pid
        try:
            yield door
        finally:
            server.terminate()


@contextlib.contextmanager
def openssh_node(folder: Path, port: int = 0, *, forwarding: bool = False) -> Iterator[Door]:
    """OpenSSH's sshd, private to the test: keys only, forwarding as on a strict node unless it is to be a jump host."""
    door = Door(folder)
    door.port = port or free_port()
    config = sshd_config(folder, door, forwarding=forwarding)
    with (
        (folder / "sshd.log").open("wb") as log,
        subprocess.Popen([SSHD, "-D", "-e", "-f", config], stderr=log) as server,
    ):
        try:
            wait_for_port(door.port)
            yield door
        finally:
            server.terminate()


def sshd_config(folder: Path, door: Door, *, forwarding: bool) -> Path:
    """Write the server's configuration, and the folder that sshd wants as root."""
    lines = (
        f"Port {door.port}",
        "ListenAddress 127.0.0.1",
        f"HostKey {door.host_key}",
        f"AuthorizedKeysFile {door.authorized}",
        "PidFile none",
        "StrictModes no",
        "UsePAM no",
        "PermitRootLogin yes",
        "PasswordAuthentication no",
        f"AllowTcpForwarding {'yes' if forwarding else 'no'}",
    )
    config = folder / "sshd_config"
    config.write_text("\n".join(lines) + "\n")
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    return config


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for_port(port: int) -> None:
    """Return when somebody listens there."""
    for _try in range(200):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.02)
    raise AssertionError(f"nobody listens on {port}")


def local_link(folder: Path, python: str | None = None) -> LocalLink:
    """gymd without SSH, all of it below `folder`."""
    return LocalLink("n1", home=folder / "gymd", root=folder / "runs", python=python or node_python())


def skip_unless_offered(link: NodeLink, level: str) -> None:
    """Skip the test where the node behind `link` hasn't this isolation level, with the reason that it gives."""
    hello: Any = link.request("GET", "/v1/hello").body
    reasons = {each["name"]: each["reason"] for each in hello["levels"] if not each["available"]}
    if level in reasons:
        pytest.skip(f"{level}: {reasons[level]}")


def gymd_end(link: NodeLink) -> None:
    """Stop the gymd behind a link, by the process id it tells."""
    with contextlib.suppress(Exception):
        os.kill(int(str(link.request("GET", "/v1/hello").body["pid"])), signal.SIGTERM)
    link.close()


class NodeRun:
    """One run on one node, as the engine drives it; `epoch` and action ids are counted here."""

    def __init__(self, link: NodeLink, *, level: str = "best", **wants: Any) -> None:
        self.link = link
        self.name = f"run-{uuid.uuid4().hex[:8]}"
        self.epoch = 1
        self.steps = 0
        allow = {"allow_plain": True} if level == "plain" else {}
        self.opened = self.post("open", level=level, **allow, **wants)

    def post(self, verb: str, **body: Any) -> dict[str, Any]:
        """POST to the run; the reply must be a success."""
        reply = self.link.request("POST", f"/v1/runs/{self.name}/{verb}", {"epoch": self.epoch, **body})
        assert reply.status == 200, reply.body
        return dict(reply.body)

    def send(self, op: str, args: dict[str, Any], *, action: str = "", resend: bool = False) -> Any:
        """One operation; the raw reply."""
        self.steps += 1
        body = {
            "epoch": self.epoch,
            "action_id": action or f"{self.name}.{self.steps}.0",
            "op": op,
            "args": args,
            "resend": resend,
        }
        return self.link.request("POST", f"/v1/runs/{self.name}/ops", body, timeout_s=60)

    def op(self, op: str, **args: Any) -> dict[str, Any]:
        """One operation that must succeed; its result."""
        reply = self.send(op, args)
        assert reply.status == 200, reply.body
        return dict(reply.body["result"])

    def sh(
        self, command: str, *, session: str | None = None, wait: bool = True, timeout_s: float = 30
    ) -> dict[str, Any]:
        """Run a command; `text` is its output without carriage returns."""
        ran = self.op("session.run", session_id=session, command=command, wait=wait, timeout_s=timeout_s)
        ran["text"] = piece_bytes(ran["output"]).replace(b"\r\n", b"\n").decode("utf-8", "replace")
        ran["code"] = ran["job"]["exit_code"]
        return ran

    def log(self, session: str) -> bytes:
        """The whole log of a session, read in chunks."""
        out = b""
        while True:
            path = f"/v1/runs/{self.name}/sessions/{session}/log?offset={len(out)}&limit=1000000"
            reply = self.link.request("GET", path)
            assert reply.status == 200, reply.body
            out += reply.payload
            if len(out) >= int(str(reply.body["total"])):
                return out

    def close(self) -> dict[str, Any]:
        """End the run, leaving nothing."""
        return self.post("close", remove=True)


def piece_bytes(piece: dict[str, Any]) -> bytes:
    """Head and tail of a piece together."""
    return base64.b64decode(piece["head"]) + base64.b64decode(piece["tail"])


def command_lines() -> bytes:
    """Of every process of the machine: also of what other tests run just now, so look for a mark of one's own."""
    found = b""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has just ended
            found += path.read_bytes()
    return found


def wait_until(fact: Any, seconds: float = 60.0) -> None:
    """Return when `fact()` is true; fail when it isn't in time."""
    until = time.monotonic() + seconds
    while not fact():
        assert time.monotonic() < until, f"not within {seconds} s"
        time.sleep(0.02)
