"""One escape and limits suite over both sandbox levels: bubblewrap with seccomp, Landlock with seccomp."""

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator.sandbox import Choice, Ended, Job, Sandbox, SandboxMissing, probe
from evaluator.taskenv import TaskEnv, task_env_open
from tests.contract.sandbox_cases import (
    SECRET,
    attempt,
    attempt_in,
    interpreter,
    prepared,
    public_folder,
    refused,
    running_with,
    said,
)


@pytest.fixture(scope="module")
def task_env() -> Iterator[TaskEnv]:
    folder = public_folder()
    yield task_env_open(interpreter(folder))
    shutil.rmtree(folder)


@pytest.fixture(scope="module", params=[1, 2], ids=["bubblewrap", "landlock"])
def sandbox(request: pytest.FixtureRequest, task_env: TaskEnv) -> Sandbox:
    try:
        return probe(task_env, Choice(level=request.param))
    except SandboxMissing as error:
        pytest.skip(f"this machine can't: {error}")


def test_nothing_of_the_machine_or_of_another_run_can_be_read(sandbox: Sandbox) -> None:
    """A3"""
    other = prepared(sandbox)
    code = f"""
paths = ["/etc/shadow", "/etc/passwd", "/etc/hostname", "/proc/1/environ", "/proc/self/environ",
  "/proc/{os.getpid()}/cmdline", "/proc/1/root/etc/shadow", "{other}/evaluation/reference.txt", "{Path(__file__)}",
  "/var/log/dpkg.log", "/sys/kernel/notes", "/dev/kmsg", "/dev/mem"]
say(**{{path: attempt(lambda: read(path)) for path in paths}}, tmp=attempt(lambda: os.listdir("{other.parent}")))
"""
    answers = said(attempt(sandbox, code))
    sandbox.discard(other)
    tmp = answers.pop("tmp")
    assert all(refused(answer) for answer in answers.values()), answers
    assert refused(tmp) or other.name not in tmp


def test_references_and_outputs_can_be_read_but_not_changed(sandbox: Sandbox) -> None:
    """A3"""
    code = """
def each(path):
    calls = [lambda: write(path), lambda: os.unlink(path), lambda: os.rename(path, path + "x"),
        lambda: os.truncate(path, 1), lambda: os.link(path, "mine"), lambda: open(os.path.dirname(path) + "/new", "w")]
    return [attempt(call) for call in calls]
paths = ["../evaluation/reference.txt", "../outputs/predictions.csv"]
say(read=read(paths[0]), out=read(paths[1]), tries=[a for path in paths for a in each(path)])
"""
    base = prepared(sandbox)
    answers = said(attempt_in(sandbox, base, code))
    assert answers["read"] == SECRET
    assert answers["out"].startswith("id,y")
    assert all(refused(answer) for answer in answers["tries"]), answers
    assert (base / "evaluation" / "reference.txt").read_text() == SECRET
    assert sorted(path.name for path in (base / "outputs").iterdir()) == ["predictions.csv"]
    sandbox.discard(base)


def test_interpreter_and_programs_cannot_be_replaced(sandbox: Sandbox) -> None:
    """A3"""
    code = f"""
import sys
lib = os.path.dirname(os.__file__)
paths = [sys.executable, lib + "/sitecustomize.py", lib + "/json/__init__.py", "/usr/bin/env", "/usr/lib/x",
   "/etc/ld.so.preload", "{sandbox.env.root}/x"]
say(**{{path: attempt(lambda: write(path)) for path in paths}})
"""
    answers = said(attempt(sandbox, code))
    assert all(refused(answer) for answer in answers.values()), answers


def test_there_is_no_network_and_no_socket_of_others(sandbox: Sandbox) -> None:
    code = """
def tcp(): return socket.create_connection(("127.0.0.1", 22), 1)
say(tcp=attempt(tcp), udp=attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)),
    six=attempt(lambda: socket.socket(socket.AF_INET6)), unix=attempt(lambda: socket.socket(socket.AF_UNIX)),
    netlink=attempt(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)),
    pair=attempt(lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)),
    name=attempt(lambda: socket.getaddrinfo("example.org", 80)))
"""
    answers = said(attempt(sandbox, code))
    assert all(refused(answer) or answer.startswith("gaierror") for answer in answers.values()), answers


def test_the_doors_of_the_kernel_are_shut(sandbox: Sandbox) -> None:
    code = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *args):
    if libc.syscall(number, *args) < 0: raise OSError(ctypes.get_errno(), "")
    return "went through"
same = {"io_uring": (425, 1, 0), "pidfd_open": (434, os.getpid(), 0), "clone3": (435, 0, 0),
  "open_tree": (428, -100, b"/", 1)}
here = {"x86_64": {"unshare": (272, 0x10000000), "mount": (165, b"a", b"/scratch", b"tmpfs", 0, 0),
  "ptrace": (101, 0, 0, 0, 0), "bpf": (321, 0, 0, 0), "shmget": (29, 1, 4096, 0o1600), "keyctl": (250, 0, -3, 0),
  "clone": (56, 0x10000011, 0, 0, 0, 0), "x32": (0x40000000 + 39,), "userfaultfd": (323, 0),
  "prlimit": (302, os.getppid(), 7, 0, 0), "affinity": (203, 0, 8, b"1234567"), "handle": (304, 0, b"", 0),
  "mq_open": (240, b"x", 66, 0o600, 0)}}
calls = {**same, **here.get(os.uname().machine, {})}
say(**{name: attempt(lambda: call(*args)) for name, args in calls.items()})
"""
    answers = said(attempt(sandbox, code))
    assert answers.pop("clone3") == "OSError 38"
    assert all(answer.endswith("Error 1") for answer in answers.values()), answers


def test_processes_of_others_can_neither_be_seen_nor_signalled(sandbox: Sandbox) -> None:
    code = f"""
import signal
say(parent=attempt(lambda: os.kill({os.getpid()}, 0)), first=attempt(lambda: os.kill(1, signal.SIGKILL)),
    list=attempt(lambda: os.listdir("/proc")), me=os.getuid())
"""
    answers = said(attempt(sandbox, code))
    assert refused(answers["parent"])
    assert refused(answers["list"])
    assert answers["first"] == "None" or refused(answers["first"])
    assert answers["me"] != 0


def test_nothing_is_inherited_but_the_given_environment_and_three_descriptors(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SITE_SECRET", "known")
    left_open = os.open("/etc/hostname", os.O_RDONLY)
    os.set_inheritable(left_open, True)
    code = """
handles = []
for number in range(256):
    try: os.fstat(number); handles.append(number)
    except OSError: pass
say(env=sorted(os.environ), handles=handles, limits=attempt(lambda: __import__("resource").getrlimit(4)))
"""
    answers = said(attempt(sandbox, code))
    os.close(left_open)
    assert set(answers["env"]) <= {"SEED", "LC_CTYPE"}
    assert answers["handles"] == [0, 1, 2]
    assert answers["limits"] == "(0, 0)"


def test_a_fork_bomb_is_bounded_and_ended(sandbox: Sandbox) -> None:
    code = """
made = 0
while True:
    try:
        if os.fork() == 0: time.sleep(60) or os._exit(0)
        made += 1
    except OSError:
        break
say(made=made)
"""
    mark = f"bomb-{os.getpid()}-{sandbox.level}"
    ran = attempt(sandbox, f"# {mark}\n{code}")
    assert 10 < int(said(ran)["made"]) <= 200
    assert running_with(mark) == []


def test_a_daemon_does_not_outlive_the_scorer(sandbox: Sandbox) -> None:
    code = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        import signal
        for number in (1, 2, 15): signal.signal(number, signal.SIG_IGN)
        time.sleep(300)
    os._exit(0)
time.sleep(0.2)
open("result.json", "w").write("done")
"""
    mark = f"daemon-{os.getpid()}-{sandbox.level}"
    ran = attempt(sandbox, f"# {mark}\n{code}")
    assert (ran.ended, ran.exit_code, ran.result) == (Ended.EXIT, 0, b"done")
    assert running_with(mark) == []


def test_memory_is_limited(sandbox: Sandbox) -> None:
    ran = attempt(sandbox, "say(small=len(bytearray(50 << 20)), big=attempt(lambda: len(bytearray(2 << 30))))")
    assert said(ran) == {"small": 50 << 20, "big": "MemoryError "}


def test_scratch_is_limited_in_one_file_and_in_many(sandbox: Sandbox) -> None:
    code = """
def many():
    for number in range(1000):
        with open(f"part{number}", "wb") as out: out.write(bytes(1 << 20))
        time.sleep(0.01)
def one():
    with open("big", "wb") as out:
        for _ in range(200): out.write(bytes(1 << 20))
"""
    for name in ("one", "many"):
        ran = attempt(sandbox, f"{code}\n{name}()", scratch_mb=16)
        assert ran.exit_code != 0 or ran.ended is Ended.SIZE, (name, ran)
        assert ran.result is None


def test_wall_time_is_limited_asleep_and_awake(sandbox: Sandbox) -> None:
    for code in (
        "time.sleep(60)",
        "while True: pass",
        "print('x' * 100, flush=True)\nwhile True: print('chat', flush=True)",
    ):
        began = time.monotonic()
        ran = attempt(sandbox, code, seconds=1)
        assert ran.ended is Ended.TIME
        assert time.monotonic() - began < 30


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("os.symlink('../evaluation/reference.txt', 'result.json')", "no regular file"),
        ("os.symlink('/etc/passwd', 'result.json')", "no regular file"),
        ("os.mkdir('result.json')", "no regular file"),
        ("open('result.json', 'wb').write(bytes(2 << 20))", "more than"),
        ("attempt(lambda: os.mkfifo('result.json'))", "missing"),
        ("open('a', 'w').write('x'); os.link('a', 'result.json')", "no regular file"),
        ("pass", "missing"),
    ],
)
def test_a_result_that_is_no_plain_small_file_is_not_read(sandbox: Sandbox, code: str, why: str) -> None:
    """A4"""
    ran = attempt(sandbox, code)
    assert ran.result is None
    assert why in ran.result_fault


def test_ten_megabytes_of_output_leave_the_result_alone(sandbox: Sandbox) -> None:
    """A4"""
    code = """
if os.fork() == 0:
    for _ in range(100): os.write(1, b'{"valid": true, "metrics": {"a": 1}}\\n' * 2000)
    os._exit(0)
for _ in range(100): os.write(1, b"x" * 100_000); os.write(2, b"y" * 100_000)
os.wait()
open("result.json", "w").write("mine")
"""
    ran = attempt(sandbox, code)
    assert (ran.ended, ran.exit_code, ran.result) == (Ended.EXIT, 0, b"mine")
    assert len(ran.stdout) <= 64 * 1024
    assert len(ran.stderr) <= 64 * 1024


def test_a_program_that_cannot_start_is_our_fault_and_says_so(sandbox: Sandbox) -> None:
    base = prepared(sandbox)
    ran = sandbox.run(Job(base, ("/usr/bin/nowhere",), {}))
    sandbox.discard(base)
    assert ran.ended is Ended.SETUP
    assert "nowhere" in ran.fault
