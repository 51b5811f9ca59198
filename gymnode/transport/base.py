"""Room: gymnode.transport. The port to a node: one request, one reply, over whatever leads to its gymd."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue


@dataclass(frozen=True)
class Reply:
    """gymd's answer: `status` as in HTTP, the JSON body, raw bytes where the request asked for some."""

    status: int
    body: Mapping[str, JsonValue]
    payload: bytes = b""


class NodeLink(Protocol):
    """One live link to one node's gymd. Thread-safe; any number of requests may be under way at once."""

    name: str

    def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, JsonValue] | None = None,
        *,
        payload: bytes = b"",
        timeout_s: float = 30.0,
    ) -> Reply:
        """Send one request and wait for its reply, at most `timeout_s` seconds.

        A refusal of gymd is a Reply with a status of 400 or more. Raises NodeUnreachable when no reply can be had (the
        request may or may not have arrived: send it again under the same action id), HostKeyUnknown and HostKeyChanged
        before anything is sent, ProtocolMismatch when gymd speaks another version.
        """
        ...

    def close(self) -> None:
        """Hang up. What runs on the node goes on."""
        ...
