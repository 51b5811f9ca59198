"""Room: runs.agent. Where a model is and how it is reached: values only."""

from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import urlsplit

from runs.agent.llm.network import READ_TIMEOUT_S, REPLY_TIMEOUT_S, BoundSecret

OPENAI_URL = "https://api.openai.com/v1"
ANTHROPIC_URL = "https://api.anthropic.com"


@dataclass(frozen=True)
class Endpoint:
    """An address, its key and what may be connected to. `allowed`: the operator's `host:port` entries beside public
    ones.

    No read may be silent for longer than `read_timeout_s`, and no reply last longer than `reply_timeout_s`, whatever
    trickles in meanwhile. `client_id` is sent as `X-Client-Request-Id` (the run, for support requests and for the
    scripted model's faults).
    """

    base_url: str
    secret: BoundSecret | None = None
    allowed: Collection[str] = ()
    client_id: str = ""
    read_timeout_s: float = READ_TIMEOUT_S
    reply_timeout_s: float = REPLY_TIMEOUT_S

    @property
    def host(self) -> str:
        """The host's name."""
        return urlsplit(self.base_url).hostname or ""

    @property
    def port(self) -> int:
        """The port, by the scheme where none is given."""
        parts = urlsplit(self.base_url)
        return parts.port or (443 if parts.scheme == "https" else 80)

    @property
    def place(self) -> str:
        """`host:port`, as it is stored with a reply."""
        return f"{self.host}:{self.port}"

    @property
    def headers(self) -> dict[str, str]:
        """Headers of every request."""
        return {"X-Client-Request-Id": self.client_id} if self.client_id else {}

    def key(self) -> str | None:
        """The key, if there is one and it is bound to this place. Raises `WrongKey`."""
        return None if self.secret is None else self.secret.for_url(self.base_url)
