"""Room: runs. News for higher rooms: written in the transaction that made it true, delivered by a job, at least once.

Handlers are registered by the composition root and must bear being called twice.
"""

import logging
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from runs.models.log import OutboxMessage

Handler = Callable[[Mapping[str, Any]], None]
BATCH = 100
LONGEST_DELAY_S = 300
log = logging.getLogger(__name__)
_handlers: dict[str, list[Handler]] = {}


def register(topic: str, handler: Handler) -> None:
    """Have `handler(body)` called for every message of `topic`; registering it again changes nothing."""
    known = _handlers.setdefault(topic, [])
    if handler not in known:
        known.append(handler)


def outbox_put(topic: str, body: Mapping[str, Any]) -> None:
    """Write a message in the caller's transaction."""
    OutboxMessage.objects.create(topic=topic, body=dict(body), due_at=timezone.now())


def outbox_deliver() -> int:
    """Deliver what is due, oldest first; returns how many went out. Several processes may do this at once."""
    done = 0
    while done < BATCH and _deliver_one():
        done += 1
    return done


def _deliver_one() -> bool:
    with transaction.atomic():
        due = OutboxMessage.objects.select_for_update(skip_locked=True).filter(due_at__lte=timezone.now())
        message = due.order_by("id").first()
        if message is None:
            return False
        problem = _handled(message)
        if problem is None:
            message.delete()
        else:
            message.tries += 1
            message.error = problem[:200]
            message.due_at = timezone.now() + timedelta(seconds=min(LONGEST_DELAY_S, 2**message.tries))
            message.save(update_fields=["tries", "error", "due_at"])
    return True


def _handled(message: OutboxMessage) -> str | None:
    """None, or the type of what a handler raised: one bad handler neither loses the message nor stops the others."""
    try:
        with transaction.atomic():
            for handler in _handlers.get(message.topic, ()):
                handler(message.body)
    except Exception as problem:
        log.exception("outbox message %s (%s) was not taken", message.pk, message.topic)
        return type(problem).__name__
    return None
