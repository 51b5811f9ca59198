"""The instance's folder: made, or refused by name, before anything is started in it."""

import os
from pathlib import Path

import pytest

from portal.embedded.reach import closed_above, home_folder


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder whose every parent may be entered by all, as /var/lib is."""
    for parent in (tmp_path, *tmp_path.parents):
        if parent.stat().st_uid == os.getuid() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o011)
    assert closed_above(tmp_path) is None
    return tmp_path


def test_an_open_place_is_taken(place: Path) -> None:
    home = home_folder(place / "deep" / "home")
    assert home.stat().st_mode & 0o777 == 0o711


def test_a_closed_place_is_refused_by_name_where_other_users_must_enter(place: Path) -> None:
    (place / "closed").mkdir(mode=0o700)
    home = place / "closed" / "deep" / "home"
    if os.geteuid() != 0:
        assert home_folder(home).is_dir()  # every process is this user's
        return
    with pytest.raises(RuntimeError, match=f"{home} lies in {place / 'closed'}, which only its owner may enter"):
        home_folder(home)


def test_what_is_no_folder_is_refused_by_name(place: Path) -> None:
    (place / "file").write_text("x")
    for home in (place / "file", place / "file" / "home"):
        with pytest.raises(RuntimeError, match=f"the folder {home} can't be made or kept: "):
            home_folder(home)
