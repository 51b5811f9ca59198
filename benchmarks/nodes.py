"""A node on loopback for benchmarks: OpenSSH's sshd where there is one, else the embedded node."""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import JsonValue

from gymnode.transport.base import NodeLink
from gymnode.transport.ssh import SshHop, SshLink, SshTarget

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin")


@contextlib.contextmanager
def loopback_node() -> Iterator[tuple[SshLink, SshTarget]]:
    """A link to a fresh gymd over SSH on loopback, and how it was reached; both end with the block."""
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir="/tmp"))
    folder.chmod(0o711)
    for name in ("host", "client"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    shutil.copy(folder / "client.pub", folder / "authorized")
    server, port = _server_start(folder)
    try:
        key = " ".join((folder / "host.pub").read_text().split()[:2])
        user = pwd.getpwuid(os.getuid()).pw_name
        hop = SshHop("127.0.0.1", port, user, (folder / "client").read_text(), key)
        target = SshTarget("bench", hop, python=_python(), home=str(folder / "gymd"), root=str(folder / "runs"))
        link = SshLink(target)
        gymd = int(str(link.request("GET", "/v1/hello").body["pid"]))
        try:
            yield link, target
        finally:
            os.kill(gymd, signal.SIGTERM)
            link.close()
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _python() -> str:
    closed = any(not parent.stat().st_mode & 0o001 for parent in Path(sys.executable).resolve().parents)
    return "/usr/bin/python3" if closed and Path("/usr/bin/python3").exists() else sys.executable


def _server_start(folder: Path) -> tuple[subprocess.Popen[str], int]:
    if SSHD is None:
        command = [sys.executable, "-m", "gymnode.localnode", "--root", str(folder / "node")]
        command += ["--host-key", str(folder / "host"), "--authorized-keys", str(folder / "authorized")]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        return server, int(server.stdout.readline().rsplit(":", 1)[1])
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    lines = [f"Port {port}", "ListenAddress 127.0.0.1", f"HostKey {folder}/host", "PidFile none", "StrictModes no"]
    lines += [f"AuthorizedKeysFile {folder}/authorized", "UsePAM no", "PermitRootLogin yes", "AllowTcpForwarding no"]
    (folder / "sshd_config").write_text("\n".join(lines) + "\n")
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    server = subprocess.Popen([SSHD, "-D", "-f", str(folder / "sshd_config")], text=True)
    _wait_for(port)
    return server, port


def _wait_for(port: int) -> None:
    for _try in range(250):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.02)
    raise RuntimeError(f"sshd doesn't listen on {port}")


class BenchRun:
    """One run; `op` is one action."""

    def __init__(self, link: NodeLink, name: str) -> None:
        self._link, self._name, self._steps = link, name, 0
        self._post("open", {"level": "best"})

    def op(self, op: str, **args: JsonValue) -> Mapping[str, JsonValue]:
        """One operation that must succeed."""
        self._steps += 1
        body: dict[str, JsonValue] = {"action_id": f"{self._name}.{self._steps}.0", "op": op, "args": args}
        result = self._post("ops", body)["result"]
        assert isinstance(result, dict)
        return result

    def close(self) -> None:
        """End the run, leaving nothing."""
        self._post("close", {"remove": True})

    def _post(self, verb: str, body: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
        reply = self._link.request("POST", f"/v1/runs/{self._name}/{verb}", {"epoch": 1, **body}, timeout_s=120)
        assert reply.status == 200, reply.body
        return reply.body
