"""`manage.py demo` beside a site that runs: it finds it, plays its run there, tells score and addresses."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.stack import ROOT, Stack


def test_a_second_start_finds_the_first_and_plays_the_demo_there(stack: Stack) -> None:
    env = {**os.environ, "IB_HOME": str(stack.home), "DJANGO_SETTINGS_MODULE": "portal.settings.embedded"}
    command = [sys.executable, "manage.py", "demo", "--once"]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert f"running already: {stack.url}" in done.stdout
    assert "Score 80" in done.stdout
    assert f"{stack.url}/leaderboard/nano-public/" in done.stdout


@pytest.mark.parametrize("command", [["up"], ["demo", "--once"]])
def test_what_cannot_start_says_why_in_a_sentence(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    env = {**os.environ, "IB_HOME": str(tmp_path / "file"), "DJANGO_SETTINGS_MODULE": "portal.settings.embedded"}
    command = [sys.executable, "manage.py", *command]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert f"{tmp_path / 'file'}/keys/django_secret can't be read or made: Not a directory" in done.stderr
    assert "Traceback" not in done.stderr
