"""gymd as an ordinary user: the same walls, with nobody to change to."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gymnode.transport.base import NodeLink
from tests.node.machines import NodeRun, command_lines, gymd_end, local_link, node_python, open_folder, wait_until

USER = 64_001


@pytest.fixture(scope="module")
def ordinary_node() -> Iterator[NodeLink]:
    """gymd as a user without rights; as root one is made up for it."""
    folder = open_folder()
    python = node_python()
    if os.getuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("setpriv is missing: install util-linux")
        wrapper = folder / "python"
        wrapper.write_text(f'#!/bin/sh\nexec setpriv --reuid {USER} --regid {USER} --clear-groups {python} "$@"\n')
        wrapper.chmod(0o755)
        for name in ("gymd", "runs"):
            (folder / name).mkdir()
            os.chown(folder / name, USER, USER)
        python = str(wrapper)
    link = local_link(folder, python=python)
    yield link
    gymd_end(link)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["namespace", "landlock", "plain"])
def run(request: pytest.FixtureRequest, ordinary_node: NodeLink) -> Iterator[NodeRun]:
    """A run at each level."""
    hello = ordinary_node.request("GET", "/v1/hello").body
    reasons = {level["name"]: level["reason"] for level in hello["levels"] if not level["available"]}  # type: ignore[union-attr, index, call-overload]  # JSON
    if request.param in reasons:
        pytest.skip(f"{request.param}: {reasons[request.param]}")
    opened = NodeRun(ordinary_node, level=request.param)
    yield opened
    opened.close()


def test_sessions_prompts_and_files_work(run: NodeRun) -> None:
    assert run.sh("echo one > f; cat /workspace/f 2>/dev/null || cat f; (exit 4)")["code"] == 4
    assert run.op("file.lines", path="/workspace/f", start=1, count=1)["total_lines"] == 1
    assert run.sh("read -p 'name? ' name", timeout_s=60)["waiting_for_input"]
    run.op("session.input", session_id="main", text="x", press_enter=True)
    wait_until(lambda: run.op("session.idle", session_id="main")["idle"])


def test_walls_hold_against_other_runs_and_gymd(run: NodeRun) -> None:
    """A3: other runs of the same user, gymd's folder, its process."""
    if run.opened["level"] == "plain":
        pytest.skip("plain is no wall, and says so")
    other = NodeRun(run.link, level=str(run.opened["level"]), secrets={"TOKEN": "neighbours-secret-77"})
    other.sh("echo private > note; sleep 333 & echo started")
    hello = run.link.request("GET", "/v1/hello").body
    state = Path(str(run.opened["real_root"])).parents[2] / "gymd"
    ran = run.sh(
        f"cat {other.opened['real_root']}/note; find {state}; cat /proc/*/environ | tr '\\0' '\\n'; "
        f"kill -9 {hello['pid']}; pkill -9 -x sleep; true"
    )
    assert "private" not in ran["text"]
    assert "journal" not in ran["text"]
    assert "neighbours-secret-77" not in ran["text"]
    assert run.link.request("GET", "/v1/hello").body["pid"] == hello["pid"]
    assert other.op("session.list")["sessions"][0]["background_pids"]
    other.close()


def test_nothing_is_left_after_close(run: NodeRun) -> None:
    """R7: also without a user per run, what forked away is found and ended."""
    mark = f"{run.name}-daemon"
    sleeps = f"bash -c 'exec -a {mark} sleep 777'"
    run.sh(f"(setsid setsid {sleeps} &); nohup {sleeps} >/dev/null 2>&1 & true")
    wait_until(lambda: command_lines().count(mark.encode()) == 2)
    assert run.post("close", remove=False)["left"] == []
    assert mark.encode() not in command_lines()
    run.post("open", level=run.opened["level"], allow_plain=True)
    assert run.sh("echo again")["text"] == "again\n"
