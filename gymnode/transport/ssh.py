"""Room: gymnode.transport. SSH: the one door to paramiko. Pinned host keys, jump hosts, gymd uploaded and checked.

One connection and one exec channel per link carry everything; no action opens a channel of its own.
"""

import contextlib
import io
import shlex
import socket
from dataclasses import dataclass, field

import paramiko

from gymnode.errors import HostKeyChanged, HostKeyUnknown, NodeError, NodeUnreachable
from gymnode.transport.framed import FramedLink, Stream
from gymnode.transport.package import Package, gymd_package

CONNECT_S = 15.0
UPLOAD_S = 60.0
KEEPALIVE_S = 10.0
STALL_S = 20.0  # a send that makes no progress for so long has lost its peer
MISSING = 97
_QUICKACK = getattr(socket, "TCP_QUICKACK", 12)
_UPLOAD = """
import hashlib, os, sys
data = sys.stdin.buffer.read()
if hashlib.sha256(data).hexdigest() != sys.argv[2]:
    sys.exit("the upload arrived damaged")
os.umask(0o077)
os.makedirs(os.path.dirname(sys.argv[1]), exist_ok=True)
temporary = "%s.%d" % (sys.argv[1], os.getpid())
with open(temporary, "wb") as stream:
    stream.write(data)
os.replace(temporary, sys.argv[1])
"""


@dataclass(frozen=True)
class SshHop:
    """One SSH server and how to enter it. `private_key` is a PEM or OpenSSH text, `host_key` is `type base64`."""

    host: str
    port: int
    user: str
    private_key: str = field(repr=False)
    host_key: str | None = None


@dataclass(frozen=True)
class SshTarget:
    """A node: the last hop and the jump hosts before it, in order; its interpreter and gymd's folders.

    `home` None: the node's own GYMD_HOME or default; `root` None: its GYMD_ROOT or default.
    """

    name: str
    hop: SshHop
    jumps: tuple[SshHop, ...] = ()
    python: str = "python3"
    home: str | None = None
    root: str | None = None


class SshLink(FramedLink):
    """A NodeLink over SSH. Dials on the first request, and again after a break."""

    def __init__(self, target: SshTarget, *, keepalive_s: float = KEEPALIVE_S) -> None:
        self.target = target
        super().__init__(target.name, lambda seconds: _dial(target, seconds), keepalive_s=keepalive_s)


def ssh_doctor(target: SshTarget) -> str:
    """`gymd doctor` on the node: JSON text. Raises NodeError."""
    transports = _enter(target)
    try:
        code = _code_path(target, gymd_package())
        _upload(target, transports[-1], gymd_package())
        command = f"{shlex.quote(target.python)} -I -S {code} doctor{_places(target)}"
        status, output, errors = _run(transports[-1], command, b"")
        if status != 0:
            raise NodeError(target.name, f"{target.name}: gymd doctor failed: {errors.strip()[-400:]}")
        return output
    except (paramiko.SSHException, OSError, EOFError) as error:
        raise NodeUnreachable(target.name, f"{target.name}: {error}") from error
    finally:
        _leave(transports)


def host_key_read(target: SshTarget) -> str:
    """The key the node presents now, as `type base64`, without entering it. Raises NodeUnreachable, NodeError."""
    bare = SshHop(target.hop.host, target.hop.port, target.hop.user, target.hop.private_key, None)
    try:
        _leave(_enter(SshTarget(target.name, bare, target.jumps)))
    except HostKeyUnknown as unknown:
        return unknown.presented
    raise NodeError(target.name, f"{target.name} presented no key")  # not reached: an unpinned key is always unknown


def _dial(target: SshTarget, seconds: float) -> Stream:
    transports = _enter(target, seconds)
    try:
        package = gymd_package()
        stream = _bridge(target, transports, package)
        if stream is None:
            _upload(target, transports[-1], package)
            stream = _bridge(target, transports, package)
        if stream is None:
            raise NodeUnreachable(target.name, f"{target.name}: gymd was uploaded and isn't there")
        return stream
    except (paramiko.SSHException, OSError, EOFError) as error:
        _leave(transports)
        raise NodeUnreachable(target.name, f"{target.name}: {error}") from error
    except NodeError:
        _leave(transports)
        raise


# --- entering


def _enter(target: SshTarget, seconds: float = CONNECT_S) -> list[paramiko.Transport]:
    """Authenticated transports through all hops; the last one is the node's. Raises NodeError."""
    transports: list[paramiko.Transport] = []
    try:
        for hop in (*target.jumps, target.hop):
            channel = _way_to(hop, transports, seconds)
            transport = paramiko.Transport(channel)
            transports.append(transport)
            transport.banner_timeout = transport.auth_timeout = seconds
            _authenticate(target.name, transport, hop)
    except NodeError:
        _leave(transports)
        raise
    except (paramiko.SSHException, OSError, EOFError, ValueError) as error:
        _leave(transports)
        where = f"{target.hop.host}:{target.hop.port}"
        raise NodeUnreachable(target.name, f"{target.name} ({where}) can't be entered: {error}") from error
    return transports


def _way_to(hop: SshHop, transports: list[paramiko.Transport], seconds: float) -> "QuickSocket | paramiko.Channel":
    if transports:
        return transports[-1].open_channel("direct-tcpip", (hop.host, hop.port), ("127.0.0.1", 0), timeout=seconds)
    link = socket.create_connection((hop.host, hop.port), timeout=seconds)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    quick = QuickSocket(fileno=link.detach())
    quick.settimeout(seconds)
    return quick


class QuickSocket(socket.socket):
    """A socket that acknowledges at once: a delayed acknowledgement costs 40 ms per answer."""

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        """As socket.recv."""
        data = super().recv(size, flags)
        self.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)
        return data


def _authenticate(name: str, transport: paramiko.Transport, hop: SshHop) -> None:
    if hop.host_key is not None:
        _prefer_key_type(transport, hop.host_key.split(maxsplit=1)[0])
    transport.start_client(timeout=transport.banner_timeout)
    key = transport.get_remote_server_key()
    presented = f"{key.get_name()} {key.get_base64()}"
    where = f"{hop.host}:{hop.port}"
    if hop.host_key is None:
        text = f"{name}: the key of {where} was never trusted; it presents {key.get_name()} {key.fingerprint}"
        raise HostKeyUnknown(name, text, presented)
    if hop.host_key.split()[:2] != presented.split():
        text = f"{name}: {where} presents another key ({key.fingerprint}) than the pinned one; nothing was sent"
        raise HostKeyChanged(name, text, presented, hop.host_key)
    transport.set_keepalive(int(KEEPALIVE_S))
    transport.auth_publickey(hop.user, private_key_parse(hop.private_key))


def _prefer_key_type(transport: paramiko.Transport, kind: str) -> None:
    """Ask for the pinned type of key first: a server has several."""
    options = transport.get_security_options()
    wanted = [one for one in options.key_types if one == kind or (kind == "ssh-rsa" and one.startswith("rsa-"))]
    options.key_types = (*wanted, *(one for one in options.key_types if one not in wanted))


def private_key_parse(text: str) -> paramiko.PKey:
    """A private key from its text, whatever its type. Raises ValueError."""
    for kind in (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey):
        try:
            return kind.from_private_key(io.StringIO(text))
        except (paramiko.SSHException, ValueError, IndexError):
            continue
    raise ValueError("the private key can't be read: Ed25519, ECDSA or RSA in PEM or OpenSSH form, without passphrase")


def _leave(transports: list[paramiko.Transport]) -> None:
    for transport in reversed(transports):
        with contextlib.suppress(EOFError, OSError, paramiko.SSHException):  # behind a jump host that is gone
            transport.close()


# --- gymd on the node


def _code_path(target: SshTarget, package: Package) -> str:
    """Where gymd's zipapp lies, as a word for the node's shell."""
    folder = shlex.quote(target.home) if target.home else '"${GYMD_HOME:-/var/tmp/gymd-$(id -u)}"'
    return f"{folder}/gymd-{package.sha256[:16]}.pyz"


def _places(target: SshTarget) -> str:
    home = f" --home {shlex.quote(target.home)}" if target.home else ""
    root = f" --root {shlex.quote(target.root)}" if target.root else ""
    return home + root


def _bridge(target: SshTarget, transports: list[paramiko.Transport], package: Package) -> "ChannelStream | None":
    """The bridge's channel; None when gymd isn't on the node yet."""
    code = _code_path(target, package)
    python = shlex.quote(target.python)
    script = f"test -f {code} || exit {MISSING}; echo; exec {python} -I -S -W ignore {code} connect{_places(target)}"
    channel = transports[-1].open_session(timeout=CONNECT_S)
    channel.exec_command(f"exec sh -c {shlex.quote(script)}")
    channel.settimeout(CONNECT_S)
    first = channel.recv(1)
    if not first and channel.recv_exit_status() == MISSING:
        return None
    channel.settimeout(STALL_S)
    return ChannelStream(channel, transports)


def _upload(target: SshTarget, transport: paramiko.Transport, package: Package) -> None:
    """Send the zipapp; the node checks its sha256 before it takes its place. Raises NodeError."""
    python = shlex.quote(target.python)
    script = f"{python} -I -S -c {shlex.quote(_UPLOAD)} {_code_path(target, package)} {package.sha256}"
    status, _output, errors = _run(transport, script, package.data)
    if status != 0:
        words = errors.strip()[-400:] or f"exit status {status}"
        raise NodeUnreachable(target.name, f"{target.name}: gymd can't be put there with {target.python}: {words}")


def _run(transport: paramiko.Transport, script: str, data: bytes) -> tuple[int, str, str]:
    """One command in a channel of its own: only for set-up, never for an action."""
    channel = transport.open_session(timeout=CONNECT_S)
    channel.settimeout(UPLOAD_S)
    channel.exec_command(f"exec sh -c {shlex.quote(script)}")
    channel.sendall(data)
    channel.shutdown_write()
    output = channel.makefile("rb").read()
    errors = channel.makefile_stderr("rb").read()
    status = channel.recv_exit_status()
    channel.close()
    return status, output.decode("utf-8", "replace"), errors.decode("utf-8", "replace")


class ChannelStream:
    """A Stream over the bridge's channel; closing it closes the whole way."""

    def __init__(self, channel: paramiko.Channel, transports: list[paramiko.Transport]) -> None:
        self._channel = channel
        self._transports = transports

    def send(self, data: bytes) -> None:
        """Send all."""
        self._channel.sendall(data)

    def receive(self, size: int) -> bytes:
        """At most `size` bytes."""
        return self._channel.recv(size)

    def close(self) -> None:
        """Close the channel and every hop; a hop that is gone already is no reason to keep the others."""
        with contextlib.suppress(EOFError, OSError, paramiko.SSHException):  # a farewell nobody can hear
            self._channel.close()
        _leave(self._transports)

    def last_words(self) -> str:
        """What came on standard error."""
        words = b""
        while self._channel.recv_stderr_ready():
            words += self._channel.recv_stderr(4096)
        return words.decode("utf-8", "replace").strip()[-500:]
