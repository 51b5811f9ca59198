"""Nodes for this folder: each server is started once per test process, each test opens a run of its own."""

import shutil
from collections.abc import Iterator

import pytest

from gymnode.transport.base import NodeLink
from gymnode.transport.ssh import SshLink
from tests.node.machines import (
    SSHD,
    NodeRun,
    embedded_node,
    gymd_end,
    local_link,
    open_folder,
    openssh_node,
    skip_unless_offered,
)


@pytest.fixture(scope="session")
def local_node() -> Iterator[NodeLink]:
    """gymd on this machine without SSH."""
    folder = open_folder()
    link = local_link(folder)
    yield link
    gymd_end(link)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session", params=["embedded", "openssh"])
def node(request: pytest.FixtureRequest) -> Iterator[NodeLink]:
    """A node behind real SSH: the embedded one and OpenSSH's."""
    if request.param == "openssh" and not SSHD:
        pytest.skip("no sshd here: install openssh-server")
    folder = open_folder()
    with (embedded_node if request.param == "embedded" else openssh_node)(folder) as door:
        link = SshLink(door.target())
        yield link
        gymd_end(link)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def run(node: NodeLink) -> Iterator[NodeRun]:
    """A run behind SSH at the best level."""
    opened = NodeRun(node)
    yield opened
    opened.close()


@pytest.fixture(params=["namespace", "landlock"])
def walled(request: pytest.FixtureRequest, local_node: NodeLink) -> Iterator[NodeRun]:
    """A run at each isolation level this machine offers."""
    skip_unless_offered(local_node, request.param)
    opened = NodeRun(local_node, level=request.param, secrets={"API_KEY": "s3cr3t-value-0001"})
    yield opened
    opened.close()
