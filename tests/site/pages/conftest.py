"""Every page test has a blob store of its own."""

from pathlib import Path

import pytest

from portal.accounts.models import Team, User
from portal.catalog.models import TaskVersion
from runs.models.run import Run
from tests.site.pages.world import run_full, run_made, version_made


@pytest.fixture(autouse=True)
def blobs_here(db: None, settings, tmp_path: Path) -> None:
    settings.BLOBS_URL = f"file://{tmp_path}/blobs"


@pytest.fixture
def version(tmp_path: Path) -> TaskVersion:
    return version_made(tmp_path / "package")


@pytest.fixture
def run(team: Team, alice: User, version: TaskVersion) -> Run:
    return run_full(run_made(team, alice, version))
