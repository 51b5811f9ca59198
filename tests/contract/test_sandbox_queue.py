"""The evaluator program behind a real queue: signed results, dead evaluators, its environment, its end."""

import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import pytest
import redis

from evaluator.answering import Answerer
from evaluator.checking import check
from evaluator.contract import ScoreRequest, ScoreResult, result_check, sign, verify
from evaluator.keys import keygen, keys_read
from evaluator.packing import Packed, pack
from evaluator.worker import GROUP, REQUESTS, RESULTS, Worker
from portal.embedded.valkey import Valkey
from runs.scoring.bundle import bundle_write
from tests.contract.sandbox_cases import ROOT, interpreter, public_folder
from tests.pure.evaluator.packages import CANARY, package_write

EVALUATE = f"""# {CANARY}
import json, os, time
from pathlib import Path
time.sleep(float(os.environ["SEED"]) / 10)
text = Path("../outputs/data/outputs/predictions.csv").read_text()
found = {{"valid": False, "message": "line 1: no head"}}
if text.startswith("id,y"): found = {{"valid": True, "metrics": {{"accuracy": 0.55, "length": len(text)}}}}
if "crash" in text: raise SystemExit(3)
Path("result.json").write_text(json.dumps({{"schema": 1, **found}}))
"""


class Stage:
    """Broker, keys, a packed task, and evaluators as processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.password = secrets.token_hex(8)
        self.valkey = Valkey(data=folder / "valkey", runtime=folder / "run")
        self.valkey.prepare(self.password)
        self.server = self.valkey.start(folder / "valkey.log")
        self.broker = redis.Redis.from_url(self.valkey.url)
        keygen(folder / "keys", with_site=True)
        checked = check(package_write(folder / "package", evaluation__evaluate_DOT_py=EVALUATE))
        recipient = (folder / "keys" / "recipient.txt").read_text()
        self.packed: Packed = pack(checked.folder, checked.manifest, [recipient], folder / "blobs")
        self.env_folder = interpreter(folder)
        self.work = folder / "work"
        self.work.mkdir(mode=0o711)
        self.programs: list[subprocess.Popen[bytes]] = []

    def start(self, *options: str, **environment: str) -> subprocess.Popen[bytes]:
        self.opened_before = self.opened()
        url = f"unix://evaluator:{self.password}@{self.valkey.socket}"
        command = [
            sys.executable,
            "-m",
            "evaluator",
            "serve",
            "--keys",
            self.folder / "keys",
            "--task-env",
            self.env_folder,
        ]
        env = {"PATH": os.environ["PATH"], "EVALUATOR_BROKER": url, **environment}
        more = ["--blobs", self.folder / "blobs", "--work", self.work, *options]
        log = (self.folder / "evaluator.log").open("ab")
        program = subprocess.Popen([*command, *more], cwd=ROOT, env=env, stdout=log, stderr=log)
        self.programs.append(program)
        return program

    def opened(self) -> set[Path]:
        """Hidden parts that lie open, those of dead evaluators too."""
        with suppress(FileNotFoundError):  # an evaluator that starts clears up after dead ones
            return set(self.work.glob("evaluator-*/opened/hidden-*/evaluation"))
        return set()

    def request(self, text: str, **changed: Any) -> ScoreRequest:
        data = bundle_bytes(text)
        path = self.folder / "blobs" / data[1]
        path.write_bytes(data[0])
        fields = {"evaluation": 1, "try_no": 1, "nonce": secrets.token_urlsafe(16), "task_digest": self.packed.digest}
        fields |= {
            "sealed_address": str(self.folder / "blobs" / "sealed.age"),
            "sealed_sha256": self.packed.sealed_sha256,
        }
        fields |= {"bundle_address": str(path), "bundle_sha256": data[1], "size": len(data[0]), "seed": 0}
        return ScoreRequest(**{**fields, "issued_at": datetime.now(UTC), **changed})

    def send(self, request: ScoreRequest, key: str = "site.pem") -> None:
        envelope = sign(request, (self.folder / "keys" / key).read_bytes())
        self.broker.xadd(REQUESTS, {"envelope": envelope})

    def results(self, count: int, within_s: float = 120) -> list[ScoreResult]:
        public = (self.folder / "keys" / "signing.pub.pem").read_bytes()
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            found: Any = self.broker.xrange(RESULTS)
            if len(found) >= count:
                return [verify(fields[b"envelope"], public) for _, fields in found]  # type: ignore[misc]
            time.sleep(0.05)
        raise AssertionError((self.folder / "evaluator.log").read_text())

    def wait_until_taken(self, within_s: float = 120) -> None:
        """Until the evaluator started last is in the middle of a scoring: it has opened the hidden part."""
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            if self.opened() - self.opened_before:
                return
            time.sleep(0.05)
        raise AssertionError((self.folder / "evaluator.log").read_text())

    def close(self) -> None:
        for program in self.programs:
            program.kill()
            program.wait()
        Valkey.stop(self.server)


def bundle_bytes(text: str) -> tuple[bytes, str]:
    """As the site writes them."""
    out = BytesIO()
    written = bundle_write([("data/outputs/predictions.csv", text.encode(), len(text))], out)
    return out.getvalue(), written.sha256


@pytest.fixture(scope="module")
def shared() -> Iterator[Stage]:
    folder = public_folder()
    stage = Stage(folder)
    yield stage
    stage.close()
    shutil.rmtree(folder)


@pytest.fixture
def stage(shared: Stage) -> Iterator[Stage]:
    shared.broker.flushall()
    yield shared
    for program in shared.programs:
        program.kill()
        program.wait()
    shared.programs.clear()


def test_requests_are_answered_with_signed_results(stage: Stage) -> None:
    requests = [stage.request(text) for text in ("id,y\n", "nonsense", "id,y crash")]
    requests.append(stage.request("id,y\n", size=3))
    for request in requests:
        stage.send(request)
    stage.start()
    good, bad, crashed, cut = stage.results(4)
    for request, result in zip(requests, (good, bad, crashed, cut), strict=True):
        result_check(result, request)
    assert (good.outcome, good.metrics) == ("valid", {"accuracy": 0.55, "length": 5.0})
    assert (bad.outcome, bad.message) == ("invalid", "line 1: no head")
    assert crashed.outcome == cut.outcome == "crashed"
    assert "code 3" in crashed.log_tail
    assert "code 3" not in crashed.message
    assert good.sandbox_level in {1, 2}
    deadline = time.monotonic() + 60
    while stage.broker.xlen(REQUESTS):  # a request goes after its result went out
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_what_the_site_did_not_sign_gets_no_answer(stage: Stage) -> None:
    stage.send(stage.request("id,y\n"), key="signing.pem")
    stage.broker.xadd(REQUESTS, {"envelope": b"rubbish"})
    stage.broker.xadd(REQUESTS, {"other": b"rubbish"})
    good = stage.request("id,y\n", evaluation=9)
    stage.send(good)
    stage.start()
    assert [result.evaluation for result in stage.results(1)] == [9]
    assert stage.broker.xlen(RESULTS) == 1


def test_a_request_of_a_dead_evaluator_is_scored_by_the_next(stage: Stage) -> None:
    stage.send(stage.request("id,y\n", seed=30))
    first = stage.start()
    stage.wait_until_taken()
    first.kill()
    first.wait()
    assert stage.opened()
    stage.start("--idle-s", "1")
    assert stage.results(1)[0].outcome == "valid"
    assert len(list(stage.work.iterdir())) == 1  # what the dead one had opened is gone


def test_an_evaluator_started_under_the_same_name_goes_on_at_once(stage: Stage) -> None:
    stage.send(stage.request("id,y\n", seed=30))
    first = stage.start("--name", "one")
    stage.wait_until_taken()
    first.kill()
    first.wait()
    stage.start("--name", "one", "--idle-s", "3600")
    assert stage.results(1)[0].outcome == "valid"


def test_no_entry_is_taken_before_the_one_at_hand_is_done(stage: Stage) -> None:
    """Entries that aren't signed: finishing one needs no sandbox."""
    keys = keys_read(stage.folder / "keys", None)
    worker = Worker(stage.broker, cast("Answerer", None), keys, "one", idle_ms=0)
    worker.join()
    for _ in range(2):
        stage.broker.xadd(REQUESTS, {"envelope": b"rubbish"})
    stage.broker.xreadgroup(GROUP, "dead", {REQUESTS: ">"}, count=1)
    assert worker.one()
    groups: Any = stage.broker.xinfo_groups(REQUESTS)
    assert (stage.broker.xlen(REQUESTS), groups[0]["pending"]) == (1, 0)


def test_a_request_that_is_being_scored_is_left_alone_by_the_others(stage: Stage) -> None:
    stage.send(stage.request("id,y\n", seed=30))
    stage.start("--idle-s", "1")
    stage.start("--idle-s", "1")
    stage.results(1)
    time.sleep(1.5)
    assert stage.broker.xlen(RESULTS) == 1


def test_the_same_request_twice_is_scored_once_and_answered_twice(stage: Stage) -> None:
    request = stage.request("id,y\n")
    stage.send(request)
    stage.send(request)
    stage.start()
    one, two = stage.results(2)
    assert one == two


def test_any_other_variable_stops_the_start_and_is_named(stage: Stage) -> None:
    program = stage.start(DATABASE_URL="postgres://x")
    assert program.wait(120) == 78
    assert "DATABASE_URL" in (stage.folder / "evaluator.log").read_text()


def test_sigterm_ends_it_cleanly_in_the_middle_of_a_scoring(stage: Stage) -> None:
    stage.send(stage.request("id,y\n", seed=900))
    program = stage.start()
    stage.wait_until_taken()
    program.terminate()
    assert program.wait(60) == 0
    assert stage.broker.xlen(REQUESTS) == 1
    assert stage.broker.xlen(RESULTS) == 0
