"""Room: portal.core. `Idempotency-Key`: the same request sent twice acts once and is answered the same twice."""

import hashlib
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from portal.core.errors import Conflict
from portal.core.models import IdempotencyKey

KEPT = timedelta(days=7)


class IdempotencyKeyReused(Conflict):
    """The key came before with another request."""

    code = "idempotency_key_reused"
    template = _("The Idempotency-Key {key} was used for another request; a new request needs a new key.")


@dataclass(frozen=True)
class StoredAnswer:
    """What the first request got."""

    status: int
    body: Any


def idempotency_claim(*, user: AbstractBaseUser, key: str, request: bytes) -> StoredAnswer | None:
    """None: act, then `idempotency_store`, in this same transaction. Otherwise the answer of the first request.

    `request` is what makes two requests the same: method, path and body. Must be called inside `transaction.atomic`:
    a second request with the key then waits for the first to commit or roll back. Raises IdempotencyKeyReused.
    """
    digest = hashlib.sha256(request).hexdigest()
    try:
        with transaction.atomic():
            IdempotencyKey.objects.create(user_id=user.pk, key=key, request_sha256=digest)
    except IntegrityError:
        row = IdempotencyKey.objects.get(user_id=user.pk, key=key)
        if row.request_sha256 != digest or row.status is None:
            raise IdempotencyKeyReused(key=key) from None
        return StoredAnswer(status=row.status, body=row.body)
    return None


def idempotency_store(*, user: AbstractBaseUser, key: str, answer: StoredAnswer) -> None:
    """Keep the answer for whoever sends the request again."""
    IdempotencyKey.objects.filter(user_id=user.pk, key=key).update(status=answer.status, body=answer.body)


def idempotency_prune() -> int:
    """Forget keys older than a week; returns how many."""
    deleted, _by_model = IdempotencyKey.objects.filter(created_at__lt=timezone.now() - KEPT).delete()
    return deleted
