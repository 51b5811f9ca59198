"""Room: portal.core. Django's PostgreSQL backend, lending no dead connection of its pool.

psycopg's pool can try a connection before it lends it (Django: CONN_HEALTH_CHECKS), but after a restart of PostgreSQL
all of them are dead, and it waits 1, 2, 4 ... seconds between one and the next: six cost a request its 30 seconds.
"""

from typing import Any

from django.db.backends.postgresql import base
from psycopg import Error
from psycopg_pool import ConnectionPool

TRIES = 3


class DatabaseWrapper(base.DatabaseWrapper):
    """A borrowed connection is tried; when it is dead, all that lie in the pool are, and the dead ones replaced."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """One that works; after some tries any, whose failure then says what is wrong."""
        connection = super().get_new_connection(conn_params)
        for _ in range(TRIES):
            if self.pool is None or _works(connection):
                break
            self.pool.putconn(connection)
            self.pool.check()
            connection = super().get_new_connection(conn_params)
        return connection


def _works(connection: Any) -> bool:
    try:
        ConnectionPool.check_connection(connection)
    except Error:
        return False
    return True
