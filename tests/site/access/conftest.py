"""One small world for every file about access."""

from pathlib import Path

import pytest

from tests.site.access.world import PEOPLE, World, world_made


@pytest.fixture
def world(team, alice, bob, charlie, dora, settings, tmp_path: Path) -> World:
    settings.BLOBS_URL = f"file://{tmp_path}/blobs"
    people = dict(zip(PEOPLE, (None, charlie, alice, bob, dora), strict=True))
    return world_made(people, team, tmp_path)
