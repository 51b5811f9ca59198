"""Room: portal.api. A request that carries an `Idempotency-Key` acts once and is answered the same every time."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from django.db import transaction
from django.utils.translation import gettext_lazy as _
from rest_framework.request import Request

from portal.api.scopes import user_of
from portal.core.errors import FieldFault
from portal.core.idempotency import StoredAnswer, idempotency_claim, idempotency_store

HEADER = "Idempotency-Key"
MOST = 200


def answered_once(request: Request, wanted: Mapping[str, Any], act: Callable[[], dict[str, Any]]) -> StoredAnswer:
    """The answer of `act` (status 201), or what the first request with this key and body got.

    Whether the person may act is asked before, each time: an answer is told again only to whoever still may.

    Raises IdempotencyKeyReused (409) when the key came with another body, FieldFault for a key that is too long, and
    whatever `act` raises: then nothing is kept, and the key is free again.
    """
    key = request.headers.get(HEADER, "")
    if len(key) > MOST:
        message = str(_("at most {most} characters, not {given}")).format(most=MOST, given=len(key))
        raise FieldFault(field=HEADER, message=message)
    if not key:
        return StoredAnswer(status=201, body=act())
    plain = json.dumps(wanted, sort_keys=True, default=str)
    asked = f"{request.method} {request.path}\n{plain}".encode()
    with transaction.atomic():
        stored = idempotency_claim(user=user_of(request), key=key, request=asked)
        if stored is None:
            stored = StoredAnswer(status=201, body=act())
            idempotency_store(user=user_of(request), key=key, answer=stored)
    return stored
