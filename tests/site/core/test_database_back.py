"""The database was restarted: connections that died while they lay in the pool cost nobody a page."""

from threading import Barrier, Thread

import pytest
from django.db import connection
from django.urls import reverse

MANY = 6


def pooled(many: int) -> list[int]:
    """Fill the pool with `many` connections; returns the process ids of their server sides."""
    found: list[int] = []
    together = Barrier(many)

    def borrow() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            found.append(cursor.fetchone()[0])
        together.wait(timeout=60)
        connection.close()

    threads = [Thread(target=borrow) for _ in range(many)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    return found


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", ["home", "api-boards"])
def test_dead_connections_in_the_pool_cost_nobody_a_page(client, name):
    connection.ensure_connection()  # this thread's own is none of those that die
    pids = pooled(MANY)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(pg_terminate_backend(pid, 5000)) FROM unnest(%s) AS pid", [pids])
        assert cursor.fetchone() == (MANY,)
    for _ in range(MANY + 1):
        connection.close()
        assert client.get(reverse(name)).status_code == 200
