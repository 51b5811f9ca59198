"""ruff, mypy and what the project may not hold: addresses of registries, paths of a machine, third-party files."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.architecture.test_sizes import ROOT, tracked

BIN = Path(sys.executable).parent
# Put together from pieces, so that this file doesn't trip over itself.
REGISTRIES = ["pypi" + ".org", "pythonhosted" + ".org", "npmjs" + ".org", "npmjs" + ".com", "deb.debian" + ".org"]


def run(*command: str, **more: str) -> tuple[int, str]:
    """Exit status and the end of what a program says; `more` are variables of its environment."""
    env = {**os.environ, **more}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=env)
    return done.returncode, (done.stdout + done.stderr)[-6000:]


def test_ruff_finds_nothing() -> None:
    status, output = run(str(BIN / "ruff"), "check", ".")
    assert status == 0, output


def test_ruff_would_format_nothing() -> None:
    status, output = run(str(BIN / "ruff"), "format", "--check", ".")
    assert status == 0, output


def test_mypy_strict_is_clean(tmp_path: Path) -> None:
    """Django's plugin loads the settings, whose folder mypy would leave behind."""
    status, output = run(str(BIN / "mypy"), IB_TEST_HOME=str(tmp_path))
    assert status == 0, output


def test_no_registry_is_named_and_no_lock_holds_an_address() -> None:
    offenders = []
    for path in tracked(
        ".py", ".lock", ".json", ".toml", ".md", ".in", ".yaml", ".html", ".npmrc", "Makefile", "install"
    ):
        if path.parent.name == "architecture":
            continue
        text = path.read_text(errors="replace")
        if any(host in text for host in REGISTRIES) or '"resolved"' in text:
            offenders.append(str(path.relative_to(ROOT)))
    assert not offenders


def test_no_path_of_a_developers_machine_is_in_the_project() -> None:
    pattern = re.compile(r"(?<![\w.])/(?:work|farm|home/[a-z]+|root)/")
    offenders = []
    for path in tracked(".py", ".md", ".toml", ".yaml", ".html", ".css", ".js", "Makefile"):
        if path.parent.name == "architecture":
            continue
        offenders += [f"{path.relative_to(ROOT)}: {hit.group()}" for hit in pattern.finditer(path.read_text())]
    assert not offenders
