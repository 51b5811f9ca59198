"""What a package must be before anything of it is stored."""

import tarfile
from pathlib import Path

import pytest

from portal.catalog.models import Task
from portal.catalog.packed import PackageFaults, packed_read, tar_faults
from tests.site.catalog.packages import FILES, MANIFEST, member, packed_folder, tar_of

BAD_MEMBERS = {
    "climbs out": (member("workspace/../../x"), "out of the package"),
    "absolute": (member("/etc/passwd"), "out of the package"),
    "backslash": (member("workspace\\x"), "backslash"),
    "control character": (member("workspace/a\nb"), "control character"),
    "symbolic link": (member("workspace/l", type=tarfile.SYMTYPE, linkname="/etc/passwd"), "a link"),
    "hard link": (member("workspace/h", type=tarfile.LNKTYPE, linkname="task_description.md"), "a link"),
    "device": (member("workspace/null", type=tarfile.CHRTYPE), "special file"),
    "fifo": (member("workspace/pipe", type=tarfile.FIFOTYPE), "special file"),
    "too deep": (member("workspace/" + "d/" * 200 + "x"), "deeper than"),
    "long name": (member("workspace/" + "n" * 256), "255 bytes"),
    "twin": (member("workspace/task/run.py", b"other"), "stands twice"),
    "twin by case": (member("workspace/task/RUN.py"), "only in case"),
    "not UTF-8": (member("workspace/\udcff"), "not UTF-8"),
    "hidden part": (member("evaluation/references/labels.csv", b"1"), "seal it"),
}


def with_member(extra: tuple[tarfile.TarInfo, bytes]) -> bytes:
    return tar_of([*(member(name, data) for name, data in FILES.items()), extra])


@pytest.mark.parametrize("kind", BAD_MEMBERS)
def test_a_public_part_with_a_bad_member_is_refused_and_the_member_named(tmp_path: Path, kind: str):
    """F2, F3"""
    extra, reason = BAD_MEMBERS[kind]
    with pytest.raises(PackageFaults, match=reason) as caught:
        packed_read(packed_folder(tmp_path / "p", public=with_member(extra)))
    assert caught.value.faults[0].file == "public.tar"
    assert not Task.objects.exists()
    assert not (tmp_path / "blobs").exists()


def test_names_that_differ_only_in_accents_are_twins(tmp_path: Path):
    """F3"""
    files = {**FILES, "workspace/caf\u00e9": b"1", "workspace/cafe\u0301": b"2"}
    with pytest.raises(PackageFaults, match="accents"):
        packed_read(packed_folder(tmp_path / "p", files=files))


def test_emoji_and_chinese_names_are_fine(tmp_path: Path):
    """F3"""
    files = {**FILES, "workspace/数据/😀.csv": b"1"}
    assert packed_read(packed_folder(tmp_path / "p", files=files)).hint


def test_a_file_that_only_claims_to_be_a_tar_is_named(tmp_path: Path):
    """F4"""
    page = tmp_path / "page.tar"
    page.write_text("<html><body>Not found</body></html>" * 40)
    assert "not a readable tar" in str(tar_faults(page)[0])


def test_a_tar_cut_short_or_overwritten_in_the_middle_is_refused(tmp_path: Path):
    """F5"""
    whole = with_member(member("workspace/big.bin", b"x" * 50_000))
    for name, data in {"cut": whole[:20_000], "overwritten": whole[:1024] + b"Z" * 512 + whole[1536:]}.items():
        path = tmp_path / f"{name}.tar"
        path.write_bytes(data)
        assert tar_faults(path), name


def test_a_compressed_tar_is_refused_before_it_inflates(tmp_path: Path):
    """F2"""
    path = tmp_path / "bomb.tar"
    with tarfile.open(path, "w:gz") as tar:
        tar.addfile(*_zeros(20_000_000))
    assert "not a readable tar" in str(tar_faults(path)[0])


def test_every_fault_of_a_package_comes_in_one_list(tmp_path: Path):
    extra = [BAD_MEMBERS["absolute"][0], BAD_MEMBERS["symbolic link"][0]]
    public = tar_of([*(member(name, data) for name, data in FILES.items()), *extra])
    folder = packed_folder(tmp_path / "p", public=public, manifest={"surprise": 1})
    (folder / "digest").write_text("no digest")
    (folder / "sealed.age").write_bytes(b"PK\x03\x04 references in the clear")
    with pytest.raises(PackageFaults) as caught:
        packed_read(folder)
    assert {fault.file for fault in caught.value.faults} >= {"manifest.json", "digest", "sealed.age", "public.tar"}
    assert caught.value.facts["count"] == len(caught.value.faults) >= 5


def test_a_folder_that_was_not_packed_names_what_is_missing(tmp_path: Path):
    (tmp_path / "task.yaml").write_text("id: x")
    with pytest.raises(PackageFaults) as caught:
        packed_read(tmp_path)
    assert [fault.file for fault in caught.value.faults] == ["public.tar", "sealed.age", "manifest.json", "digest"]


def test_a_task_that_asks_for_a_judge_is_refused_until_the_gateway_comes(tmp_path: Path):
    manifest = {**MANIFEST, "sandbox": {"judge": "model-x"}}
    with pytest.raises(PackageFaults, match="later release"):
        packed_read(packed_folder(tmp_path / "p", manifest=manifest))


def test_a_package_without_a_description_is_refused(tmp_path: Path):
    files = {"workspace/x": b"1"}
    with pytest.raises(PackageFaults, match=r"task_description\.md"):
        packed_read(packed_folder(tmp_path / "p", files=files))


def _zeros(size: int):
    info, _data = member("workspace/zeros")
    info.size = size
    return info, open("/dev/zero", "rb")  # noqa: PTH123  read once, by the tar
