"""Bundles: the same files are the same bytes, and only paths inside the workspace get in."""

import hashlib
import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.scoring.bundle import bundle_key, bundle_write

NAMES = st.from_regex(r"[a-z0-9]{1,8}(/[a-z0-9.]{1,8}x){0,3}", fullmatch=True)


def written(files: dict[str, bytes], *, backwards: bool = False) -> tuple[str, bytes]:
    out = io.BytesIO()
    order = sorted(files, reverse=backwards)
    bundle = bundle_write([(name, files[name], len(files[name])) for name in order], out)
    assert bundle.size == len(out.getvalue())
    assert bundle.sha256 == hashlib.sha256(out.getvalue()).hexdigest()
    return bundle.sha256, out.getvalue()


@given(st.dictionaries(NAMES, st.binary(max_size=2000), max_size=6))
def test_the_order_of_files_changes_nothing(files: dict[str, bytes]) -> None:
    assert written(files) == written(files, backwards=True)


def test_entries_carry_nothing_of_the_machine() -> None:
    _, data = written({"b/two.csv": b"2", "a.csv": b"11"})
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        entries = tar.getmembers()
        assert [entry.name for entry in entries] == ["a.csv", "b/two.csv"]
        assert {(e.mtime, e.mode, e.uid, e.gid, e.uname, e.isreg()) for e in entries} == {(0, 0o644, 0, 0, "", True)}


def test_a_name_beyond_ascii_and_a_stream_are_fine() -> None:
    out = io.BytesIO()
    bundle_write([("data/größe.csv", io.BytesIO(b"12"), 2)], out)
    out.seek(0)
    with tarfile.open(fileobj=out) as tar:
        member = tar.extractfile("data/größe.csv")
        assert member is not None
        assert member.read() == b"12"


@pytest.mark.parametrize("name", ["/etc/passwd", "../x", "a/../b", "a//b", "", "a/./b", "a\0b"])
def test_a_path_that_climbs_out_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no path inside a workspace"):
        bundle_write([(name, b"", 0)], io.BytesIO())


def test_a_path_that_stands_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        bundle_write([("a", b"", 0), ("a", b"", 0)], io.BytesIO())


def test_a_bundle_is_named_by_its_hash() -> None:
    assert bundle_key("ab" * 32) == "bundles/" + "ab" * 32
