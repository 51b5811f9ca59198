"""Room: portal.nodes. Links to nodes, one per node and process, for whoever may open the vault: workers, the collector.

A link dials on its first request and again after a break; a changed row (address, key, trusted host key) gives a new
one. What a node presents instead of its pinned key is noted and told to those who run the site.
"""

import threading
from collections.abc import Callable, Mapping

from pydantic import JsonValue

from gymnode.errors import HostKeyUnknown
from gymnode.transport.base import NodeLink, Reply
from gymnode.transport.ssh import SshHop, SshLink, SshTarget
from portal.core.secrets import vault_open
from portal.nodes.models import Node
from portal.nodes.services import jumps_of, node_host_key_offered

Dial = Callable[[Node], NodeLink]


class NotingLink:
    """A NodeLink that notes a host key it didn't expect, then fails as its inner link does."""

    def __init__(self, node: Node, inner: NodeLink) -> None:
        self.name = inner.name
        self._node = node
        self._inner = inner

    def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, JsonValue] | None = None,
        *,
        payload: bytes = b"",
        timeout_s: float = 30.0,
    ) -> Reply:
        """As NodeLink.request."""
        try:
            return self._inner.request(method, path, body, payload=payload, timeout_s=timeout_s)
        except HostKeyUnknown as problem:
            # A jump host's key is told by the message alone: what can be trusted with a click is the node's own.
            if not self._node.jumps:
                node_host_key_offered(node=self._node, host_key=problem.presented)
            raise

    def close(self) -> None:
        """As NodeLink.close."""
        self._inner.close()


class LinkCache:
    """Links by node, replaced when what they were made of changes. Thread-safe."""

    def __init__(self, dial: Dial) -> None:
        self._dial = dial
        self._lock = threading.Lock()
        self._links: dict[int, tuple[tuple[object, ...], NodeLink]] = {}

    def get(self, node: Node) -> NodeLink:
        """The node's link; making one connects to nothing. Raises VaultClosed."""
        facts = _made_of(node)
        with self._lock:
            known = self._links.get(node.pk)
            if known is not None and known[0] == facts:
                return known[1]
            link = NotingLink(node, self._dial(node))
            self._links[node.pk] = (facts, link)
        if known is not None:
            known[1].close()
        return link

    def drop(self, node_id: int) -> None:
        """Hang up; the next `get` makes a new link."""
        with self._lock:
            known = self._links.pop(node_id, None)
        if known is not None:
            known[1].close()

    def close(self) -> None:
        """Hang up everywhere."""
        for node_id in list(self._links):
            self.drop(node_id)


def target_of(node: Node) -> SshTarget:
    """All that SSH needs, keys opened. Raises VaultClosed in a process without the vault's identity."""
    jumps = tuple(
        SshHop(jump.host, jump.port, jump.user, vault_open(jump.cipher).reveal(), jump.host_key)
        for jump in jumps_of(node)
    )
    key = vault_open(bytes(node.key_sealed)).reveal()
    hop = SshHop(node.host, node.port, node.user, key, node.host_key or None)
    return SshTarget(node.name, hop, jumps, python=node.python, root=node.workspace_root or None)


_cache = LinkCache(lambda node: SshLink(target_of(node)))


def link_for(node: Node) -> NodeLink:
    """The link of this process to `node`; nothing is sent before the first request, which may raise NodeUnreachable,
    HostKeyUnknown or HostKeyChanged (noted then). Raises VaultClosed here.
    """
    return _cache.get(node)


def links_close() -> None:
    """Hang up everywhere, at the end of a process."""
    _cache.close()


def _made_of(node: Node) -> tuple[object, ...]:
    names = ("host", "port", "user", "host_key", "python", "workspace_root", "name")
    return (*(getattr(node, name) for name in names), bytes(node.key_sealed), str(node.jumps))
