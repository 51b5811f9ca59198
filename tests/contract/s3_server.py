"""A private S3 server for one test session: SeaweedFS on free loopback ports, with a key of its own."""

import json
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

WEED = Path(sys.executable).parent / "weed"
PORTS = (
    "master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc", "s3.port",
    "s3.port.grpc",
)  # fmt: skip


@dataclass(frozen=True)
class S3Server:
    """Where it listens and who may come in."""

    endpoint: str
    access_key: str
    secret_key: str


@contextmanager
def s3_server(folder: Path) -> Iterator[S3Server]:
    """Run a server with its data below `folder` for as long as the block lasts."""
    ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
    server = S3Server(f"http://127.0.0.1:{ports['s3.port']}", "suite", secrets.token_hex(16))
    config = folder / "s3.json"
    config.write_text(json.dumps({"identities": [_identity(server)]}))
    command = [str(WEED), "-logtostderr", "server", "-s3", "-filer", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"]
    command += [f"-dir={folder}", "-volume.max=8", "-master.volumeSizeLimitMB=64", f"-s3.config={config}"]
    command += ["-s3.port.iceberg=0", "-s3.port.lance=0", f"-filer.localSocket={folder}/filer.sock"]
    command += [f"-s3.localSocket={folder}/s3.sock", *(f"-{name}={port}" for name, port in ports.items())]
    with (folder / "weed.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=folder)
    try:
        _wait(server.endpoint, process, folder / "weed.log")
        yield server
    finally:
        process.kill()
        process.wait()


def free_ports(count: int) -> list[int]:
    """Distinct ports that nothing listens on at the moment."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def _identity(server: S3Server) -> dict[str, object]:
    key = {"accessKey": server.access_key, "secretKey": server.secret_key}
    return {"name": "suite", "credentials": [key], "actions": ["Admin", "Read", "Write", "List", "Tagging"]}


def _wait(endpoint: str, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        assert process.poll() is None, log.read_text()[-2000:]
        try:
            urllib.request.urlopen(f"{endpoint}/status", timeout=1)
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError(log.read_text()[-2000:])
