"""What an action costs over SSH on loopback, beside paramiko's `exec_command` in the same run.

Trivial action, `run_command true` and `/bin/true`, output through to the log beside `script`, 200 printing sessions,
and gymd's own appetite.
"""

import base64
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import paramiko

from benchmarks.nodes import BenchRun, loopback_node
from benchmarks.report import Bound, Report, Target, percentile
from gymnode.transport.ssh import SshLink, SshTarget, private_key_parse

COUNT = 300
SLOW_COUNT = 7
SESSIONS = 200
STREAM = "head -c 5000000 /dev/zero | tr '\\0' '\\n'"
# One process per session that prints twenty lines a second and starts no others.
PRINTER = "bash -c 'exec 7<> <(sleep 999); while :; do read -t 0.05 -u 7; echo line of a printing job; done'"
TARGETS = {
    "trivial_p50_ms": Target(Bound.AT_MOST, 1.0),
    "exec_over_trivial_ratio": Target(Bound.AT_LEAST, 50.0),
    "run_true_p50_ms": Target(Bound.AT_MOST, 3.0),
    "run_bin_true_p50_ms": Target(Bound.AT_MOST, 6.0),
    "log_over_script_ratio": Target(Bound.AT_LEAST, 0.6),
    "idle_mb": Target(Bound.AT_MOST, 20.0),
    "idle_cpu_percent": Target(Bound.AT_MOST, 0.2),
    "sessions_200_mb": Target(Bound.AT_MOST, 40.0),
    "sessions_200_p95_ms": Target(Bound.AT_MOST, 10.0),
    "sessions_200_yes_p95_ms": Target(Bound.AT_MOST, 50.0),
}


def measure() -> Report:
    """Take all figures, one after the other."""
    with loopback_node() as (link, target):
        run = BenchRun(link, "bench")
        run.op("session.run", session_id=None, command="true", wait=True, timeout_s=30)
        figures = {**_idle(link), **_actions(link, run), **_paramiko(target), **_stream(run)}
        figures["exec_over_trivial_ratio"] = figures["paramiko_exec_p50_ms"] / figures["trivial_p50_ms"]
        figures.update(_sessions(link, run))
        run.close()
    return Report("actions", figures, TARGETS)


def _times(call: Callable[[], object], count: int) -> list[float]:
    """Milliseconds of each call."""
    times = []
    for _ in range(count):
        began = time.perf_counter()
        call()
        times.append(1000 * (time.perf_counter() - began))
    return times


def _actions(link: SshLink, run: BenchRun) -> dict[str, float]:
    def shell(command: str) -> Callable[[], object]:
        return lambda: run.op("session.run", session_id="main", command=command, wait=True, timeout_s=30)

    ping = _times(partial(link.request, "GET", "/v1/ping"), COUNT)
    trivial = _times(lambda: run.op("session.idle", session_id="main"), COUNT)
    builtin, external = _times(shell("true"), COUNT), _times(shell("/bin/true"), COUNT)
    return {
        "ping_p50_ms": percentile(ping, 0.5),
        "trivial_p50_ms": percentile(trivial, 0.5),
        "trivial_p95_ms": percentile(trivial, 0.95),
        "run_true_p50_ms": percentile(builtin, 0.5),
        "run_bin_true_p50_ms": percentile(external, 0.5),
        "file_stat_p50_ms": percentile(_times(lambda: run.op("file.stat", path="."), COUNT), 0.5),
    }


def _paramiko(target: SshTarget) -> dict[str, float]:
    client = paramiko.SSHClient()
    kind, key = (target.hop.host_key or "").split()
    name = f"[{target.hop.host}]:{target.hop.port}"
    client.get_host_keys().add(name, kind, paramiko.PKey.from_type_string(kind, base64.b64decode(key)))
    client.connect(
        target.hop.host, target.hop.port, target.hop.user, pkey=private_key_parse(target.hop.private_key),
        allow_agent=False, look_for_keys=False,
    )  # fmt: skip
    times = _times(partial(_execute, client), SLOW_COUNT)
    client.close()
    return {"paramiko_exec_p50_ms": percentile(times, 0.5)}


def _execute(client: paramiko.SSHClient) -> int:
    return client.exec_command("true")[1].channel.recv_exit_status()


def _stream(run: BenchRun) -> dict[str, float]:
    ours, theirs = [], []
    for _ in range(5):
        began = time.perf_counter()
        run.op("session.run", session_id="main", command=STREAM, wait=True, timeout_s=120)
        ours.append(time.perf_counter() - began)
        began = time.perf_counter()
        subprocess.run(["script", "-qc", STREAM, "/dev/null"], stdout=subprocess.DEVNULL, check=True)
        theirs.append(time.perf_counter() - began)
    return {
        "log_mb_per_s": 10.0 / percentile(ours, 0.5),
        "log_over_script_ratio": percentile(theirs, 0.5) / percentile(ours, 0.5),
    }


def _idle(link: SshLink) -> dict[str, float]:
    pid = int(str(link.request("GET", "/v1/hello").body["pid"]))
    before = _cpu_s(pid)
    time.sleep(3)
    return {"idle_mb": _memory_mb(pid), "idle_cpu_percent": 100 * (_cpu_s(pid) - before) / 3}


def _sessions(link: SshLink, run: BenchRun) -> dict[str, float]:
    pid = int(str(link.request("GET", "/v1/hello").body["pid"]))
    names = [f"p{number}" for number in range(SESSIONS)]
    for name in names:
        run.op("session.create", session_id=name, cwd="/workspace", cols=80, rows=24)
    figures = {}
    for label, command in (("", PRINTER), ("_yes", "yes")):
        for name in names:
            run.op("session.run", session_id=name, command=command, wait=False, timeout_s=1)
        time.sleep(2)
        times = _times(lambda: run.op("session.idle", session_id="main"), COUNT)
        figures[f"sessions_200{label}_p95_ms"] = percentile(times, 0.95)
        figures[f"sessions_200{label}_mb"] = _memory_mb(pid)
        for name in names:
            run.op("session.kill", session_id=name, force=True)
    return figures


def _memory_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0]) / 1024


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100
