"""Room: gymnode. A node on this machine: a small SSH server on loopback for machines without sshd.

It executes commands as its own user for whoever holds an authorised key, as sshd does; no shells with a terminal, no
forwarding, no passwords. As root it is started by the embedded stack; isolation of runs is gymd's work, not its own.
"""

import argparse
import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

import asyncssh

SIZE = 1 << 18


class LocalNode(asyncssh.SSHServer):
    """Accepts the keys of one authorized_keys file, read anew for each connection."""

    def __init__(self, authorized_keys: Path) -> None:
        self._authorized_keys = authorized_keys

    def begin_auth(self, username: str) -> bool:
        """Every user must prove a key; the name has no meaning: commands run as this process's user."""
        return True

    def public_key_auth_supported(self) -> bool:
        """Keys only."""
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        """True for a key in the file."""
        try:
            known = asyncssh.read_authorized_keys(str(self._authorized_keys))
        except (OSError, ValueError):
            return False
        return known.validate(key, username, "127.0.0.1", "127.0.0.1") is not None


async def serve_process(process: asyncssh.SSHServerProcess[bytes], environment: dict[str, str]) -> None:
    """Run one exec request; both streams whole, its exit status reported, its group killed when the client goes."""
    if process.command is None:
        process.stderr.write(b"only commands are served here\n")
        process.exit(1)
        return
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(
        "/bin/sh", "-c", process.command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, start_new_session=True
    )
    try:
        await process.redirect(stdin=child.stdin, stdout=child.stdout, stderr=child.stderr)
        status = await child.wait()
        await process.stdout.drain()
        process.exit(status if status >= 0 else 128 - status)
    finally:
        if child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGHUP)
            await child.wait()


def environment_for(root: Path) -> dict[str, str]:
    """What commands see: gymd's folders lie below `root`; a bubblewrap that came as a wheel is named."""
    environment = {
        "PATH": os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin"),
        "HOME": os.environ.get("HOME", "/"),
        "LANG": "C.UTF-8",
        "GYMD_HOME": str(root / "gymd"),
        "GYMD_ROOT": str(root / "runs"),
    }
    passed = ("GYMD_BWRAP", "GYMD_NO_NAMESPACES", "GYMD_NO_LANDLOCK", "GYMD_LOG_CAP")
    return {**environment, **{name: os.environ[name] for name in passed if name in os.environ}}


async def serve(*, host: str, port: int, host_key: Path, authorized_keys: Path, root: Path) -> None:
    """Listen until cancelled; prints the port when it was 0."""
    root.mkdir(parents=True, exist_ok=True)
    root.chmod(0o711)
    environment = environment_for(root)
    server = await asyncssh.create_server(
        lambda: LocalNode(authorized_keys),
        host,
        port,
        server_host_keys=[str(host_key)],
        process_factory=lambda process: serve_process(process, environment),
        encoding=None,
        keepalive_interval=15,
        line_editor=False,
    )
    sys.stdout.write(f"listening on {host}:{server.get_port()}\n")
    sys.stdout.flush()
    await server.wait_closed()


def main() -> None:
    """Command line: see --help."""
    parser = argparse.ArgumentParser(prog="python -m gymnode.localnode", description="An SSH node on loopback.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--host-key", type=Path, required=True)
    parser.add_argument("--authorized-keys", type=Path, required=True)
    parser.add_argument("--root", type=Path, required=True)
    options = parser.parse_args()
    loop = asyncio.new_event_loop()
    main_task = loop.create_task(
        serve(
            host=options.host,
            port=options.port,
            host_key=options.host_key,
            authorized_keys=options.authorized_keys,
            root=options.root.absolute(),
        )
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, main_task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        loop.run_until_complete(main_task)


if __name__ == "__main__":
    main()
