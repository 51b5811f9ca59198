"""Room: portal.core. Rules of the keys that go to a model: where a stored one may be sent, and which text a request can
carry. Pure. The vault and the clients both ask here, so that what can be stored can be used.
"""

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

DEFAULT_PORTS = {"https": 443, "http": 80}
_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_-]{1,63})*")
_QUAD = re.compile(r"[0-9]+(\.[0-9]+){3}")
_PLACE = re.compile(r"(?P<host>\[[0-9a-f:.]+\]|[^:\[\]]+)(?::(?P<port>[0-9]{1,5}))?")


@dataclass(frozen=True)
class Place:
    """A host, and a port where it isn't the request's scheme's own (443 for https, 80 for http)."""

    host: str
    port: int | None = None

    def __str__(self) -> str:
        return self.host if self.port is None else f"{self.host}:{self.port}"


def place_read(text: str) -> Place:
    """`host` or `host:port` in one form. Raises ValueError for what is neither."""
    found = _PLACE.fullmatch(text.strip().lower())
    if found is None:
        raise ValueError("no host, and no host and port")
    return Place(_host(found["host"]), _port(found["port"]))


def place_of(url: str) -> Place:
    """The host and port of an http or https address; the scheme's own port is left out. Raises ValueError."""
    parts = urlsplit(url)
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname:
        raise ValueError("no http or https address")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    port = _port(None if parts.port is None else str(parts.port))
    return Place(_host(host), None if port == DEFAULT_PORTS[parts.scheme] else port)


def place_binds(bound: str, url: str) -> bool:
    """Whether a key that was stored for `bound` may be sent to `url`: the same host, and the same port."""
    try:
        stored, asked = place_read(bound), place_of(url)
    except ValueError:
        return False
    own = DEFAULT_PORTS[urlsplit(url).scheme]
    return (stored.host, stored.port or own) == (asked.host, asked.port or own)


def _host(text: str) -> str:
    if text.startswith("["):
        return f"[{ipaddress.IPv6Address(text[1:-1]).compressed}]"
    name = text.removesuffix(".")
    if _QUAD.fullmatch(name):
        return str(ipaddress.IPv4Address(name))
    if not _NAME.fullmatch(name):
        raise ValueError("no host name")
    return name


def _port(text: str | None) -> int | None:
    if text is None:
        return None
    if not 1 <= int(text) <= 65535:
        raise ValueError("no port")
    return int(text)


def unsendable_at(key: str) -> int | None:
    """The place of the first character that keeps a key out of a request's header, None where it can be sent. A header
    carries printable ASCII; blanks at its ends get lost on the way.
    """
    if key != key.strip() or not key:
        return 0 if not key or key[0].isspace() else len(key) - 1
    return next((place for place, character in enumerate(key) if not " " <= character <= "~"), None)
