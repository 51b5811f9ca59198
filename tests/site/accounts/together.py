"""Several people do something in the same moment."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connection, transaction


def at_once(*deeds: Callable[[], Any]) -> list[Any]:
    """The results of `deeds`, each in a thread of its own, all started together."""
    ready = threading.Barrier(len(deeds))

    def do(deed: Callable[[], Any]) -> Any:
        ready.wait(30)
        try:
            return deed()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(deeds)) as pool:
        return [each.result() for each in [pool.submit(do, deed) for deed in deeds]]


def overtaken(first: Callable[[], Any], second: Callable[[], Any]) -> Any:
    """The result of `second`, which began before `first` was committed, and went on, if it had to wait, after it."""

    def do() -> Any:
        try:
            return second()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        first()
        late = pool.submit(do)
        with connection.cursor() as cursor:
            waits = False
            while not (waits or late.done()):
                time.sleep(0.02)
                cursor.execute("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")
                (waits,) = cursor.fetchone()
    return late.result()
