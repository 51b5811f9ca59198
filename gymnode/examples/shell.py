"""Room: gymnode, an example. Drive a node by hand with the actions that a model has.

    python -m gymnode.examples.shell HOST --user NAME --key FILE [--port 22] [--host-key "ssh-ed25519 AAAA..."]
    python -m gymnode.examples.shell --local FOLDER

A line is a shell command, or a call such as `open_file {"path": "a.py"}`. An empty line or end of file ends the run.
"""

import argparse
import itertools
import sys
from datetime import UTC, datetime
from pathlib import Path

from gymnode.actions.base import Action
from gymnode.actions.command import RunCommand
from gymnode.actions.registry import ACTIONS, action_parse
from gymnode.errors import CallRefused, HostKeyUnknown, NodeError, refusal_from
from gymnode.observations import FileCursor
from gymnode.transport.base import NodeLink
from gymnode.transport.local import LocalLink
from gymnode.transport.ssh import SshHop, SshLink, SshTarget
from gymnode.workbench import Args, Bench

RUN = "by-hand"


def link_make(options: argparse.Namespace) -> NodeLink:
    """The link that the command line asks for."""
    if options.local is not None:
        return LocalLink("local", home=options.local / "gymd", root=options.local / "runs")
    key = Path(options.key).expanduser().read_text()
    hop = SshHop(options.host, options.port, options.user, key, options.host_key)
    return SshLink(SshTarget(options.host, hop))


def run_open(link: NodeLink, level: str) -> str:
    """Open the run at an isolation level and return the workspace as the commands see it. Raises GymError."""
    body: Args = {"epoch": 1, "level": level, "env": {}, "secrets": {}, "network": "none", "gpus": []}
    reply = link.request("POST", f"/v1/runs/{RUN}/open", body, timeout_s=60)
    if reply.status >= 400:
        raise refusal_from(link.name, reply.status, str(reply.body.get("code")), str(reply.body.get("message")))
    return f"level {reply.body['level']}, workspace {reply.body['workspace']}"


def action_of(line: str) -> Action:
    """The action that a line means: a call by name, or a command. Raises CallRefused."""
    name, _, arguments = line.partition(" ")
    if name in ACTIONS and (not arguments or arguments.lstrip().startswith("{")):
        return action_parse(name, arguments, allowed=[name for name, kind in ACTIONS.items() if not kind.engine])
    return RunCommand(command=line)


def converse(link: NodeLink) -> None:
    """Read lines, perform them, print what a model would read."""
    cursor: FileCursor | None = None
    for number in itertools.count(1):
        sys.stdout.write("> ")
        sys.stdout.flush()
        line = sys.stdin.readline().strip()
        if not line:
            return
        stamp = f"{RUN}.{int(datetime.now(UTC).timestamp())}.{number}"
        bench = Bench(RUN, 1, stamp, False, {link.name: link}, cursor, lambda: datetime.now(UTC))
        try:
            seen = action_of(line).perform(bench)
        except CallRefused as refused:
            seen = refused.observation
        cursor = seen.cursor or cursor
        sys.stdout.write(f"[{seen.outcome}] {seen.text()}\n")


def options_read() -> argparse.Namespace:
    """The command line; ends the program when it makes no sense."""
    parser = argparse.ArgumentParser(prog="python -m gymnode.examples.shell", description="Drive a node by hand.")
    parser.add_argument("host", nargs="?", help="the node's address")
    parser.add_argument("--port", type=int, default=22)
    parser.add_argument("--user", default="root")
    parser.add_argument("--key", default="~/.ssh/id_ed25519", help="private key file")
    parser.add_argument("--host-key", help='the key to trust, as "type base64"')
    parser.add_argument("--local", type=Path, help="no SSH: a gymd of this machine, its files below this folder")
    parser.add_argument("--level", default="best", choices=["best", "namespace", "landlock", "plain"])
    options = parser.parse_args()
    if (options.host is None) == (options.local is None):
        parser.error("name a host, or --local FOLDER")
    return options


def main() -> int:
    """Returns the exit status."""
    options = options_read()
    link = link_make(options)
    try:
        sys.stdout.write(run_open(link, options.level) + "\n")
        converse(link)
        link.request("POST", f"/v1/runs/{RUN}/close", {"epoch": 1, "remove": True}, timeout_s=60)
    except HostKeyUnknown as unknown:
        sys.stderr.write(f'{unknown}\nTo trust it: --host-key "{unknown.presented}"\n')
        return 1
    except NodeError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    finally:
        link.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
