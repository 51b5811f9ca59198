"""Every catalog test has the six domains and a blob store of its own."""

from pathlib import Path

import pytest

from portal.catalog.models import TaskVersion
from portal.catalog.packed import packed_read
from portal.catalog.services import domain_rows_ensure, task_version_import
from tests.site.catalog.packages import packed_folder


@pytest.fixture(autouse=True)
def catalog(db: None, settings, tmp_path: Path) -> None:
    settings.BLOBS_URL = f"file://{tmp_path}/blobs"
    domain_rows_ensure()


@pytest.fixture
def version(tmp_path: Path) -> TaskVersion:
    return task_version_import(packed=packed_read(packed_folder(tmp_path / "package")), by=None)
