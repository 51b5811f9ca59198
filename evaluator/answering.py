"""Room: evaluator. From a verified request to a result: fetch, check hashes, open the hidden part, score. No queue.

Our own faults (a hash that differs, a sealed part that can't be opened, no space) become `crashed`, never a 0; what
went wrong in detail is for curators, in `log_tail`.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import urllib.request
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO
from urllib.parse import unquote, urlsplit

from evaluator.bundles import BundleBroken, OutputsInvalid, bundle_open
from evaluator.contract import Outcome, ScoreRequest, ScoreResult
from evaluator.keys import Keys
from evaluator.packing import Hidden, open_sealed
from evaluator.results import message_clean
from evaluator.sandbox import Sandbox, SandboxMissing
from evaluator.scoring import Scored, score_outputs
from evaluator.seal import SealBroken
from evaluator.trees import chunks, file_sha256
from evaluator.users import NoUser

RELEASE = "1"
MAX_SEALED = 64 * 1024**3
_TIMEOUT_S = 60
_KEPT = 8
_PREFIX = "evaluator-"
OURS = "the scoring failed on our side; it does not count"  # whether it is tried again, the site knows


class FetchFailed(RuntimeError):
    """An address can't be read, lies where it must not, or holds more than announced."""


def fetch(address: str, into: Path, *, most: int, below: Path | None) -> None:
    """Copy what lies at a path, `file:` or `http(s):` address. Raises `FetchFailed`."""
    parts = urlsplit(address)
    try:
        if parts.scheme in {"http", "https"}:
            with urllib.request.urlopen(address, timeout=_TIMEOUT_S) as source, into.open("wb") as out:  # noqa: S310
                _copy(source, out, most)
            return
        path = Path(unquote(parts.path) if parts.scheme == "file" else address).resolve()
        if below is not None and not path.is_relative_to(below.resolve()):
            raise FetchFailed("the address lies outside of the blob folder (--blobs)")
        with path.open("rb") as source, into.open("wb") as out:
            _copy(source, out, most)
    except (OSError, ValueError) as error:
        raise FetchFailed(f"the address can't be read: {error}") from error


def _copy(source: IO[bytes], out: IO[bytes], most: int) -> None:
    total = 0
    for data in chunks(source):
        total += len(data)
        if total > most:
            raise FetchFailed(f"more than the {most} bytes announced")
        out.write(data)


def sweep(work: Path) -> None:
    """Remove what evaluators left that were killed: a living one holds a lock on its folder."""
    for path in work.glob(f"{_PREFIX}*"):
        try:
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue  # somebody else's, or gone
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue
        else:
            if os.fstat(handle).st_uid == os.geteuid():
                shutil.rmtree(path, ignore_errors=True)
        finally:
            os.close(handle)


class Answerer:
    """Scores requests one after the other; keeps the last few hidden parts open in a folder of its own."""

    def __init__(self, sandbox: Sandbox, keys: Keys, *, blobs: Path | None) -> None:
        self.keys = keys
        self.blobs = blobs
        sweep(sandbox.work)
        self.place = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=sandbox.work))
        self.place.chmod(0o711)  # sandboxes' own users pass through
        self.lock = os.open(self.place, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.folder = self.place / "opened"
        self.folder.mkdir(mode=0o700)  # references lie here in the clear
        self.sandbox = replace(sandbox, work=self.place)
        self.opened: dict[str, Hidden] = {}

    def close(self) -> None:
        """Remove every opened hidden part and every sandbox."""
        shutil.rmtree(self.place, ignore_errors=True)
        os.close(self.lock)

    def answer(self, request: ScoreRequest) -> ScoreResult:
        """The result to sign. Only faults of this machine escape, and none of a request's making."""
        try:
            scored = self._score(request)
        except (BundleBroken, SealBroken, FetchFailed, SandboxMissing, NoUser, OSError) as error:
            detail = f"{type(error).__name__}: {error}"
            scored = Scored(Outcome.CRASHED, {}, OURS, 0, self.sandbox.facts, detail)
        return self._result(request, scored)

    def gave_up(self, request: ScoreRequest, why: str) -> ScoreResult:
        """The result of a request that can't be scored here at all."""
        return self._result(request, Scored(Outcome.CRASHED, {}, OURS, 0, self.sandbox.facts, why))

    def _score(self, request: ScoreRequest) -> Scored:
        hidden = self._hidden(request)
        with tempfile.TemporaryDirectory(prefix="bundle-", dir=self.folder) as name:
            bundle, outputs = Path(name) / "bundle.tar", Path(name) / "outputs"
            outputs.mkdir()
            fetch(request.bundle_address, bundle, most=request.size, below=self.blobs)
            try:
                bundle_open(bundle, request.bundle_sha256, hidden.manifest.outputs, outputs)
            except OutputsInvalid as error:
                return Scored(Outcome.INVALID, {}, message_clean(str(error)), 0, self.sandbox.facts)
            return score_outputs(
                self.sandbox,
                manifest=hidden.manifest,
                evaluation=hidden.folder / "evaluation",
                outputs=outputs,
                seed=request.seed,
            )

    def _hidden(self, request: ScoreRequest) -> Hidden:
        known = self.opened.pop(request.sealed_sha256, None)
        if known is None:
            known = self._open(request)
        elif known.digest != request.task_digest:
            raise SealBroken("the sealed part belongs to another task digest")
        self.opened[request.sealed_sha256] = known  # the newest last
        while len(self.opened) > _KEPT:
            oldest = next(iter(self.opened))
            shutil.rmtree(self.opened.pop(oldest).folder, ignore_errors=True)
        return known

    def _open(self, request: ScoreRequest) -> Hidden:
        into = Path(tempfile.mkdtemp(prefix="hidden-", dir=self.folder))
        sealed = into.with_suffix(".age")
        try:
            fetch(request.sealed_address, sealed, most=MAX_SEALED, below=self.blobs)
            if file_sha256(sealed) != request.sealed_sha256:
                raise SealBroken("the sealed part's SHA-256 isn't the one in the request")
            return open_sealed(sealed, self.keys.identities, into, digest=request.task_digest)
        except BaseException:
            shutil.rmtree(into, ignore_errors=True)
            raise
        finally:
            sealed.unlink(missing_ok=True)

    def _result(self, request: ScoreRequest, scored: Scored) -> ScoreResult:
        public = scored.outcome is not Outcome.CRASHED
        return ScoreResult(
            evaluation=request.evaluation,
            try_no=request.try_no,
            nonce=request.nonce,
            task_digest=request.task_digest,
            bundle_sha256=request.bundle_sha256,
            outcome=scored.outcome,
            metrics=dict(scored.metrics),
            message=scored.message if public else OURS,
            seconds=scored.seconds,
            sandbox_level=self.sandbox.level,
            facts={**scored.facts, "evaluator": RELEASE},
            log_tail=scored.log_tail if public else f"{scored.message}\n{scored.log_tail}",
            finished_at=datetime.now(UTC),
        )
