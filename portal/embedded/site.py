"""Start the whole site on this machine and keep it running: the straight line behind `manage.py up` and `demo`."""

import fcntl
import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from portal.embedded.environments import environments
from portal.embedded.gymd_end import gymd_end
from portal.embedded.keys import evaluator_keys, site_keys
from portal.embedded.programs import ROOT, Ports, Stack, evaluator, node, servers, site
from portal.embedded.reach import folder, home_folder
from portal.embedded.supervisor import Supervisor
from portal.settings.instance import Instance

Say = Callable[[str], None]


@dataclass(frozen=True)
class Running:
    """A site that serves: its address, its processes, and the supervisor when this process started it."""

    url: str
    pids: dict[str, int]
    supervisor: Supervisor | None


def running_already(instance: Instance) -> Running | None:
    """The site of this instance if another process keeps it, else None. A stale state file counts for nothing."""
    home_folder(instance.home)
    handle = os.open(instance.home / "up.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        deadline = time.monotonic() + 90
        while not instance.state_file.exists():
            if time.monotonic() > deadline:
                message = f"another start of this site holds {instance.home / 'up.lock'} but does not become ready"
                raise RuntimeError(message) from None
            time.sleep(0.2)
        state = json.loads(instance.state_file.read_text())
        return Running(state["url"], state["pids"], None)
    finally:
        os.close(handle)
    return None


@contextmanager
def _sole(instance: Instance) -> Iterator[None]:
    """Hold the instance: one supervisor at a time. The lock ends with the process, however it ends."""
    handle = os.open(instance.home / "up.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(handle, fcntl.LOCK_EX)
    instance.state_file.unlink(missing_ok=True)
    try:
        yield
    finally:
        instance.state_file.unlink(missing_ok=True)
        os.close(handle)


def _broker_password(instance: Instance, stack: Stack) -> str:
    path = instance.keys / "broker.json"
    if path.exists():
        return str(json.loads(path.read_text())["password"])
    password = secrets.token_hex(16)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump({"password": password, "evaluator": f"unix://evaluator:{password}@{stack.valkey.socket}"}, file)
    return password


def _prepare(instance: Instance, stack: Stack) -> None:
    for path in (instance.home, instance.runtime, instance.logs, instance.packages, instance.blobs):
        folder(path)
    folder(instance.mail, 0o700)
    environments(instance)
    site_keys(instance)
    stack.evaluator_install()
    evaluator_keys(instance, stack.evaluator_command(), stack.evaluator_env(), stack.evaluator_code)
    stack.valkey.prepare(_broker_password(instance, stack))
    stack.postgres.prepare()


def _bootstrap(stack: Stack, say: Say) -> None:
    """Tables, catalogue, tasks and the local node, in a process of its own; its lines are passed on."""
    command = [sys.executable, "manage.py", "bootstrap"]
    with subprocess.Popen(
        command, cwd=ROOT, env=stack.vault_env(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        lines = []
        for line in process.stdout or []:
            lines.append(line)
            if line.startswith("- "):
                say(line[2:].rstrip())
    if process.returncode != 0:
        raise RuntimeError("the site could not be set up:\n" + "".join(lines[-30:]))


@contextmanager
def site_up(instance: Instance, port: int, say: Say) -> Iterator[Running]:
    """Everything started and answering; everything ended on the way out. Raises RuntimeError with what failed."""
    home_folder(instance.home)
    with _sole(instance):
        stack = Stack(instance, Ports.chosen(port))
        began = time.monotonic()
        _prepare(instance, stack)
        supervisor = Supervisor(instance.logs, say)
        try:
            for program in servers(stack):
                supervisor.start(program)
            say(f"database and broker: {time.monotonic() - began:.1f} s")
            began = time.monotonic()
            supervisor.start(node(stack))
            _bootstrap(stack, say)
            say(f"tables, tasks, node: {time.monotonic() - began:.1f} s")
            began = time.monotonic()
            for program in (evaluator(stack), *site(stack)):
                supervisor.start(program)
            running = Running(stack.url, supervisor.pids(), supervisor)
            state_write(instance, running, stack.ports)
            say(f"web, worker, collector, evaluator: {time.monotonic() - began:.1f} s")
            yield running
        finally:
            supervisor.stop()
            gymd_end(instance.node)


def state_write(instance: Instance, running: Running, ports: Ports) -> None:
    """Tell other processes of this machine where the site is (address, ports, process ids)."""
    half = instance.state_file.with_suffix(".half")
    half.write_text(json.dumps({"url": running.url, "pids": running.pids, "ports": asdict(ports)}))
    half.rename(instance.state_file)


def pids_write(instance: Instance, pids: dict[str, int]) -> None:
    """Note the new process ids after a restart."""
    state = json.loads(instance.state_file.read_text())
    half = Path(f"{instance.state_file}.half")
    half.write_text(json.dumps({**state, "pids": pids}))
    half.rename(instance.state_file)
