"""A run's disk limit: no single file passes it, and what goes on growing above it is ended."""

import os
import shutil
from collections.abc import Iterator

import pytest

from gymnode.transport.base import NodeLink
from tests.node.machines import NodeRun, gymd_end, local_link, open_folder, skip_unless_offered, wait_until

LIMIT_GB = 0.02
MB = "head -c 1000000 /dev/zero"


def _full(run: NodeRun) -> bool:
    return bool(run.send("file.write", {"path": "more.txt", "data": "eA=="}).status == 507)


@pytest.fixture(scope="module")
def watchful_node() -> Iterator[NodeLink]:
    """gymd that counts twice a second."""
    folder = open_folder()
    link = local_link(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GYMD_DISK_EVERY_S", "0.5")
        link.request("GET", "/v1/hello")
    yield link
    gymd_end(link)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["namespace", "landlock"])
def small(request: pytest.FixtureRequest, watchful_node: NodeLink) -> Iterator[NodeRun]:
    """A run that may keep 20 MB, at each isolation level this machine offers."""
    skip_unless_offered(watchful_node, request.param)
    run = NodeRun(watchful_node, level=request.param, limits={"disk_gb": LIMIT_GB})
    yield run
    run.close()


def test_no_file_passes_the_limit(small: NodeRun) -> None:
    """Files with holes: they take no room, so that counting has no part in it."""
    python = "f = open('more', 'wb'); f.seek(30000000); f.write(b'0'); f.close()"
    ran = small.sh(f'dd if=/dev/zero of=big bs=1 count=1 seek=30000000; echo code $?; python3 -c "{python}"')
    assert "code 0" not in ran["text"]
    assert "File too large" in ran["text"]
    sizes = small.sh("stat -c %s big more")["text"].split()
    assert all(int(size) <= 20_000_000 for size in sizes), sizes
    assert small.sh("head -c 1000000 /dev/zero > fine; stat -c %s fine")["text"].split() == ["1000000"]


def test_shared_memory_is_no_way_around_the_limit(small: NodeRun) -> None:
    """In a namespace it is bounded, else it counts; nothing else that lies in memory takes a file."""
    if small.opened["level"] != "namespace" and os.getuid() != 0:
        pytest.skip("runs share a user here: whose shared memory it is can't be told")
    small.sh("for n in 1 2 3; do head -c 15000000 /dev/zero > /dev/shm/$$.$n; done; echo > /file; echo > /dev/file")
    if small.opened["level"] != "namespace":
        wait_until(lambda: _full(small))
    ran = small.sh("cat /dev/shm/$$.* | wc -c; ls /file /dev/file 2>/dev/null; echo x > /dev/null")
    assert _full(small) or int(ran["text"].split()[0]) <= 20_100_000, ran["text"]
    assert "file" not in ran["text"]


def test_a_file_without_a_name_counts_while_it_is_open(small: NodeRun) -> None:
    """Deleted, but held by a descriptor."""
    ran = small.sh(
        'for n in 5 6 7; do eval "exec $n>gone; rm gone; head -c 9000000 /dev/zero >&$n"; done; sleep 20; echo no'
    )
    assert ran["job"]["state"] == "killed", ran["text"]


def test_files_without_a_byte_count_too(small: NodeRun) -> None:
    ran = small.sh("mkdir many; cd many; seq 20000 | xargs touch; sleep 5")
    assert ran["job"]["state"] == "killed", ran["text"]
    assert small.send("file.write", {"path": "more.txt", "data": "eA=="}).status == 507


def test_a_command_that_was_ended_is_no_success(small: NodeRun) -> None:
    ran = small.sh(f"for n in $(seq 30); do {MB} > part.$n; done; sleep 20; true")
    assert ran["job"]["state"] == "killed"


def test_what_grows_above_the_limit_is_ended_and_told_why(small: NodeRun) -> None:
    ran = small.sh(f"n=0; while sleep 0.02; do {MB} > part.$n; n=$((n + 1)); done")
    assert ran["job"]["state"] == "killed"
    assert "its limit is 0.02 GB: what ran was ended; delete files before going on" in ran["text"]
    refused = small.send("file.write", {"path": "more.txt", "data": "eA=="})
    assert (refused.status, refused.body["code"]) == (507, "storage_full"), refused.body


def test_a_shell_that_goes_on_by_itself_is_ended_too(small: NodeRun) -> None:
    """The shell ignores the interrupt and needs no program to write."""
    loop = "trap '' INT; n=0; while :; do printf '%040000d' 7 > part.$n; n=$((n + 1)); done"
    assert small.sh(loop)["job"]["state"] == "killed"
    assert small.sh("echo alive")["code"] == 0


def test_a_full_run_can_tidy_up_and_goes_on(small: NodeRun) -> None:
    small.sh(f"for n in $(seq 30); do {MB} > part.$n; done")
    wait_until(lambda: small.send("file.write", {"path": "more.txt", "data": "eA=="}).status != 200)
    # What grew after one look is seen by the next, which may end the first try.
    wait_until(lambda: small.sh("sleep 1; rm -f part.*; sleep 1.5")["code"] == 0)
    wait_until(lambda: small.send("file.write", {"path": "more.txt", "data": "eA=="}).status == 200)


def test_other_runs_are_let_alone(small: NodeRun, watchful_node: NodeLink) -> None:
    other = NodeRun(watchful_node)
    started = other.sh("sleep 300", wait=False)
    small.sh(f"while sleep 0.02; do {MB} > part.$RANDOM; done")
    assert other.op("session.list")["sessions"][0]["state"] == "busy", started
    other.close()
