"""Room: runs. Puts jobs on the broker, by name and after the commit. A broker that is down loses nothing: the tick
finds every run that is due in the database.
"""

import logging
from functools import partial

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from runs import bell

ADVANCE = "runs.jobs.advance_run_job"
log = logging.getLogger(__name__)


def advance_enqueue(run_id: int) -> None:
    """Have a worker look at the run, once the current transaction stands."""
    transaction.on_commit(partial(_send, run_id))


def _send(run_id: int) -> None:
    try:
        # Celery tries for six seconds before it gives up; a person who submits must not wait for that.
        bell.broker().ping()
        current_app.send_task(ADVANCE, args=[run_id], ignore_result=True, retry=False)
    except (OperationalError, RedisError, OSError) as problem:
        log.warning("run %s was not enqueued (%s); the tick will", run_id, type(problem).__name__)
