"""Room: runs.agent. The address policy towards providers, checked at connect time, and the HTTP client that obeys it.

A config is a stranger's text, so its `base_url` may point anywhere: at the cloud's metadata service, at a database,
at the portal itself. The name is resolved here, the addresses are judged, and the connection goes to the judged
address, so that no second look-up can give another one. Proxies of the environment and redirects are not followed,
for the same reason.
"""

import ipaddress
import socket
import ssl
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import httpcore2
import httpx2

from portal.core.keyrules import place_binds, place_of, unsendable_at
from runs.agent.addresses import redirect_goal
from runs.agent.protocols import AddressRefused, WrongKey

CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 300.0
REPLY_TIMEOUT_S = 1800.0
KEY_HEADERS = frozenset({"authorization", "x-api-key"})
HEADERS = KEY_HEADERS | {
    *("host", "accept", "accept-encoding", "connection", "content-type", "content-length", "transfer-encoding"),
    *("user-agent", "anthropic-version", "x-client-request-id"),
}
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_REFUSED_V6 = [ipaddress.ip_network(net) for net in ("64:ff9b:1::/48", "2001::/32", "2002::/16", "fec0::/10", "::/96")]
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True)
class BoundSecret:
    """A key and the host, or host and port, that it was stored for. Prints dots."""

    value: str = field(repr=False)
    host: str

    def for_url(self, url: str) -> str:
        """The key, for an address at its own host and port only. Raises `WrongKey`; also for a key that no request
        can carry, which would fail like a broken connection, again and again.
        """
        if not place_binds(self.host, url):
            place = place_of(url)
            raise WrongKey(
                f"the secret is bound to {self.host}, this config would send it to {place}; store a secret for {place}",
                "secret_bound_elsewhere",
            )
        if unsendable_at(self.value) is not None:
            raise WrongKey("the secret holds a character that no request's header can carry; store the key again")
        return self.value


def is_public(address: Address) -> bool:
    """Whether an address is a public unicast one. IPv4 inside IPv6 is judged as what it leads to."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
        if address in _NAT64:
            return is_public(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        if any(address in net for net in _REFUSED_V6):
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def judged_addresses(host: str, port: int, allowed: Collection[str]) -> list[str]:
    """The addresses of a host that may be connected to. Raises `AddressRefused` when there is none, OSError when it
    has none.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    numbers = list(dict.fromkeys(str(info[4][0]).partition("%")[0] for info in found))
    if f"{host.lower()}:{port}" in {entry.lower() for entry in allowed}:
        return numbers
    public = [number for number in numbers if is_public(ipaddress.ip_address(number))]
    if not public:
        raise AddressRefused(
            f"{host}:{port} is not a public address, and model endpoints inside the site's network are refused; "
            f"an operator can allow it by adding {host}:{port} to MODEL_ALLOWED_HOSTS"
        )
    return public


_until: ContextVar[float | None] = ContextVar("reply_until", default=None)


@contextmanager
def reply_within(seconds: float) -> Iterator[None]:
    """Every read below ends by then with a time-out: a server that sends a comment each second is never silent, and
    would keep a worker for as long as it likes.
    """
    mark = _until.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _until.reset(mark)


class BoundedStream(httpcore2.NetworkStream):
    """A connection whose reads keep to `reply_within`."""

    def __init__(self, inner: httpcore2.NetworkStream) -> None:
        self.inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """At most `max_bytes`. Raises httpcore2's errors."""
        until = _until.get()
        if until is not None:
            left = until - time.monotonic()
            if left <= 0:
                raise httpcore2.ReadTimeout("the reply as a whole takes too long")
            timeout = left if timeout is None else min(timeout, left)
        return self.inner.read(max_bytes, timeout)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """All of it."""
        self.inner.write(buffer, timeout)

    def close(self) -> None:
        """Hang up."""
        self.inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        """The same connection, encrypted."""
        return BoundedStream(self.inner.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        """What the connection below says of itself."""
        return self.inner.get_extra_info(info)


class GuardedBackend(httpcore2.NetworkBackend):
    """Opens TCP connections to judged addresses only."""

    def __init__(self, allowed: Collection[str]) -> None:
        self.allowed = frozenset(allowed)
        self.inner = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        """Connect to the first address that answers. Raises httpcore2's errors and `AddressRefused`."""
        try:
            addresses = judged_addresses(host, port, self.allowed)
        except UnicodeError as error:
            raise AddressRefused(f"{host} is no host name; correct `model.base_url`", "address_broken") from error
        except OSError as error:
            raise httpcore2.ConnectError(f"the name {host} can't be resolved: {error}") from error
        failure: Exception = httpcore2.ConnectError(f"{host} has no address")
        for address in addresses:
            try:
                return BoundedStream(self.inner.connect_tcp(address, port, timeout, local_address, socket_options))
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure

    def connect_unix_socket(self, path: str, timeout: float | None = None, socket_options: Any = None) -> Any:
        """Never: a model isn't reached through a file."""
        raise AddressRefused("model endpoints are reached over TCP only")


@cache
def _ssl_context() -> ssl.SSLContext:
    """One per process: loading the certificates costs 20 ms."""
    return httpx2.create_ssl_context()


def redirect_refused(url: str, status: int, location: str) -> AddressRefused:
    """The refusal of a redirect, with the address that should stand in the config."""
    goal = redirect_goal(url, location)
    told = f"redirects to {goal} ({status})" if goal else f"redirects ({status})"
    message = f"the endpoint {told}, and redirects are refused; put the final address into `model.base_url`"
    return AddressRefused(message, "address_moved", goal=goal)


class GuardedTransport(httpx2.HTTPTransport):
    """httpx2's transport over a pool that connects through `GuardedBackend`."""

    def __init__(self, allowed: Collection[str], *, with_key: bool) -> None:
        super().__init__(verify=_ssl_context(), trust_env=False)
        self._names = HEADERS if with_key else HEADERS - KEY_HEADERS
        # The constructor has no parameter for the network backend; the pool is the only place where one can be given.
        self._pool = httpcore2.ConnectionPool(ssl_context=_ssl_context(), network_backend=GuardedBackend(allowed))

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send the request with the headers that it needs. The SDKs add more from the environment of the process (the
        operator's organisation, project, custom headers), which are none of a stranger's endpoint's business."""
        for name in list(request.headers):
            if name.lower() not in self._names and not name.lower().startswith("x-stainless-"):
                del request.headers[name]
        response = super().handle_request(request)
        location = response.headers.get("location", "")
        if 300 <= response.status_code < 400 and location:
            response.close()
            raise redirect_refused(str(request.url), response.status_code, location)
        return response


def guarded_client(
    allowed: Collection[str], *, with_key: bool = True, read_timeout_s: float = READ_TIMEOUT_S
) -> httpx2.Client:
    """An HTTP client for SDKs: address policy, nothing of the environment, no redirects. Without a key of the config's
    owner no key is sent at all."""
    timeout = httpx2.Timeout(read_timeout_s, connect=CONNECT_TIMEOUT_S, write=60.0, pool=60.0)
    return httpx2.Client(
        transport=GuardedTransport(allowed, with_key=with_key), trust_env=False, follow_redirects=False, timeout=timeout
    )


def refusal_in(error: BaseException | None) -> AddressRefused | None:
    """The policy's refusal that an SDK wrapped into an error of its own."""
    while error is not None:
        if isinstance(error, AddressRefused):
            return error
        error = error.__cause__ or error.__context__
    return None
