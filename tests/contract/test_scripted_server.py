"""The doors of the scripted server itself: whole replies, models, health, refusals, playbooks in folders."""

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from runs.agent.llm.scripted import library_of
from runs.agent.llm.scripted_server import ScriptedServer, WireError, folder_library, main
from runs.agent.protocols import (
    UnknownModel,
)
from tests.contract.llm_parts import STEPS
from tests.pure.agent.models import book

LIBRARY = library_of({("demo", "reference"): book(STEPS)})


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with ScriptedServer(("127.0.0.1", 0), LIBRARY, ["reference"]) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_the_server_answers_unstreamed_requests_too(address: str):
    body = {"model": "reference", "messages": [{"role": "user", "content": "Task: demo"}], "tools": [{}]}
    answer = httpx2.post(f"http://{address}/v1/chat/completions", json=body).json()
    message = answer["choices"][0]["message"]
    assert [call["id"] for call in message["tool_calls"]] == ["pb-0", "pb-0c1"]
    assert answer["usage"]["total_tokens"] > 0


def test_the_server_lists_its_models_and_its_health(address: str):
    assert [m["id"] for m in httpx2.get(f"http://{address}/v1/models").json()["data"]] == ["reference"]
    assert httpx2.get(f"http://{address}/healthz").json() == {"status": "ok"}
    assert httpx2.get(f"http://{address}/nothing").status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"messages": []},
        {"messages": [{"role": "user", "content": "no task"}]},
        {"messages": ["x"]},
        {
            "messages": [
                {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "x", "arguments": "{}"}}]}
            ]
        },
        {"messages": [{"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "x", "arguments": "["}}]}]},
        {"messages": [{"role": "tool", "tool_call_id": "a", "content": "x"}]},
    ],
)
def test_the_server_is_as_strict_as_a_real_provider(address: str, body: dict[str, Any]):
    """R13"""
    answer = httpx2.post(f"http://{address}/v1/chat/completions", json={"model": "reference", **body})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"]


def test_playbooks_are_read_from_the_tasks_folder(tmp_path: Any):
    folder = tmp_path / "demo" / "playbooks"
    folder.mkdir(parents=True)
    (folder / "reference.yaml").write_text("task: demo\nsteps: [{say: hello}]")
    assert folder_library(tmp_path)("demo", "reference").steps[0].say == "hello"
    for task, kind in [("demo", "../../x"), ("..", "x"), ("demo", "other")]:
        with pytest.raises(UnknownModel):
            folder_library(tmp_path)(task, kind)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("task: demo\nsteps: [{call: {eval: {}}}, {call: {run_command: '{'}}]", ""),
        ("task: demo\nsteps: []", "1 to 5000 steps"),
        ("task: other\nsteps: [{say: a}]", "it is for task `other`"),
        ("task: demo\nsteps: [{call: {run_comand: {}}}]", "step 0: There is no tool"),
        ("task: demo\nsteps: [{say: a}, {call: {sleep: {seconds: 0}}}]", "step 1: sleep was not carried out"),
    ],
)
def test_playbooks_are_checked_before_they_are_played(tmp_path: Any, capsys: Any, text: str, words: str):
    folder = tmp_path / "demo" / "playbooks"
    folder.mkdir(parents=True)
    (folder / "x.yaml").write_text(text)
    assert main(["--tasks", str(tmp_path), "--check"]) == (1 if words else 0)
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("books", "status", "words"),
    [
        ({("demo", "x"): book("\n  - say: a")}, 404, "has no playbook `reference`"),
        ({("other", "reference"): book("\n  - say: a")}, 422, "is for task `demo`"),
    ],
)
def test_the_server_tells_what_is_wrong_with_its_playbooks(books: Any, status: int, words: str):
    task = "other" if ("other", "reference") in books else "demo"
    with ScriptedServer(("127.0.0.1", 0), library_of(books)) as server, pytest.raises(WireError, match=words) as raised:
        server.answer({"model": "reference", "messages": [{"role": "user", "content": f"Task: {task}"}]}, "")
    assert raised.value.status == status


def test_the_server_runs_as_a_program():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = [sys.executable, "-m", "runs.agent.llm.scripted_server", "--port", str(port), "--tasks", "tasks"]
    with subprocess.Popen(program) as process:
        try:
            assert _health(port) == {"status": "ok"}
        finally:
            process.terminate()


def _health(port: int) -> Any:
    for _ in range(150):
        try:
            return httpx2.get(f"http://127.0.0.1:{port}/healthz").json()
        except httpx2.ConnectError:
            time.sleep(0.1)
    raise AssertionError("the server didn't start")
