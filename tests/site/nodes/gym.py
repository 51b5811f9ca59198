"""A real gymd on this machine, reached without SSH, and runs on it."""

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path

from gymnode.transport.base import Reply
from gymnode.transport.local import LocalLink


class Gym:
    """One gymd below `folder`; `kill` ends it as a crash of the machine would."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.link = LocalLink("gym", home=folder / "h", root=folder / "r", keepalive_s=1)

    def ask(self, method: str, path: str, body: Mapping = {}) -> Reply:
        reply = self.link.request(method, path, body)
        assert reply.status == 200, reply
        return reply

    def open(self, run: str) -> None:
        limits = {"disk_gb": 1}
        facts = {"epoch": 1, "level": "plain", "allow_plain": True, "network": "none", "limits": limits}
        self.ask("POST", f"/v1/runs/{run}/open", facts | {"env": {}, "secrets": {}, "gpus": [], "assets": []})

    def run(self, run: str, command: str, *, wait: bool = True, action_id: str | None = None) -> None:
        args = {"session_id": None, "command": command, "wait": wait, "timeout_s": 20}
        body = {"epoch": 1, "action_id": action_id or str(time.monotonic_ns()), "op": "session.run", "args": args}
        self.ask("POST", f"/v1/runs/{run}/ops", body)

    def kill(self) -> None:
        pid = int(self.link.request("GET", "/v1/hello").body["pid"])
        os.kill(pid, signal.SIGKILL)
        self.link.break_link()

    def stop(self, *runs: str) -> None:
        for run in runs:
            self.link.request("POST", f"/v1/runs/{run}/close", {"epoch": 1, "remove": True})
        os.kill(int(self.link.request("GET", "/v1/hello").body["pid"]), signal.SIGTERM)
        self.link.close()
