"""Clients with tokens, a task that may be submitted on, and one run with a bit of everything."""

from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client

from portal.accounts.models import User
from portal.accounts.tokens import token_create
from portal.catalog.models import TaskVersion
from portal.leaderboard.models import Board
from tests.site.leaderboard.world import board_made, version_made


@pytest.fixture(autouse=True)
def blobs_here(settings, tmp_path: Path) -> None:
    settings.BLOBS_URL = f"file://{tmp_path}/blobs"


@pytest.fixture
def version(db: None, tmp_path: Path) -> TaskVersion:
    return version_made(tmp_path / "package")


@pytest.fixture
def board(version: TaskVersion) -> Board:
    return board_made()


@pytest.fixture
def token(db: None) -> Callable[..., Client]:
    """A client that carries a token of a user."""

    def make(user: User, *scopes: str) -> Client:
        made = token_create(user=user, name="test", scopes=list(scopes or ("read", "run", "admin")))
        return Client(headers={"Authorization": f"Bearer {made.value.reveal()}"})

    return make
