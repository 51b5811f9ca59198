"""A whole small world for runs: a task, a node on this machine, the scripted model on a wire, a fake evaluator."""

import secrets
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings as site_settings

from gymnode.transport.base import NodeLink
from gymnode.transport.local import LocalLink
from portal.accounts.models import Team, User
from portal.catalog.models import TaskVersion
from portal.catalog.packed import packed_read
from portal.catalog.services import domain_rows_ensure, task_version_import
from portal.nodes import links
from portal.nodes.models import Node, NodeState
from portal.nodes.services import NodeFacts, node_add
from portal.nodes.states import node_state_move
from runs.agent.llm.scripted_server import ScriptedServer, folder_library
from runs.models.run import Run
from runs.scoring.client import evaluator_instead
from runs.scoring.fake import FakeEvaluator, Verdict
from runs.services.claims import heart
from runs.services.configs import config_create
from runs.services.queueing import run_queue
from tests.node.machines import gymd_end
from tests.site.catalog.packages import packed_folder
from tests.site.runs.driving import CONFIG


@pytest.fixture(scope="session", autouse=True)
def life_lock(django_db_setup: None) -> Iterator[None]:
    """Let go of this process's advisory lock before the test database is dropped."""
    yield
    heart().life.drop()


@pytest.fixture(autouse=True)
def blobs_here(settings, tmp_path: Path) -> None:
    settings.BLOBS_URL = f"file://{tmp_path}/blobs"
    settings.SLICE_SECONDS = 30


@pytest.fixture
def version(transactional_db: None, tmp_path: Path) -> TaskVersion:
    domain_rows_ensure()
    return task_version_import(packed=packed_read(packed_folder(tmp_path / "package")), by=None)


@pytest.fixture
def team(transactional_db: None, alice: User, bob: User) -> Team:
    """Bob and his personal team: enough for runs."""
    return alice.personal_team


@pytest.fixture(scope="session")
def gymd_home() -> Iterator[Path]:
    """Where a gymd of this test process lives: every user id may pass through it."""
    home = Path(tempfile.mkdtemp(prefix="ibr-"))
    home.chmod(0o711)
    yield home
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def gymd(gymd_home: Path) -> Iterator[NodeLink]:
    link = LocalLink("box", home=gymd_home / "gymd", root=gymd_home / "runs")
    yield link
    gymd_end(link)


@pytest.fixture
def node(transactional_db: None, gymd: NodeLink, monkeypatch) -> Node:
    """An online machine whose link is the local one."""
    monkeypatch.setattr(links, "_cache", links.LinkCache(lambda _node: gymd))
    name = f"box-{secrets.token_hex(3)}"
    facts = NodeFacts(name=name, host="192.0.2.7", user="ib", cpus=4, memory_gb=8, capacity=4)
    made = node_add(facts=facts, by=None)
    node_state_move(node=made, to=NodeState.ONLINE)
    return made


@pytest.fixture
def playbook(settings, tmp_path: Path) -> Iterator[Callable[[str], None]]:
    """Writes the playbook that the scripted model plays, and serves it."""
    folder = tmp_path / "plays" / "example-task" / "playbooks"
    folder.mkdir(parents=True)
    server = ScriptedServer(("127.0.0.1", 0), folder_library(tmp_path / "plays"))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    host = f"127.0.0.1:{server.server_address[1]}"
    settings.SCRIPTED_URL = f"http://{host}/v1"
    settings.MODEL_ALLOWED_HOSTS = {host}
    yield lambda text: (folder / "reference.yaml").write_text(text) and None
    server.shutdown()
    server.server_close()


@pytest.fixture
def scorer() -> Iterator[FakeEvaluator]:
    """An evaluator that finds an accuracy of 0.6 (80 points) in every bundle."""
    own = site_settings.EVALUATOR_KEY_PATH.read_bytes()
    site = site_settings.SITE_KEY_PATH.with_suffix(".pub").read_bytes()
    fake = FakeEvaluator(lambda request: Verdict(accuracy=0.6), own_key=own, site_public=site)
    with evaluator_instead(fake):
        yield fake


@pytest.fixture
def queue(team: Team, alice: User, version: TaskVersion) -> Callable[..., Run]:
    """Queues a run of the example task with the scripted agent."""

    def make(text: str = CONFIG, *, by_team: Team | None = None, **facts) -> Run:
        whose = by_team or team
        config = config_create(team=whose, text=text, by=alice)
        return run_queue(team=whose, config=config, task_version=version, by=alice, **facts)

    return make
