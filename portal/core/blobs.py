"""Room: portal.core. The blob store: a port with two implementations, files and S3. The one importer of boto3.

Keys are ours (`bundles/<sha256>`, `tasks/<digest>/public.tar`), never a name that somebody brought.
"""

import os
import re
import shutil
import tempfile
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import IO, Protocol
from urllib.parse import parse_qs, unquote, urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext_lazy as _

from portal.core.errors import Missing, Unavailable

KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*")
IN_MEMORY_BYTES = 8 * 1024 * 1024


class BlobMissing(Missing):
    """The store has nothing under that key."""

    code = "blob_missing"
    template = _("The stored file {name} is missing.")

    def __init__(self, key: str) -> None:
        super().__init__(name=key)


class BlobsUnavailable(Unavailable):
    """The store does not answer or refuses us."""

    code = "blobs_unavailable"


class BlobStore(Protocol):
    """Bytes by key. A `put` is seen whole or not at all; putting the same key again replaces it."""

    def put(self, key: str, data: bytes | IO[bytes]) -> None: ...

    def get(self, key: str) -> bytes:
        """All bytes. Raises BlobMissing."""

    def open(self, key: str) -> IO[bytes]:
        """A seekable reader; close it. Raises BlobMissing."""

    def exists(self, key: str) -> bool: ...

    def size(self, key: str) -> int:
        """In bytes. Raises BlobMissing."""

    def delete(self, key: str) -> None:
        """Nothing under the key afterwards; deleting twice is no fault."""

    def address(self, key: str, expires_s: int) -> str:
        """Where another program of this installation reads the blob: an absolute path, or a URL that ends after
        `expires_s` seconds. Raises BlobMissing.
        """


def blobs() -> BlobStore:
    """The installation's store, by `settings.BLOBS_URL` (`file:///folder`, `s3://bucket?endpoint=https://...`)."""
    return _store(settings.BLOBS_URL)


@lru_cache(maxsize=8)
def _store(url: str) -> BlobStore:
    parts = urlsplit(url)
    if parts.scheme == "file" and not parts.netloc and parts.path:
        return FileBlobs(Path(unquote(parts.path)))
    if parts.scheme == "s3" and parts.netloc:
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        return S3Blobs(
            parts.netloc,
            prefix=unquote(parts.path).strip("/"),
            endpoint=query.get("endpoint"),
            region=query.get("region", "us-east-1"),
        )
    raise ImproperlyConfigured("BLOBS_URL must be file:///folder or s3://bucket?endpoint=https://host")


def _checked(key: str) -> str:
    if not KEY.fullmatch(key):
        raise ValueError(f"{key!r} is no blob key; keys are made of letters, digits, dots and slashes")
    return key


class FileBlobs:
    """Files below one folder. Folders can be entered but not listed by other users (0711), files read (0644): the
    evaluator has a user of its own, and a key that holds a SHA-256 can't be guessed.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def put(self, key: str, data: bytes | IO[bytes]) -> None:
        path = self._path(key)
        self._folder(path.parent)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".part-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                shutil.copyfileobj(BytesIO(data) if isinstance(data, bytes) else data, file, 1024 * 1024)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).chmod(0o644)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    def get(self, key: str) -> bytes:
        with self.open(key) as file:
            return file.read()

    def open(self, key: str) -> IO[bytes]:
        try:
            return self._path(key).open("rb")
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            raise BlobMissing(key) from None

    def exists(self, key: str) -> bool:
        return self._path(key).is_file()

    def size(self, key: str) -> int:
        path = self._path(key)
        if not path.is_file():
            raise BlobMissing(key)
        return path.stat().st_size

    def delete(self, key: str) -> None:
        self._path(key).unlink(missing_ok=True)

    def address(self, key: str, expires_s: int) -> str:
        if not self.exists(key):
            raise BlobMissing(key)
        return str(self._path(key))

    def _path(self, key: str) -> Path:
        return self.root / _checked(key)

    def _folder(self, folder: Path) -> None:
        # One by one: mkdir(parents=True) gives the parents the process's own mask.
        for path in [*reversed(folder.relative_to(self.root).parents), folder.relative_to(self.root)]:
            target = self.root / path
            if not target.is_dir():
                target.mkdir(mode=0o711, parents=target == self.root, exist_ok=True)


class S3Blobs:
    """A bucket of any S3-compatible server. Credentials come from the environment as boto3 reads them."""

    def __init__(self, bucket: str, *, prefix: str = "", endpoint: str | None = None, region: str) -> None:
        self.bucket = bucket
        self.prefix = f"{prefix}/" if prefix else ""
        # Path style and checksums only where required: what every compatible server understands.
        config = Config(
            signature_version="s3v4",
            s3={"addressing_style": "path"},
            retries={"max_attempts": 5, "mode": "standard"},
            connect_timeout=5,
            read_timeout=60,
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        self._client = boto3.client("s3", endpoint_url=endpoint, region_name=region, config=config)

    def put(self, key: str, data: bytes | IO[bytes]) -> None:
        stream = BytesIO(data) if isinstance(data, bytes) else data
        try:
            self._client.upload_fileobj(stream, self.bucket, self._name(key))
        except (BotoCoreError, ClientError) as problem:
            raise BlobsUnavailable(thing="S3") from problem

    def get(self, key: str) -> bytes:
        with self.open(key) as file:
            return file.read()

    def open(self, key: str) -> IO[bytes]:
        # Spooled, so that readers can seek as they can in a file.
        file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY_BYTES)  # noqa: SIM115  the caller closes it
        try:
            self._client.download_fileobj(self.bucket, self._name(key), file)
        except (BotoCoreError, ClientError) as problem:
            file.close()
            raise _translated(problem, key) from problem
        file.seek(0)
        return file

    def exists(self, key: str) -> bool:
        try:
            self.size(key)
        except BlobMissing:
            return False
        return True

    def size(self, key: str) -> int:
        try:
            return self._client.head_object(Bucket=self.bucket, Key=self._name(key))["ContentLength"]
        except (BotoCoreError, ClientError) as problem:
            raise _translated(problem, key) from problem

    def delete(self, key: str) -> None:
        try:
            self._client.delete_object(Bucket=self.bucket, Key=self._name(key))
        except (BotoCoreError, ClientError) as problem:
            raise BlobsUnavailable(thing="S3") from problem

    def address(self, key: str, expires_s: int) -> str:
        self.size(key)
        arguments = {"Bucket": self.bucket, "Key": self._name(key)}
        return self._client.generate_presigned_url("get_object", Params=arguments, ExpiresIn=expires_s)

    def bucket_ensure(self) -> None:
        """Make the bucket where it is missing (a fresh server of one's own)."""
        try:
            self._client.head_bucket(Bucket=self.bucket)
        except ClientError:
            self._client.create_bucket(Bucket=self.bucket)

    def _name(self, key: str) -> str:
        return self.prefix + _checked(key)


def _translated(problem: Exception, key: str) -> BlobMissing | BlobsUnavailable:
    if isinstance(problem, ClientError) and problem.response["Error"]["Code"] in {"404", "NoSuchKey", "NotFound"}:
        return BlobMissing(key)
    return BlobsUnavailable(thing="S3")
