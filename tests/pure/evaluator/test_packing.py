"""Sealing, packing and opening; bundles; and tars and archives that strangers wrote."""

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from evaluator.archives import archive_unpack, kind_of
from evaluator.bundles import BundleBroken, OutputsInvalid, bundle_open
from evaluator.checking import check
from evaluator.packing import open_sealed, pack
from evaluator.seal import PART, SealBroken, identity_new, reseal, seal_stream, unseal_stream
from evaluator.tars import TarLimits
from evaluator.trees import Entry, file_sha256, tar_write
from evaluator.yamlcore import Faults
from tests.pure.evaluator.packages import package_write

MINE, TO_ME = identity_new()
THEIRS, TO_THEM = identity_new()


def test_a_seal_of_several_parts_opens_for_each_recipient_and_for_nobody_else(tmp_path: Path) -> None:
    plain = bytes(range(256)) * ((PART + 1000) // 256 + 1)
    seal_stream(io.BytesIO(plain), tmp_path / "s", [TO_ME, TO_THEM])
    for identity in (MINE, THEIRS):
        out = io.BytesIO()
        with (tmp_path / "s").open("rb") as stream:
            unseal_stream(stream, out, [identity])
        assert out.getvalue() == plain
    with (tmp_path / "s").open("rb") as stream, pytest.raises(SealBroken, match="these keys are here"):
        unseal_stream(stream, io.BytesIO(), [identity_new()[0]])


def test_a_damaged_or_cut_seal_is_refused(tmp_path: Path) -> None:
    seal_stream(io.BytesIO(b"x" * 1000), tmp_path / "s", [TO_ME])
    good = (tmp_path / "s").read_bytes()
    for bad in (
        good[:-1],
        good + b"x",
        good[:-9] + b"y" + good[-8:],
        b"",
        b"{}\n",
        b'{"sealed":1,"keys":[],"parts":[[-1,""]]}\n',
    ):
        with pytest.raises(SealBroken):
            unseal_stream(io.BytesIO(bad), io.BytesIO(), [MINE])


def test_packing_twice_gives_one_digest_and_resealing_keeps_it(tmp_path: Path) -> None:
    checked = check(package_write(tmp_path / "package"))
    first = pack(checked.folder, checked.manifest, [TO_ME], tmp_path / "one")
    second = pack(checked.folder, checked.manifest, [TO_ME, TO_THEM], tmp_path / "two")
    assert first.digest == second.digest == (tmp_path / "one" / "digest").read_text().strip()
    assert (tmp_path / "one" / "public.tar").read_bytes() == (tmp_path / "two" / "public.tar").read_bytes()
    reseal(tmp_path / "one" / "sealed.age", tmp_path / "three", [MINE], [TO_THEM])
    (tmp_path / "opened").mkdir()
    hidden = open_sealed(tmp_path / "three", [THEIRS], tmp_path / "opened", digest=first.digest)
    assert hidden.manifest == checked.manifest
    assert (hidden.folder / "evaluation" / "references" / "truth.csv").exists()


def test_a_seal_of_another_digest_is_refused(tmp_path: Path) -> None:
    checked = check(package_write(tmp_path / "package"))
    pack(checked.folder, checked.manifest, [TO_ME], tmp_path / "out")
    (tmp_path / "opened").mkdir()
    with pytest.raises(SealBroken, match="belongs to the digest"):
        open_sealed(tmp_path / "out" / "sealed.age", [MINE], tmp_path / "opened", digest="0" * 64)


def test_the_public_part_holds_nothing_hidden_and_keeps_empty_folders(tmp_path: Path) -> None:
    checked = check(package_write(tmp_path / "package"))
    (checked.folder / "workspace" / "data" / "outputs").mkdir()
    pack(checked.folder, checked.manifest, [TO_ME], tmp_path / "out")
    with tarfile.open(tmp_path / "out" / "public.tar") as tar:
        names = tar.getnames()
    assert "workspace/data/outputs" in names
    assert not any(name.startswith(("evaluation", "solutions", "task.yaml")) for name in names)


def bundle(folder: Path, *entries: Entry) -> tuple[Path, str]:
    path = folder / "bundle.tar"
    with path.open("wb") as stream:
        tar_write(entries, stream)
    return path, file_sha256(path)


def opened(tmp_path: Path, path: Path, sha256: str) -> Path:
    outputs = check(package_write(tmp_path / "package")).manifest.outputs
    (tmp_path / "into").mkdir()
    bundle_open(path, sha256, outputs, tmp_path / "into")
    return tmp_path / "into"


def test_a_bundle_is_unpacked_at_the_declared_paths(tmp_path: Path) -> None:
    into = opened(tmp_path, *bundle(tmp_path, Entry("data/outputs/predictions.csv", b"id,y\n")))
    assert (into / "data/outputs/predictions.csv").read_bytes() == b"id,y\n"


def test_a_missing_or_too_large_output_is_the_runs_own_fault(tmp_path: Path) -> None:
    with pytest.raises(OutputsInvalid, match=r"predictions.csv is missing"):
        opened(tmp_path, *bundle(tmp_path))


@pytest.mark.parametrize("name", ["other.csv", "../x", "/etc/x", "data/outputs/predictions.csv/../y", "a\\b"])
def test_undeclared_entries_break_a_bundle(tmp_path: Path, name: str) -> None:
    with pytest.raises(BundleBroken):
        opened(tmp_path, *bundle(tmp_path, Entry(name, b"x")))
    assert list((tmp_path / "into").rglob("*")) == [] or name == "other.csv"


def test_another_hash_breaks_a_bundle_before_it_is_opened(tmp_path: Path) -> None:
    path, _ = bundle(tmp_path, Entry("data/outputs/predictions.csv", b"x"))
    with pytest.raises(BundleBroken, match="SHA-256"):
        opened(tmp_path, path, "0" * 64)


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.GNUTYPE_SPARSE]
)
def test_links_devices_and_pipes_break_a_bundle(tmp_path: Path, kind: bytes) -> None:
    path = tmp_path / "bundle.tar"
    with tarfile.open(path, "w") as tar:
        info = tarfile.TarInfo("data/outputs/predictions.csv")
        info.type, info.linkname = kind, "/etc/passwd"
        tar.addfile(info)
    with pytest.raises(BundleBroken):
        opened(tmp_path, path, file_sha256(path))


def zipped(path: Path, *names: str, text: bytes = b"x", mode: int = 0o100644) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, text)
    return path


@pytest.mark.parametrize(
    "names", [["../x"], ["/x"], ["a/../../x"], ["a\\..\\x"], ["a", "A"], ["x", "x"], ["/".join("d" * 200)], ["n" * 300]]
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_names_that_climb_or_clash_are_refused_before_anything_is_written(tmp_path: Path, names: list[str]) -> None:
    """F2, F3"""
    (tmp_path / "into").mkdir()
    with pytest.raises(Faults):
        archive_unpack(zipped(tmp_path / "a.zip", "good", *names), tmp_path / "into")
    assert list((tmp_path / "into").iterdir()) == []


def test_bombs_links_and_crowds_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    """F2"""
    (tmp_path / "into").mkdir()
    bomb = zipped(tmp_path / "bomb.zip", "big", text=bytes(24 << 20))
    link = zipped(tmp_path / "link.zip", "link", text=b"/etc/passwd", mode=0o120777)
    crowd = zipped(tmp_path / "crowd.zip", *(f"f{number}" for number in range(50)))
    deflated = tmp_path / "bomb.tgz"
    with gzip.open(deflated, "wb") as out:
        tar_write([Entry("big", bytes(24 << 20))], out)  # type: ignore[arg-type]  # a GzipFile is a binary stream
    for path in (bomb, link, crowd, deflated):
        with pytest.raises(Faults):
            archive_unpack(path, tmp_path / "into", TarLimits(entries=40))
    assert list((tmp_path / "into").iterdir()) == []


def test_what_is_no_archive_is_told_by_what_it_is(tmp_path: Path) -> None:
    """F4"""
    page = tmp_path / "page.zip"
    page.write_text("<!DOCTYPE html><title>Sign in</title>")
    with pytest.raises(Faults, match="not a zip: text/html"):
        archive_unpack(page, tmp_path)
    assert kind_of(zipped(tmp_path / "a.zip", "a")) == "zip"
