"""Where one installation keeps its own things (databases, keys, blobs, environments, sockets). No Django here.

As root everything that another user id must reach lies in one folder of mode 0711 outside the clone, because a clone
may lie below a folder that only root can enter; an ordinary user keeps it inside the clone.
"""

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Instance:
    """The folders and files of one installation, all below `home`; sockets in `runtime`, whose path stays short."""

    home: Path
    runtime: Path

    @property
    def blobs(self) -> Path:
        return self.home / "blobs"

    @property
    def keys(self) -> Path:
        return self.home / "keys"

    @property
    def evaluator_keys(self) -> Path:
        return self.home / "evaluator-keys"

    @property
    def envs(self) -> Path:
        """Environments of tasks and evaluator; `IB_ENVS` lends those of another instance (tests do)."""
        return Path(os.environ.get("IB_ENVS") or self.home / "envs")

    @property
    def task_env(self) -> Path:
        return self.envs / "tasks"

    @property
    def packages(self) -> Path:
        return self.home / "packages"

    @property
    def mail(self) -> Path:
        """Mails of an installation without a mail server, one file each; only the site's own user may read them."""
        return self.home / "mail"

    @property
    def logs(self) -> Path:
        return self.home / "logs"

    @property
    def node(self) -> Path:
        return self.home / "node"

    @property
    def sandboxes(self) -> Path:
        return self.home / "sandboxes"

    @property
    def state_file(self) -> Path:
        return self.home / "state.json"

    @property
    def postgres_data(self) -> Path:
        return self.home / "postgres"

    @property
    def database_url(self) -> str:
        return f"postgresql://portal@/portal?host={self.runtime}"

    @property
    def redis_socket(self) -> Path:
        return self.runtime / "valkey.sock"

    @property
    def redis_url(self) -> str:
        return f"unix://{self.redis_socket}"


def instance_of(root: Path) -> Instance:
    """The instance that belongs to the clone at `root`; `IB_HOME` names another folder (tests do)."""
    named = os.environ.get("IB_HOME")
    digest = hashlib.sha256(str(root).encode()).hexdigest()[:10]
    if named:
        home = Path(named).resolve()
        digest = hashlib.sha256(str(home).encode()).hexdigest()[:10]
    elif os.geteuid() == 0:
        home = Path("/var/lib/innovatorbench") / digest
    else:
        home = root / ".var"
    # Socket paths end at 107 bytes, so sockets don't live below `home`, however deep the clone lies.
    base = Path("/run") if os.geteuid() == 0 else Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
    if not os.access(base, os.W_OK):
        base = Path(tempfile.gettempdir())
    return Instance(home=home, runtime=base / f"ib-{os.geteuid()}-{digest}")
