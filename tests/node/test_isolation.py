"""What the agent must not reach, at each isolation level, and that nothing of a run outlives it."""

import os
import resource
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gymnode.transport.base import NodeLink
from tests.node.machines import (
    NodeRun,
    command_lines,
    gymd_end,
    local_link,
    node_python,
    open_folder,
    skip_unless_offered,
    wait_until,
)

SECRET = "s3cr3t-value-0001"


@pytest.fixture
def neighbour(walled: NodeRun) -> Iterator[NodeRun]:
    """Another run on the same node at the same level, with a file and a process of its own."""
    other = NodeRun(walled.link, level=str(walled.opened["level"]), secrets={"OTHER": "neighbours-secret-77"})
    other.sh("echo private > note; chmod 777 . note; sleep 444 & echo started")
    yield other
    other.close()


def test_other_runs_folders_are_not_there(walled: NodeRun, neighbour: NodeRun) -> None:
    """A3: other runs' folders, read by path, through /proc and through a link."""
    path = Path(neighbour.opened["real_root"])
    ran = walled.sh(f"cat {path}/note; ls {path}; ln -s {path}/note link; cat link; cat /proc/[0-9]*/root{path}/note")
    assert "private" not in ran["text"]
    listed = walled.send("file.list", {"path": str(path)})
    assert listed.status in (403, 404)


def test_proc_tells_nothing_of_others(walled: NodeRun, neighbour: NodeRun) -> None:
    """A3: environments, memory and descriptors of other processes."""
    ran = walled.sh("cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | sort -u; cat /proc/1/environ /proc/1/mem")
    assert "neighbours-secret-77" not in ran["text"]
    assert neighbour.name not in ran["text"]


def test_processes_of_others_cannot_be_signalled(walled: NodeRun, neighbour: NodeRun) -> None:
    hello = walled.link.request("GET", "/v1/hello").body
    walled.sh(f"kill -9 {hello['pid']}; kill -9 {os.getpid()}; pkill -9 -x sleep; true")
    assert walled.link.request("GET", "/v1/hello").body["pid"] == hello["pid"]
    assert neighbour.op("session.list")["sessions"][0]["background_pids"]


def test_the_kernel_takes_the_run_first_when_memory_runs_out(walled: NodeRun) -> None:
    ran = walled.sh("cat /proc/self/oom_score_adj")
    assert ran["text"].split()[-1] == "1000"


def test_system_and_gymd_are_closed(walled: NodeRun) -> None:
    state = Path(str(walled.opened["real_root"])).parents[1].parent / "gymd"
    ran = walled.sh(f"cat /etc/shadow; ls /root; ls {state}; find {state}; touch /usr/mine /etc/mine; id -u")
    assert "root:" not in ran["text"]
    assert "journal" not in ran["text"]
    assert not Path("/usr/mine").exists()
    assert not Path("/etc/mine").exists()
    if os.getuid() == 0:
        assert ran["text"].split()[-1] not in ("0", "")


@pytest.mark.parametrize(
    "attempt",
    [
        "import socket; s = socket.socket(); s.settimeout(2); s.connect(('1.1.1.1', 80))",
        "import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.sendto(b'x', ('1.1.1.1', 53))",
        "import os; os.unshare(0x10000000)",
        "import ctypes; l = ctypes.CDLL(None); assert l.syscall(425, 1, 0) >= 0",
        "import ctypes; l = ctypes.CDLL(None); assert l.mount(b'none', b'/tmp', b'tmpfs', 0, None) == 0",
        "import ctypes; l = ctypes.CDLL(None); assert l.ptrace(16, 1, 0, 0) == 0",
        "import os, stat; os.mknod('disk', stat.S_IFBLK | 0o600, os.makedev(254, 0))",
    ],
)
def test_ways_around_the_walls_are_closed(walled: NodeRun, attempt: str) -> None:
    attempt = attempt.replace(
        "os.unshare(0x10000000)", "import ctypes; assert ctypes.CDLL(None).unshare(0x10000000) == 0"
    )
    walled.sh(f"cat > try.py <<'END'\n{attempt}\nprint('through')\nEND")
    assert "through" not in walled.sh("python3 try.py 2>&1")["text"]


def test_sockets_of_the_machine_are_out_of_reach(walled: NodeRun) -> None:
    """gymd's own socket, and a listener on loopback of the machine."""
    state = Path(str(walled.opened["real_root"])).parents[1].parent
    found = next(state.glob("gymd/*/v1/s"))
    code = f"import socket; s = socket.socket(socket.AF_UNIX); s.connect('{found}'); print('through')"
    assert "through" not in walled.sh(f'python3 -c "{code}" 2>&1')["text"]


def test_what_a_run_needs_works(walled: NodeRun) -> None:
    code = (
        "import multiprocessing as m, tempfile, os\n"
        "def f(x): return x * 2\n"
        "if __name__ == '__main__':\n"
        "    print(m.Pool(2).map(f, [1, 2]), os.path.exists(tempfile.mkdtemp()))\n"
    )
    walled.sh(f"cat > job.py <<'END'\n{code}END")
    assert walled.sh("python3 job.py")["text"] == "[2, 4] True\n"
    assert walled.sh("mkfifo pipe && (echo through > pipe &) && cat pipe; echo $HOME; cd; touch x && ls")["code"] == 0
    assert walled.sh("tty; test -t 0 && test -t 1 && test -t 2 && echo terminal")["text"].endswith("terminal\n")


def test_secrets_are_masked_in_output_files_and_base64(walled: NodeRun) -> None:
    """By value, across chunks, same length, in every base64 alignment."""
    ran = walled.sh("echo $API_KEY; for p in '' a bb; do printf %s \"$p$API_KEY\" | base64; done; echo $API_KEY > f")
    assert SECRET not in ran["text"]
    assert ran["text"].splitlines()[0] == "*" * len(SECRET)
    assert "Mtdm" not in ran["text"]
    slow = walled.sh("printf s3cr3t; sleep 0.4; printf -- '-val'; sleep 0.4; echo ue-0001")
    assert slow["text"] == "*" * len(SECRET) + "\n"
    lines = walled.op("file.lines", path="f", start=1, count=1)
    assert lines["masked"]
    assert SECRET.encode() not in walled.log("main")


HOG = """
import threading, time
try:
    while True:
        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
except RuntimeError:
    print("full", flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("level", ["namespace", "landlock"])
def test_a_run_at_its_process_limit_keeps_its_file_actions(level: str) -> None:
    """Threads until no more can be started: files are read and outputs copied meanwhile and afterwards."""
    if os.getuid() != 0:
        pytest.skip("without users of their own runs share one limit with everything here")
    folder = open_folder()
    link = local_link(folder)
    skip_unless_offered(link, level)
    pid = int(str(link.request("GET", "/v1/hello").body["pid"]))
    resource.prlimit(pid, resource.RLIMIT_NPROC, (100, 100))  # binds not root, but the runs it is inherited by
    run = NodeRun(link, level=level)
    run.sh(f"cat > hog.py <<'END'{HOG}END\npython3 hog.py", wait=False)
    wait_until(lambda: b"full" in run.log("main"))
    for number in range(20):
        body = {"epoch": 1, "action_id": f"f.{number}.0", "op": "file.read", "args": {"path": "hog.py"}}
        assert link.request("POST", f"/v1/runs/{run.name}/ops", body, timeout_s=60).status == 200
    assert run.post("outputs", paths=[{"path": "hog.py"}])["files"][0]["size"] > 0
    run.op("session.kill", session_id="main", force=True)
    assert run.sh("echo on")["text"] == "on\n"
    gymd_end(link)
    shutil.rmtree(folder)


def test_closing_a_run_leaves_nothing(walled: NodeRun) -> None:
    """R7: daemons that forked away, the workspace and the user's processes are gone within ten seconds."""
    other = NodeRun(walled.link, level=str(walled.opened["level"]))
    mark = f"{other.name}-daemon"
    other.sh(f"(setsid setsid bash -c 'trap \"\" TERM; (exec -a {mark} sleep 555) & sleep 556' &)")
    wait_until(lambda: mark.encode() in command_lines())
    place = Path(other.opened["real_root"]).parent
    closed = other.close()
    assert (closed["closed"], closed["left"]) == (True, [])
    assert not place.exists()
    assert mark.encode() not in command_lines()


def test_a_machine_without_user_namespaces_takes_the_next_level() -> None:
    """Namespaces truly refused by the kernel (a system-call filter): landlock, with the reason remembered."""
    folder = open_folder()
    wrapper = folder / "python"
    guard = (
        "import ctypes, os, sys; from gymnode.remote.seccomp import seccomp_install; "
        "ctypes.CDLL(None).prctl(38, 1, 0, 0, 0); seccomp_install(strict=False); "
        f"os.execv({node_python()!r}, [{node_python()!r}, *sys.argv[1:]])"
    )
    here = Path(__file__).resolve().parents[2]
    wrapper.write_text(
        f"#!/bin/sh\nPYTHONPATH={here} exec {sys.executable} -c '{guard.replace(chr(39), chr(34))}' \"$@\"\n"
    )
    wrapper.chmod(0o755)
    link = local_link(folder, python=str(wrapper))
    levels = {one["name"]: one for one in link.request("GET", "/v1/hello").body["levels"]}  # type: ignore[union-attr, index, call-overload]  # JSON
    run = NodeRun(link)
    assert not levels["namespace"]["available"]
    assert "user namespaces" in str(levels["namespace"]["reason"])
    assert run.opened["level"] == "landlock"
    assert run.sh("pwd")["text"].strip() == run.opened["real_root"]
    run.close()
    gymd_end(link)
    shutil.rmtree(folder)


def test_namespaces_can_be_switched_off_by_request_and_plain_needs_permission(local_node: NodeLink) -> None:
    run = NodeRun(local_node, level="landlock")
    assert (run.opened["level"], run.opened["egress_enforced"]) == ("landlock", False)
    assert run.sh("cat /workspace/none; pwd")["text"].splitlines()[-1] == run.opened["workspace"]
    run.close()
    refused = local_node.request("POST", "/v1/runs/bare/open", {"epoch": 1, "level": "plain"})
    assert (refused.status, refused.body["code"]) == (403, "not_permitted")


def test_gymd_stays_small() -> None:
    """A gymd of its own: what other tests made it hold is given back to the system when it likes."""
    folder = open_folder()
    link = local_link(folder)
    run = NodeRun(link)
    run.sh("seq 10000")
    status = Path(f"/proc/{link.request('GET', '/v1/hello').body['pid']}/status").read_text()
    assert int(status.split("VmRSS:")[1].split()[0]) <= 20 * 1024
    gymd_end(link)
    shutil.rmtree(folder)


def test_a_run_that_forks_without_end_hits_its_own_wall(walled: NodeRun) -> None:
    ran = walled.sh("ulimit -Hu; ulimit -u 50000; echo $?")
    limit, refused = ran["text"].splitlines()[0], ran["text"].splitlines()[-1]
    assert 0 < int(limit) <= int(Path("/proc/sys/kernel/pid_max").read_text()) // 2
    assert refused != "0"


def test_shared_memory_goes_with_the_run(walled: NodeRun) -> None:
    """Where /dev/shm is the machine's own, a run's files and folders there end with it."""
    other = NodeRun(walled.link, level=str(walled.opened["level"]))
    name = other.name
    made = other.sh(f"cd /dev/shm && mkdir -p {name}/deep && echo x > {name}/deep/file && echo y > {name}-y")
    assert made["code"] == 0
    other.close()
    if os.getuid() == 0:
        assert not [path.name for path in Path("/dev/shm").glob(f"{name}*")]


@pytest.mark.skipif(os.getuid() != 0, reason="only root's gymd gives every run a user of its own")
def test_two_gymds_of_a_machine_never_share_a_user(local_node: NodeLink) -> None:
    """A run of the one whose isolation is down has no process that would show that its user is taken."""
    folder = open_folder()
    elsewhere = local_link(folder)
    mine, theirs = NodeRun(local_node, level="landlock"), NodeRun(elsewhere, level="landlock")
    users = {Path(one.opened["real_root"]).stat().st_uid for one in (mine, theirs)}
    mine.sh("kill -9 $PPID")
    later = NodeRun(elsewhere, level="landlock")
    users.add(Path(later.opened["real_root"]).stat().st_uid)
    assert len(users) == 3
    for one in (mine, theirs, later):
        one.close()
    gymd_end(elsewhere)
    shutil.rmtree(folder)
