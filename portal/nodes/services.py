"""Room: portal.nodes. Adding machines, trusting their host keys, taking them in and out of service."""

import base64
import ipaddress
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.db import IntegrityError, transaction
from django.utils.translation import gettext_lazy as _
from pydantic import BaseModel, ConfigDict

from portal.accounts.models import Team, User
from portal.accounts.notices import notice_send_to_staff
from portal.core.audit import audit_write
from portal.core.errors import Conflict, FieldFault
from portal.core.secrets import Secret, vault_seal
from portal.nodes.keys import KeyPair, fingerprint, host_key_read, key_generate, key_read
from portal.nodes.models import Lease, Node, NodeState
from portal.nodes.states import node_state_move

NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,58}[a-z0-9])?")
HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.:-]{0,251}[A-Za-z0-9])?|[0-9A-Fa-f:.]{2,45}")
USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")


class NodeInUse(Conflict):
    """A machine with live leases can't be taken away from under them."""

    code = "node_in_use"
    template = _("Node {node} holds {runs} runs; drain it and wait for them, or cancel them.")


class HostKeyNotOffered(Conflict):
    """The key to be trusted is not the one the node offers now."""

    code = "host_key_not_offered"
    template = _("Node {node} does not offer that key now; look at the key it offers and decide again.")


class Jump(BaseModel):
    """One machine on the way to a node, with its own user, key and pinned host key. As stored in `Node.jumps`."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    host: str
    port: int = 22
    user: str
    host_key: str
    key_public: str
    key_sealed: str  # base64 of the age file

    @property
    def cipher(self) -> bytes:
        return base64.b64decode(self.key_sealed)


@dataclass(frozen=True)
class JumpFacts:
    """A jump host as somebody brings it; without a key of its own it gets the node's."""

    host: str
    user: str
    host_key: str
    port: int = 22
    private_key: Secret | None = None


@dataclass(frozen=True)
class NodeFacts:
    """What an operator says of a machine. Sizes in GB; `capacity` is how many runs it may hold at once."""

    name: str
    host: str
    user: str
    port: int = 22
    workspace_root: str = ""
    python: str = "python3"
    task_env: str = ""
    gpus: int = 0
    gpu_memory_gb: int = 0
    cpus: int = 1
    memory_gb: int = 1
    labels: tuple[str, ...] = ()
    internet: bool = False
    capacity: int = 1
    plain_allowed: bool = False
    jumps: tuple[JumpFacts, ...] = ()


def node_add(
    *,
    facts: NodeFacts,
    by: User | None,
    owner: Team | None = None,
    private_key: Secret | None = None,
    host_key: str = "",
) -> Node:
    """A new machine, offline until `node_state_set`. Without `private_key` one is made; `node.key_public` is then the
    line for its `authorized_keys`. Without `host_key` nothing is sent to it before `node_trust_host_key`.

    `owner` empty: the site's. The caller checked the right; what only staff may do on a team's machine (loopback
    addresses, running without isolation) is checked here. Raises FieldFault, VaultClosed.
    """
    _facts_checked(facts, trusted=by is None or by.is_staff)
    comment = f"innovatorbench-{facts.name}"
    pair = key_read(text=private_key, comment=comment) if private_key else key_generate(comment=comment)
    plain = {name: value for name, value in vars(facts).items() if name not in {"jumps", "labels"}}
    try:
        with transaction.atomic():
            node = Node.objects.create(
                **plain,
                labels=sorted(set(facts.labels)),
                jumps=[_jump(jump, pair).model_dump() for jump in facts.jumps],
                owner=owner,
                key_sealed=vault_seal(pair.private),
                key_public=pair.public,
                host_key=host_key_read(host_key) if host_key else "",
            )
            audit_write(
                verb="added", thing=node, by=by, team_id=owner.pk if owner else None, facts={"host": facts.host}
            )
    except IntegrityError:
        message = _("there is a node of this name already; choose another")
        raise FieldFault(field="name", message=str(message)) from None
    return node


def node_trust_host_key(*, node: Node, host_key: str, by: User | None) -> None:
    """Pin `host_key`, which must be the one the node offered last (the one the page showed, not one swapped since).

    Raises HostKeyNotOffered, FieldFault.
    """
    wanted = host_key_read(host_key)
    with transaction.atomic():
        changed = Node.objects.filter(pk=node.pk, offered_host_key=wanted).update(host_key=wanted, offered_host_key="")
        if not changed:
            raise HostKeyNotOffered(node=node.name)
        facts = {"before": fingerprint(node.host_key), "after": fingerprint(wanted)}
        audit_write(verb="host_key_trusted", thing=node, by=by, team_id=node.owner_id, facts=facts)
    node.host_key, node.offered_host_key = wanted, ""


def node_host_key_offered(*, node: Node, host_key: str) -> None:
    """Note that `node` presented a key that isn't pinned and tell those who run the site, once per key."""
    offered = host_key_read(host_key)
    with transaction.atomic():
        new = Node.objects.filter(pk=node.pk).exclude(offered_host_key=offered).update(offered_host_key=offered)
        if new:
            code = "host_key_changed" if node.host_key else "host_key_unknown"
            facts = {"node": node.name, "fingerprint": fingerprint(offered)}
            audit_write(verb=code, thing=node, by=None, team_id=node.owner_id, facts=facts)
            notice_send_to_staff(code=code, facts=facts, address="/nodes/")
    node.offered_host_key = offered


def node_state_set(*, node: Node, to: NodeState, by: User | None) -> None:
    """A person's move: online, draining or offline. Raises NodeStateRefused; NodeInUse for offline with live leases."""
    runs = Lease.objects.filter(node=node, released_at=None).count()
    if to == NodeState.OFFLINE and runs:
        raise NodeInUse(node=node.name, runs=runs)
    with transaction.atomic():
        node_state_move(node=node, to=to, code="set_by_person")
        audit_write(verb=f"set_{to.value}", thing=node, by=by, team_id=node.owner_id)


def node_change(*, node: Node, facts: NodeFacts, by: User) -> None:
    """Change what is said of a machine; name, jump hosts and keys stay. Raises FieldFault."""
    _facts_checked(replace(facts, name=node.name, jumps=()), trusted=by.is_staff)
    fixed = {"name", "jumps"}
    values = {name: value for name, value in vars(facts).items() if name not in fixed} | {"labels": list(facts.labels)}
    with transaction.atomic():
        for name, value in values.items():
            setattr(node, name, value)
        node.save(update_fields=list(values))
        audit_write(verb="changed", thing=node, by=by, team_id=node.owner_id)


def jumps_of(node: Node) -> Sequence[Jump]:
    """The machines on the way, in order."""
    return [Jump.model_validate(jump) for jump in node.jumps]


def _jump(facts: JumpFacts, node_pair: KeyPair) -> Jump:
    comment = f"innovatorbench-{facts.host}"
    pair = key_read(text=facts.private_key, comment=comment) if facts.private_key else node_pair
    sealed = base64.b64encode(vault_seal(pair.private)).decode()
    return Jump(
        host=facts.host,
        port=facts.port,
        user=facts.user,
        host_key=host_key_read(facts.host_key),
        key_public=pair.public,
        key_sealed=sealed,
    )


def _facts_checked(facts: NodeFacts, *, trusted: bool) -> None:
    """Raise FieldFault for the first value that can't be; names the field and what would do."""
    ways = [(facts.host, facts.user, facts.port), *((jump.host, jump.user, jump.port) for jump in facts.jumps)]
    rules = [
        ("name", NAME.fullmatch(facts.name), _("lower-case letters, digits and hyphens, at most 60")),
        ("host", all(HOST.fullmatch(host) for host, _u, _p in ways), _("a host name or an address, nothing else")),
        ("user", all(USER.fullmatch(user) for _h, user, _p in ways), _("a user name of the machine")),
        ("port", all(0 < port < 65536 for _h, _u, port in ways), _("1 to 65535")),
        ("workspace_root", facts.workspace_root[:1] in {"", "/"}, _("an absolute path, or empty for the default")),
        ("task_env", facts.task_env[:1] in {"", "/"}, _("an absolute path, or empty for the machine's own Python")),
        ("capacity", 1 <= facts.capacity <= 1000, _("1 to 1000 runs")),
        ("gpus", 0 <= facts.gpus <= 64, _("0 to 64")),
        ("cpus", 1 <= facts.cpus <= 4096, _("1 to 4096")),
        ("memory_gb", 1 <= facts.memory_gb <= 1_000_000, _("1 GB and more")),
        ("plain_allowed", trusted or not facts.plain_allowed, _("only those who run the site may allow this")),
        ("host", trusted or not any(_local(host) for host, _u, _p in ways), _("this is the portal's own machine")),
    ]
    for field, holds, message in rules:
        if not holds:
            raise FieldFault(field=field, message=str(message))


def _local(host: str) -> bool:
    """Loopback and link-local: addresses that mean the portal's own machine or its cloud's metadata."""
    if host.lower().rstrip(".") in {"localhost", "localhost.localdomain"}:
        return True
    address = _address(host)
    return address is not None and (address.is_loopback or address.is_link_local or address.is_unspecified)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address a text stands for, also in the forms that resolvers take (`127.1`, `0x7f000001`)."""
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except OSError:
        pass
    try:
        address = ipaddress.IPv6Address(host)
    except ValueError:
        return None
    return address.ipv4_mapped or address
