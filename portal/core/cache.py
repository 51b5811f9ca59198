"""Room: portal.core. The cache: counts of requests and sign-ins. While its server is away, nothing is remembered, and
nobody is kept from the site because of it.
"""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from django.core.cache.backends.redis import RedisCache, RedisCacheClient
from redis.exceptions import RedisError

PATIENCE_S = 0.5
AGAIN_AFTER_S = 2.0
_WAITS = {"socket_timeout": PATIENCE_S, "socket_connect_timeout": PATIENCE_S}
log = logging.getLogger(__name__)


def _outliving(name: str, instead: Callable[..., Any]) -> Callable[..., Any]:
    """The client's method `name`; what `instead` makes of the same arguments while the server doesn't answer."""
    plain = getattr(RedisCacheClient, name)

    def call(self: "OutlivingClient", *args: Any, **named: Any) -> Any:
        if time.monotonic() < self.away_until:
            return instead(*args, **named)
        try:
            return plain(self, *args, **named)
        except (RedisError, OSError) as problem:
            log.warning("the cache does not answer (%s)", type(problem).__name__)
            self.away_until = time.monotonic() + AGAIN_AFTER_S
            return instead(*args, **named)

    return call


class OutlivingClient(RedisCacheClient):
    """Django's client; an outage looks like an empty cache, and is asked about again after two seconds."""

    away_until = 0.0
    add = _outliving("add", lambda *_, **__: True)
    get = _outliving("get", lambda _key, default=None: default)
    set = _outliving("set", lambda *_, **__: None)
    touch = _outliving("touch", lambda *_: False)
    delete = _outliving("delete", lambda *_: False)
    get_many = _outliving("get_many", lambda *_: {})
    has_key = _outliving("has_key", lambda *_: False)
    incr = _outliving("incr", lambda _key, delta=1: delta)
    set_many = _outliving("set_many", lambda *_: None)
    delete_many = _outliving("delete_many", lambda *_: None)
    clear = _outliving("clear", lambda: False)


class OutlivingCache(RedisCache):
    """The backend to name in CACHES."""

    def __init__(self, server: str, params: Mapping[str, Any]) -> None:
        super().__init__(server, {**params, "OPTIONS": {**_WAITS, **params.get("OPTIONS", {})}})
        self._class = OutlivingClient
