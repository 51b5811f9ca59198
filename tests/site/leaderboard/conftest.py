"""Boards with real tasks: one nano task here, the twenty published ones."""

from pathlib import Path

import pytest

from portal.catalog.models import TaskVersion
from portal.catalog.services import catalog_import_published
from portal.leaderboard.boards import boards_ensure
from portal.leaderboard.models import Board
from portal.leaderboard.published import published_import
from tests.site.leaderboard.world import board_made, version_made


@pytest.fixture(autouse=True)
def blobs_here(db: None, settings, tmp_path: Path) -> None:
    settings.BLOBS_URL = f"file://{tmp_path}/blobs"


@pytest.fixture
def version(tmp_path: Path) -> TaskVersion:
    return version_made(tmp_path / "package")


@pytest.fixture
def board(version: TaskVersion) -> Board:
    """`nano-public` with one column."""
    return board_made()


@pytest.fixture
def published(db: None) -> Board:
    """`innovatorbench-20` with its reported rows."""
    catalog_import_published()
    boards_ensure()
    published_import()
    return Board.objects.get(slug="innovatorbench-20")
