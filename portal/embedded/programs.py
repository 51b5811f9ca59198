"""The processes of the embedded site: what each runs, in which environment, as which user; in order of their start."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from portal.embedded.postgres import Postgres
from portal.embedded.reach import EVALUATOR_UID, bubblewrap, folder
from portal.embedded.supervisor import Program
from portal.embedded.valkey import Valkey
from portal.settings.instance import Instance

ROOT = Path(__file__).resolve().parents[2]
READY_WITHIN_S = 60.0
HIGHEST_PORT = 65_535 - 222 - 90  # what is reached when all ports that are tried are taken
_PASSED: tuple[str, ...] = ("PATH", "HOME", "LANG", "TZ", "TMPDIR", "IB_HOME", "IB_ENVS", "IB_LEVEL", "IB_TASK_SIZES")
MAIL = ("MAIL_URL", "MAIL_FROM")  # the mail server's password is the web process's alone
_PASSED += ("PROXIES", "SLICE_SECONDS", "CLAIM_SECONDS", "TEAM_RUNS_PER_DAY", "BROKER_VISIBILITY_S")


@dataclass(frozen=True)
class Ports:
    """TCP ports on loopback that this start of the site uses."""

    web: int
    scripted: int
    node: int

    @classmethod
    def chosen(cls, web: int) -> "Ports":
        """The wished ports, or the next free ones. Raises RuntimeError when there is none."""
        if not 1 <= web <= HIGHEST_PORT:
            raise RuntimeError(f"--port {web} is none of 1 to {HIGHEST_PORT} (the site's other ports lie above it)")
        return cls(web=_free(web), scripted=_free(web + 99), node=_free(web + 222))


# Names in the machine's abstract socket space, held as long as this process lives: two sites that start at the same
# moment would else both find a port free before either has bound it.
_RESERVED: list[socket.socket] = []


def _reserve(port: int) -> bool:
    name = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        name.bind(f"\0innovatorbench-port-{port}")
    except OSError:
        name.close()
        return False
    _RESERVED.append(name)
    return True


def _free(wished: int) -> int:
    for port in range(wished, wished + 90):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if _reserve(port):
            return port
    raise RuntimeError(f"no free port on 127.0.0.1 from {wished} to {wished + 89}; name another with --port")


@dataclass(frozen=True)
class Stack:
    """Everything the site's processes have in common."""

    instance: Instance
    ports: Ports

    @property
    def postgres(self) -> Postgres:
        return Postgres(self.instance.home, self.instance.postgres_data, self.instance.runtime)

    @property
    def valkey(self) -> Valkey:
        return Valkey(self.instance.home / "valkey", self.instance.runtime)

    @property
    def url(self) -> str:
        return f"http://localhost:{self.ports.web}"

    def env(self, **more: str) -> dict[str, str]:
        """Environment of the site's own processes: a few names passed on, nothing else inherited."""
        kept = {name: os.environ[name] for name in _PASSED if name in os.environ}
        return {
            **kept,
            "DJANGO_SETTINGS_MODULE": os.environ.get("DJANGO_SETTINGS_MODULE", "portal.settings.embedded"),
            "PYTHONUNBUFFERED": "1",
            "SCRIPTED_URL": f"http://127.0.0.1:{self.ports.scripted}/v1",
            "MODEL_ALLOWED_HOSTS": f"127.0.0.1:{self.ports.scripted}",
            "NODE_PORT": str(self.ports.node),
            **more,
        }

    def vault_env(self) -> dict[str, str]:
        """Environment of workers and collector, which alone may open the vault."""
        return self.env(VAULT_IDENTITY_PATH=str(self.instance.keys / "vault_age"))

    # -- the scoring program: own environment, own code folder, own user, no variable of the site --

    @property
    def evaluator_code(self) -> Path:
        return self.instance.home / "evaluator-app"

    def evaluator_command(self) -> list[str]:
        return [str(self.instance.envs / "evaluator" / "bin" / "python"), "-m", "evaluator"]

    def evaluator_env(self) -> dict[str, str]:
        return {
            "PATH": f"{Path(bubblewrap(self.instance.home)).parent}:/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
        }

    def evaluator_install(self) -> None:
        """Copy the program beside its environment: its user can't enter a clone below a private folder."""
        folder(self.evaluator_code, 0o755)
        target = self.evaluator_code / "evaluator"
        half = self.evaluator_code / "evaluator.half"
        shutil.rmtree(half, ignore_errors=True)
        shutil.copytree(ROOT / "evaluator", half, ignore=shutil.ignore_patterns("__pycache__"))
        for path in (half, *half.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        shutil.rmtree(target, ignore_errors=True)
        half.rename(target)


def _port_open(port: int) -> Callable[[subprocess.Popen[bytes]], None]:
    def wait(process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < deadline and process.poll() is None:
            with socket.socket() as probe:
                probe.settimeout(1)
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.05)
        raise RuntimeError(f"nothing listens on port {port} after {READY_WITHIN_S:.0f} s")

    return wait


def _answers(url: str) -> Callable[[subprocess.Popen[bytes]], None]:
    def wait(process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < deadline and process.poll() is None:
            try:
                with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310  our own loopback address
                    answer.read()
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        raise RuntimeError(f"{url} does not answer after {READY_WITHIN_S:.0f} s")

    return wait


def servers(stack: Stack) -> list[Program]:
    """Database and broker."""
    postgres, valkey, log = stack.postgres, stack.valkey, stack.instance.logs
    bare = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LANG": "C", "TZ": "UTC"}
    return [
        postgres.program(bare, log / "postgres.log"),
        valkey.program(bare, log / "valkey.log"),
    ]


def node(stack: Stack) -> Program:
    """The SSH node on this machine, for runs of the demo and of laptops."""
    keys = stack.instance.keys
    root = folder(stack.instance.node)
    command = (
        *(sys.executable, "-m", "gymnode.localnode", "--host", "127.0.0.1", "--port", str(stack.ports.node)),
        *("--host-key", str(keys / "node_host"), "--authorized-keys", str(keys / "node_authorized_keys")),
        *("--root", str(root)),
    )
    return Program("node", command, _node_env(stack), ROOT, ready=_port_open(stack.ports.node))


def _node_env(stack: Stack) -> Mapping[str, str]:
    # A node knows nothing of the site: no database, no broker, no key.
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    forced = {"GYMD_NO_NAMESPACES": "1"} if os.environ.get("IB_LEVEL") == "2" else {}
    return {**kept, **forced, "GYMD_BWRAP": bubblewrap(stack.instance.home), "PYTHONUNBUFFERED": "1"}


def evaluator(stack: Stack) -> Program:
    """The scoring program."""
    work = folder(stack.instance.sandboxes)
    broker = json.loads((stack.instance.keys / "broker.json").read_text())
    if os.geteuid() == 0:
        os.chown(work, EVALUATOR_UID, EVALUATOR_UID)
    return Program(
        "evaluator",
        (*stack.evaluator_command(), "serve", *_evaluator_options(stack)),
        # The broker's address holds a password: an argument would show it to every process of the machine.
        {**stack.evaluator_env(), "EVALUATOR_BROKER": broker["evaluator"]},
        stack.evaluator_code,
        uid=EVALUATOR_UID,
    )


def _evaluator_options(stack: Stack) -> list[str]:
    instance = stack.instance
    options = ["--keys", str(instance.evaluator_keys), "--site-key", str(instance.keys / "site_ed25519.pub")]
    # One name through all its lives: started anew, it takes up at once what it was scoring when it died.
    options += ["--task-env", str(instance.task_env), "--name", "embedded"]
    options += ["--blobs", str(instance.blobs), "--work", str(instance.sandboxes)]
    level = os.environ.get("IB_LEVEL")
    return [*options, *(["--level", level] if level else [])]


def site(stack: Stack) -> list[Program]:
    """The site's own processes; each may be started more than once against one database and broker."""
    python = sys.executable
    celery = (python, "-m", "celery", "-A", "portal")
    worker = ("worker", "-P", "threads", "-c", "32", "-Q", "runs", "-l", "info", "-n", "worker@portal")
    quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat")
    schedule = str(stack.instance.home / "beat-schedule")
    web = ("-m", "uvicorn", "portal.asgi:application", "--host", "127.0.0.1", "--port", str(stack.ports.web))
    scripted = ("--host", "127.0.0.1", "--port", str(stack.ports.scripted), "--tasks", str(ROOT / "tasks"))
    return [
        Program(
            "scripted",
            (python, "-m", "runs.agent.llm.scripted_server", *scripted),
            stack.env(),
            ROOT,
            ready=_port_open(stack.ports.scripted),
        ),
        Program("worker", (*celery, *worker, *quiet), stack.vault_env(), ROOT),
        Program("collector", (python, "manage.py", "collector"), stack.vault_env(), ROOT),
        Program("beat", (*celery, "beat", "-l", "warning", "-s", schedule, "--pidfile="), stack.env(), ROOT),
        Program(
            "web",
            (
                python,
                *web,
                "--ws",
                "websockets-sansio",
                "--no-access-log",
                "--no-proxy-headers",
                "--timeout-graceful-shutdown",
                "3",
            ),
            stack.env(**{name: os.environ[name] for name in MAIL if name in os.environ}),
            ROOT,
            ready=_answers(f"http://127.0.0.1:{stack.ports.web}/"),
        ),
    ]
