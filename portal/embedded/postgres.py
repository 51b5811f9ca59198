"""A real PostgreSQL from a wheel, private to one instance: no TCP port, a socket in a short runtime folder.

Only the wheel's binaries are used: its own server helper takes a lock file in the shared temporary folder and, as
root, opens parent folders to the world.
"""

import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from portal.embedded.reach import POSTGRES_UID, folder, postgres_bin
from portal.embedded.supervisor import Program

STARTS_WITHIN_S = 20.0


@dataclass(frozen=True)
class Postgres:
    """One cluster in `data`, its socket in `runtime`; `home` holds the mirrored binaries when run as root."""

    home: Path
    data: Path
    runtime: Path

    @property
    def url(self) -> str:
        return f"postgresql://portal@/portal?host={self.runtime}"

    def prepare(self) -> None:
        """Make the cluster unless it is there. A half-made one (no PG_VERSION) is made again from nothing."""
        folder(self.runtime)
        if (self.data / "PG_VERSION").exists():
            return
        shutil.rmtree(self.data, ignore_errors=True)
        folder(self.data, 0o700)
        self._own(self.runtime, POSTGRES_UID)
        self._own(self.data, pwd.getpwnam("nobody").pw_uid)
        command = [str(postgres_bin(self.home) / "initdb"), "-D", str(self.data), "-U", "portal", "-A", "trust"]
        done = subprocess.run(
            [*command, "-E", "UTF8", "--locale=C", "--no-sync"],
            capture_output=True,
            text=True,
            check=False,
            **self._user(maker=True),
        )
        if done.returncode != 0:
            shutil.rmtree(self.data, ignore_errors=True)
            raise RuntimeError(f"initdb could not make the database in {self.data}: {done.stderr.strip()[-500:]}")
        for path in (self.data, *self.data.rglob("*")):
            self._own(path, POSTGRES_UID)

    def command(self) -> list[str]:
        """What the supervisor runs in the foreground."""
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.runtime),
            "unix_socket_permissions": "0777",
            "max_connections": "300",
            "shared_buffers": "64MB",
            "fsync": "on",
            "synchronous_commit": "on",
            "timezone": "UTC",
            "log_timezone": "UTC",
            "log_min_messages": "warning",
        }
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        return [str(postgres_bin(self.home) / "postgres"), "-D", str(self.data), *options]

    def start(self, log: Path) -> subprocess.Popen[bytes]:
        """Start the server and wait until it answers; the database `portal` exists afterwards.

        Raises RuntimeError with the end of the log when it doesn't answer in 20 s.
        """
        self.prepare()
        with log.open("ab") as out:
            process = subprocess.Popen(self.command(), stdout=out, stderr=out, start_new_session=True, **self._user())
        self.wait(process, log)
        return process

    def wait(self, process: subprocess.Popen[bytes], log: Path) -> None:
        """Block until the server takes connections (after a kill it first replays its log)."""
        deadline = time.monotonic() + STARTS_WITHIN_S
        while True:
            try:
                with psycopg.connect(dbname="postgres", user="portal", host=str(self.runtime), autocommit=True) as link:
                    if not link.execute("SELECT 1 FROM pg_database WHERE datname = 'portal'").fetchone():
                        link.execute("CREATE DATABASE portal")
                    return
            except psycopg.OperationalError as error:
                if process.poll() is not None or time.monotonic() > deadline:
                    tail = log.read_text(errors="replace")[-800:] if log.exists() else ""
                    raise RuntimeError(
                        f"PostgreSQL in {self.data} does not answer ({error}). Its log ends: {tail}"
                    ) from error
                time.sleep(0.05)

    def program(self, env: Mapping[str, str], log: Path) -> Program:
        """The server as something to keep running; after a kill it replays its log before it is ready."""
        uid = POSTGRES_UID if os.geteuid() == 0 else None
        return Program(
            "postgres",
            tuple(self.command()),
            env,
            self.data.parent,
            ready=lambda process: self.wait(process, log),
            stop_signal=signal.SIGINT,
            uid=uid,
        )

    @staticmethod
    def stop(process: subprocess.Popen[bytes]) -> None:
        """Fast shutdown: connections are cut, everything committed is kept."""
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    @staticmethod
    def _user(*, maker: bool = False) -> dict[str, Any]:
        # PostgreSQL refuses to run as root. The server is content with a number; initdb wants one that has a name.
        if os.geteuid() != 0:
            return {}
        uid = pwd.getpwnam("nobody").pw_uid if maker else POSTGRES_UID
        return {"user": uid, "group": uid, "extra_groups": []}

    @staticmethod
    def _own(path: Path, uid: int) -> None:
        if os.geteuid() == 0:
            os.chown(path, uid, uid, follow_symlinks=False)
