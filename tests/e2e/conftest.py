"""One running site for all tests with a browser; the entropy task is built small, so its rows don't rank."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.stack import Stack, stack_up

expect.set_options(timeout=30_000)  # milliseconds; a busy machine may need some


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    """The whole site on free ports from 8400 on; `IB_E2E_HOME` names the instance folder of one that runs already."""
    lent = os.environ.get("IB_E2E_HOME")
    if lent:
        yield Stack(json.loads((Path(lent) / "state.json").read_text())["url"], Path(lent))
        return
    with stack_up(8400, "grpo-entropy-nano=small") as running:
        yield running


@pytest.fixture(scope="session")
def browser_type_launch_args() -> dict[str, object]:
    """The system's Chromium, headless; without its own calls to the outside."""
    return {
        "executable_path": chromium(),
        "headless": True,
        "args": ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"],
    }


def chromium() -> str:
    """Path of the browser that `.ci/system` made sure of."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name)
        if found:
            return found
    pytest.fail("no Chromium on PATH; run .ci/system")
