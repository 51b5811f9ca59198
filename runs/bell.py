"""Room: runs. The bell: tells web processes that a run has something new. Lossy: the database is the truth.

The bus carries `run seq`, never a body. Text that a model is writing right now goes over a channel of its own.
"""

import json
import logging
from functools import cache

import redis
from django.conf import settings
from django.db import transaction

CHANNEL = "ib:bell"
DELTAS = "ib:delta"
TERMINALS = "ib:terminal"
log = logging.getLogger(__name__)


@cache
def broker() -> redis.Redis:
    """This process's connection pool to Redis; short time-outs, because nothing here may hold a run up."""
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=2.0, socket_connect_timeout=1.0)


def ring(run_id: int, seq: int) -> None:
    """Tell whoever listens that `run_id` has events up to `seq`, once the transaction stands. Never raises."""
    transaction.on_commit(lambda: publish(CHANNEL, f"{run_id} {seq}"))


def ring_terminal(run_id: int, session: str) -> None:
    """Tell whoever listens that a session of the run has new bytes. Never raises."""
    transaction.on_commit(lambda: publish(TERMINALS, f"{run_id} {session}"))


def delta(run_id: int, text: str) -> None:
    """Send a piece of a thought that is being written. Never raises."""
    publish(DELTAS, json.dumps([run_id, text]))


def publish(channel: str, message: str) -> None:
    """One PUBLISH; a broker that is down costs a line in the log and nothing else."""
    try:
        broker().publish(channel, message)
    except redis.RedisError as problem:
        log.warning("the bell did not ring: %s", type(problem).__name__)
