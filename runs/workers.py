"""Room: runs. Who this process is, and proof that it lives: an advisory lock on a connection of its own.

PostgreSQL frees the lock milliseconds after a SIGKILL, so the tick needn't wait for claims to expire; they expire all
the same for machines that vanish without closing their connections.
"""

import logging
import os
import secrets
import socket
import threading
from dataclasses import dataclass
from functools import cache
from typing import Any

import psycopg
from django.db import connection

KEEPALIVES = {"keepalives": 1, "keepalives_idle": 5, "keepalives_interval": 5, "keepalives_count": 2}
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Worker:
    """Name for people, number for `pg_advisory_lock`."""

    name: str
    lock: int


@cache
def _drawn(pid: int) -> Worker:
    return Worker(f"{socket.gethostname()[:40]}:{pid}:{secrets.token_hex(4)}", secrets.randbits(62))


def this_worker() -> Worker:
    """This process; a forked child is another worker than its parent."""
    return _drawn(os.getpid())


class LifeLock:
    """Holds the advisory lock of this process on a dedicated idle connection, and takes it again when that broke."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self._guard = threading.Lock()
        self._connection: psycopg.Connection[Any] | None = None

    def ensure(self) -> None:
        """Hold the lock now. Raises psycopg.OperationalError while the database is away."""
        with self._guard:
            if self._connection is not None and self._answers(self._connection):
                return
            self._connection = psycopg.connect(**_parameters(), autocommit=True)
            self._connection.execute("SELECT pg_advisory_lock(%s)", [self.worker.lock])

    def drop(self) -> None:
        """Let go of it: what a SIGKILL does."""
        with self._guard:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    @staticmethod
    def _answers(held: psycopg.Connection[Any]) -> bool:
        try:
            held.execute("SELECT 1")
        except psycopg.Error:
            held.close()
            return False
        return True


def _parameters() -> dict[str, Any]:
    """How Django connects, less its pool and factories: this connection is nobody else's."""
    known = connection.get_connection_params()
    dropped = {
        "pool",
        "cursor_factory",
        "prepare_threshold",
        "context",
        "assume_role",
        "server_side_binding",
        "isolation_level",
    }
    return {name: value for name, value in known.items() if name not in dropped} | KEEPALIVES


def locks_held() -> frozenset[int]:
    """The numbers of all advisory locks held in this database: the workers that live."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks"
            " WHERE locktype = 'advisory' AND objsubid = 1 AND granted"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        return frozenset(row[0] for row in cursor.fetchall())
