"""A task to submit on, and a blob store of the test's own."""

from pathlib import Path

import pytest

from portal.catalog.models import TaskVersion
from tests.site.leaderboard.world import version_made


@pytest.fixture(autouse=True)
def blobs_here(request, settings, tmp_path: Path) -> None:
    settings.BLOBS_URL = f"file://{tmp_path}/blobs"


@pytest.fixture
def version(db: None, tmp_path: Path) -> TaskVersion:
    return version_made(tmp_path / "package")
