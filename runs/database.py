"""Room: runs. Gives this thread's database connection back before a long wait: no connection is held while a model
thinks or a node works.
"""

from django.db import connection


def connection_give_back() -> None:
    """Return the connection to the pool, unless a transaction is open on it."""
    if not connection.in_atomic_block:
        connection.close()
