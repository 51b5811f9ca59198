"""The whole site in a folder of its own, started by `manage.py up` as an operator would."""

import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from portal.client.client import Client
from portal.settings.instance import instance_of

ROOT = Path(__file__).resolve().parents[2]
STARTS_WITHIN_S = 240.0


@dataclass(frozen=True)
class Stack:
    """A running site: its address and its instance folder."""

    url: str
    home: Path

    def pids(self) -> dict[str, int]:
        """Process ids by name, as the supervisor wrote them last."""
        pids: dict[str, int] = json.loads((self.home / "state.json").read_text())["pids"]
        return pids

    def kill(self, name: str) -> int:
        """SIGKILL one process; returns its id."""
        pid = self.pids()[name]
        os.kill(pid, signal.SIGKILL)
        return pid

    def log_tails(self) -> str:
        """The ends of all logs, for a failed test's message."""
        parts = []
        for path in sorted((self.home / "logs").glob("*.log")):
            parts.append(f"--- {path.name}\n{path.read_text(errors='replace')[-1500:]}")
        return "\n".join(parts)

    def person(self) -> Client:
        """A client of somebody newly signed up."""
        return Client(self.url, sign_up(self.url))


def sign_up(url: str) -> str:
    """Sign up by the form and make an API token, as a browser does; returns the token."""
    name = f"person-{secrets.token_hex(4)}"
    with httpx.Client(base_url=url, follow_redirects=True, timeout=60, trust_env=False) as http:
        page = http.get("/accounts/signup/").text
        form = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
        assert form, page[:500]
        password = secrets.token_urlsafe(20)
        fields = {"csrfmiddlewaretoken": form.group(1), "username": name, "email": f"{name}@example.org"}
        http.post("/accounts/signup/", data={**fields, "password1": password, "password2": password})
        made = http.post(
            "/api/v1/account/tokens/",
            json={"name": "test", "scopes": ["read", "run", "admin"]},
            headers={"X-CSRFToken": http.cookies["csrftoken"], "Referer": url, "Origin": url},
        )
        assert made.status_code == 201, made.text
        return str(made.json()["value"])


def wait_for(condition: Callable[[], object], within_s: float, what: str) -> None:
    """Poll until `condition` is truthy."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {within_s:.0f} s: {what}"
        time.sleep(0.1)


@contextmanager
def stack_up(port: int, sizes: str) -> Iterator[Stack]:
    """A site of its own below the temporary folder, ended and removed afterwards. `sizes` as IB_TASK_SIZES."""
    home = Path(tempfile.mkdtemp(prefix="ib-e2e-"))
    home.chmod(0o711)
    env = {**os.environ, "IB_HOME": str(home), "IB_ENVS": str(instance_of(ROOT).envs), "IB_TASK_SIZES": sizes}
    env |= {"DJANGO_SETTINGS_MODULE": "portal.settings.embedded", "TEAM_RUNS_PER_DAY": "200"}
    env |= {"BROKER_VISIBILITY_S": "5"}  # R4: far shorter than a run
    command = [sys.executable, "manage.py", "up", "--port", str(port)]
    with (home / "up.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=log, stderr=log, start_new_session=True)
    try:
        deadline = time.monotonic() + STARTS_WITHIN_S
        while not (home / "state.json").exists():
            assert process.poll() is None, (home / "up.log").read_text()[-3000:]
            assert time.monotonic() < deadline, (home / "up.log").read_text()[-3000:]
            time.sleep(0.2)
        yield Stack(json.loads((home / "state.json").read_text())["url"], home)
    finally:
        started = json.loads((home / "state.json").read_text())["pids"] if (home / "state.json").exists() else {}
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(40)
        except subprocess.TimeoutExpired:
            process.kill()
        left = [name for name, pid in started.items() if Path(f"/proc/{pid}").exists()]
        shutil.rmtree(home, ignore_errors=True)
        assert not left, f"still running after the site ended: {left}"
