"""One contract over both blob stores: files, and a real S3 server."""

import hashlib
import io
import os
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from portal.core.blobs import BlobMissing, BlobStore, BlobsUnavailable, FileBlobs, S3Blobs, blobs
from tests.contract.s3_server import S3Server, free_ports, s3_server

BIG = os.urandom(1024 * 1024) * 12


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3")) as running, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", running.access_key)
        patch.setenv("AWS_SECRET_ACCESS_KEY", running.secret_key)
        S3Blobs("suite", endpoint=running.endpoint, region="us-east-1").bucket_ensure()
        yield running


@pytest.fixture(params=["files", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> BlobStore:
    if request.param == "files":
        return FileBlobs(tmp_path / "blobs")
    endpoint = request.getfixturevalue("server").endpoint
    return S3Blobs("suite", prefix=tmp_path.name, endpoint=endpoint, region="us-east-1")


def read_address(address: str) -> bytes:
    if address.startswith("http"):
        with urllib.request.urlopen(address, timeout=10) as reply:
            return reply.read()
    return Path(address).read_bytes()


@pytest.mark.parametrize("data", [b"", b"a\0b\xff", BIG], ids=["empty", "bytes", "12 MiB"])
def test_what_was_put_comes_back_whole(store: BlobStore, data: bytes):
    store.put("bundles/one", data)
    assert hashlib.sha256(store.get("bundles/one")).digest() == hashlib.sha256(data).digest()
    assert (store.exists("bundles/one"), store.size("bundles/one")) == (True, len(data))


def test_a_stream_is_stored_from_where_it_stands(store: BlobStore):
    stream = io.BytesIO(b"skipped" + BIG)
    stream.seek(7)
    store.put("tasks/a/public.tar", stream)
    assert store.size("tasks/a/public.tar") == len(BIG)


def test_an_open_blob_can_be_read_in_parts_and_sought(store: BlobStore):
    store.put("parts", b"0123456789")
    with store.open("parts") as file:
        assert file.read(3) == b"012"
        file.seek(8)
        assert file.read() == b"89"


def test_putting_again_replaces(store: BlobStore):
    store.put("same", b"first, and longer")
    store.put("same", b"second")
    assert store.get("same") == b"second"


def test_deleting_twice_is_no_fault(store: BlobStore):
    store.put("gone", b"x")
    store.delete("gone")
    store.delete("gone")
    assert not store.exists("gone")


def test_a_missing_blob_is_named_by_every_verb(store: BlobStore):
    for verb in (store.get, store.open, store.size, lambda key: store.address(key, 60)):
        with pytest.raises(BlobMissing, match="bundles/none") as caught:
            verb("bundles/none")
        assert caught.value.status == 404


def test_another_program_reads_the_address_without_our_credentials(store: BlobStore):
    store.put("bundles/two", BIG)
    assert read_address(store.address("bundles/two", 60)) == BIG


@pytest.mark.parametrize(
    "key", ["", "../x", "/etc/passwd", "a/../b", "a//b", "a/", ".hidden", "a b", "a\0", "a\n", "ü"]
)
def test_a_key_that_is_not_ours_is_refused(store: BlobStore, key: str):
    """F3"""
    for verb in (store.get, store.exists, store.delete, lambda name: store.put(name, b"")):
        with pytest.raises(ValueError, match="no blob key"):
            verb(key)


def test_writers_of_one_key_never_mix(store: BlobStore):
    pieces = [bytes([letter]) * 300_000 for letter in b"abcdefgh"]
    threads = [threading.Thread(target=store.put, args=("race", piece)) for piece in pieces]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.get("race") in pieces


def test_files_can_be_read_but_not_listed_by_another_user(tmp_path: Path):
    store = FileBlobs(tmp_path / "blobs")
    store.put("bundles/x", b"1")
    modes = [(tmp_path / "blobs" / part).stat().st_mode & 0o777 for part in ("", "bundles", "bundles/x")]
    assert modes == [0o711, 0o711, 0o644]


def test_a_broken_write_leaves_neither_blob_nor_remains(tmp_path: Path):
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise OSError("the disk of the sender")

    store = FileBlobs(tmp_path / "blobs")
    with pytest.raises(OSError, match="sender"):
        store.put("bundles/x", Broken())
    assert list((tmp_path / "blobs" / "bundles").iterdir()) == []


def test_a_presigned_address_ends(server: S3Server):
    store = S3Blobs("suite", endpoint=server.endpoint, region="us-east-1")
    store.put("short", b"1")
    address = store.address("short", 1)
    time.sleep(2.1)
    with pytest.raises(urllib.error.HTTPError, match="403"):
        read_address(address)


def test_a_store_that_does_not_answer_says_so(server: S3Server):
    [port] = free_ports(1)
    store = S3Blobs("suite", endpoint=f"http://127.0.0.1:{port}", region="us-east-1")
    with pytest.raises(BlobsUnavailable, match="S3 does not answer"):
        store.get("x")


def test_the_address_in_the_settings_chooses_the_store(settings, tmp_path: Path, server: S3Server):
    settings.BLOBS_URL = f"file://{tmp_path}/my%20blobs"
    assert blobs().root == tmp_path / "my blobs"
    settings.BLOBS_URL = f"s3://suite/site?endpoint={server.endpoint}"
    blobs().put("x", b"1")
    assert S3Blobs("suite", endpoint=server.endpoint, region="us-east-1").get("site/x") == b"1"


@pytest.mark.parametrize("url", ["", "file://relative/path", "s3://", "https://bucket", "/folder"])
def test_an_address_that_names_no_store_stops_with_what_it_should_be(settings, url: str):
    settings.BLOBS_URL = url
    with pytest.raises(ImproperlyConfigured, match="BLOBS_URL must be"):
        blobs()
