"""What holds the program apart: its imports, its environment, its seccomp filter."""

import subprocess
import sys
from pathlib import Path

import pytest

from evaluator.forging import FORGERIES, forge
from evaluator.guard.seccomp import program
from evaluator.guard.syscalls import AUDIT_ARCH, NUMBERS, REFUSED
from evaluator.taskenv import pinned_env
from evaluator.worker import environment_faults

ROOT = Path(__file__).resolve().parents[3]
ALLOW, EPERM, ENOSYS, KILL = 0x7FFF0000, 0x50001, 0x50026, 0x80000000


def test_only_the_worker_imports_the_queue_and_nothing_imports_the_site() -> None:
    modules = [
        "contract",
        "manifest",
        "seal",
        "sandbox",
        "checking",
        "calibrating",
        "scoring",
        "answering",
        "packing",
        "keys",
    ]
    code = f"""import sys; sys.path.insert(0, {str(ROOT)!r})
import importlib
for name in {modules!r}: importlib.import_module("evaluator." + name)
bad = {{"django", "celery", "redis", "channels", "boto3", "portal", "runs", "gymnode"}}
print(sorted(bad & {{name.split(".")[0] for name in sys.modules}}))"""
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_foreign_variables_are_named() -> None:
    assert environment_faults({"PATH": "/bin", "LANG": "C", "DATABASE_URL": "x", "AWS_KEY": "y"}) == [
        "AWS_KEY",
        "DATABASE_URL",
    ]


def test_a_scored_program_gets_the_seed_and_what_makes_figures_the_same() -> None:
    env = pinned_env(7, "HASWELL")
    assert env["SEED"] == "7"
    assert env["OPENBLAS_NUM_THREADS"] == env["OMP_NUM_THREADS"] == "1"
    assert env["PYTHONHASHSEED"] == "0"
    assert env["OPENBLAS_CORETYPE"] == "HASWELL"


def run_filter(machine: str, number: int, *arguments: int, arch: int | None = None, signals: bool = True) -> int:
    """A tiny interpreter of classic BPF: what the filter returns for one system call."""
    words = {0: number, 4: AUDIT_ARCH[machine] if arch is None else arch}
    words |= {16 + 8 * index: value & 0xFFFFFFFF for index, value in enumerate((*arguments, 0, 0, 0, 0, 0, 0))}
    code, place, value = program(machine, signals=signals), 0, 0
    tests = {0x15: lambda k: value == k, 0x35: lambda k: value >= k, 0x45: lambda k: bool(value & k)}
    while True:
        operation, when_true, when_false, k = code[place]
        place += 1
        if operation == 0x06:
            return k
        if operation == 0x20:
            value = words[k]
        elif operation == 0x54:
            value &= k
        else:
            place += when_true if tests[operation](k) else when_false


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_refuses_what_it_must_on_both_machines(machine: str) -> None:
    numbers = NUMBERS[machine]
    for name in REFUSED:
        if name in numbers:
            assert run_filter(machine, numbers[name]) == EPERM, name
    assert run_filter(machine, numbers["clone3"]) == ENOSYS
    assert run_filter(machine, numbers["clone"], 0x10000011) == EPERM
    assert run_filter(machine, numbers["clone"], 0x3D0F00) == ALLOW  # a thread
    assert run_filter(machine, numbers["prlimit64"], 0) == ALLOW
    assert run_filter(machine, numbers["prlimit64"], 77) == EPERM
    assert run_filter(machine, numbers["ioctl"], 0, 0x5412) == EPERM
    assert run_filter(machine, numbers["ioctl"], 0, 0x541C) == EPERM
    assert run_filter(machine, numbers["ioctl"], 0, 0x5401) == ALLOW


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_pairs_are_streams_only_and_signals_may_be_refused_too(machine: str) -> None:
    numbers = NUMBERS[machine]
    assert run_filter(machine, numbers["socketpair"], 1, 0x80001) == ALLOW
    assert run_filter(machine, numbers["socketpair"], 1, 2) == EPERM
    assert run_filter(machine, numbers["socketpair"], 2, 1) == EPERM
    assert run_filter(machine, numbers["kill"], 1) == ALLOW
    assert run_filter(machine, numbers["kill"], 1, signals=False) == EPERM
    assert run_filter(machine, 0) == ALLOW


def test_another_architecture_is_killed_and_x32_refused() -> None:
    assert run_filter("x86_64", 0, arch=0x40000003) == KILL
    assert run_filter("x86_64", 0x40000000 + 39) == EPERM


@pytest.mark.parametrize("kind", FORGERIES)
@pytest.mark.parametrize(
    "good",
    [
        b"id,y\n1,a\n2,b\n3,c\n",
        b'{"id":1,"y":2}\n{"id":2,"y":3}\n',
        b"[1,2,3]",
        b'{"w":"x"}',
        b"5\n6\n",
        b"\xff\x00",
        b"\n",
    ],
)
def test_worthless_submissions_are_made_of_any_file(kind: str, good: bytes) -> None:
    made = forge(kind, good)
    assert (made == b"") == (kind == "empty")


def test_a_constant_submission_keeps_ids_and_repeats_the_first_answer() -> None:
    assert forge("constant", b"id,y\n1,a\n2,b\n") == b"id,y\n1,a\n2,a\n"
