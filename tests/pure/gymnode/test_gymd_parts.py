"""Pure parts of gymd: frames, masks, logs, journal, the line a shell gets, the system-call filter, the package."""

import base64
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymnode.errors import REFUSALS
from gymnode.remote.commands import DrainFilter, Job, job_line, report_parse
from gymnode.remote.frames import FrameError, FrameReader, frame_pack
from gymnode.remote.journal import Journal
from gymnode.remote.logs import SessionLog
from gymnode.remote.masking import Masker, secret_forms
from gymnode.remote.pieces import piece_make
from gymnode.remote.refusals import STATUS, Refusal
from gymnode.remote.seccomp import filter_build
from gymnode.transport.package import gymd_package

SECRET = "correct-horse-battery"


@given(st.lists(st.tuples(st.dictionaries(st.text(), st.integers()), st.binary())), st.integers(1, 50))
def test_frames_survive_any_cut(messages: list[tuple[dict[str, int], bytes]], size: int) -> None:
    stream = b"".join(frame_pack(header, payload) for header, payload in messages)
    reader = FrameReader()
    frames = [frame for start in range(0, len(stream), size) for frame in reader.feed(stream[start : start + size])]
    assert [(frame.header, frame.payload) for frame in frames] == messages


def test_bytes_that_are_no_frame_are_refused() -> None:
    with pytest.raises(FrameError):
        FrameReader().feed(b"HTTP/1.1 200 OK\r\n\r\n")


@given(st.binary(max_size=40), st.binary(max_size=40), st.integers(1, 30))
def test_a_secret_is_masked_wherever_a_stream_is_cut(before: bytes, after: bytes, size: int) -> None:
    text = before + SECRET.encode() + after
    masker = Masker(secret_forms([SECRET]))
    shown = b"".join(masker.feed(text[start : start + size]) for start in range(0, len(text), size)) + masker.flush()
    assert len(shown) == len(text)
    assert SECRET.encode() not in shown


@given(st.binary(max_size=9), st.binary(max_size=9))
def test_base64_of_a_secret_is_masked_at_every_alignment(before: bytes, after: bytes) -> None:
    encoded = base64.b64encode(before + SECRET.encode() + after)
    shown = Masker(secret_forms([SECRET])).whole(encoded)
    assert len(shown) == len(encoded)
    assert SECRET.encode()[1:-1] not in base64.b64decode(shown.replace(b"*", b"A"))
    assert shown.count(b"*") >= len(SECRET)


def test_the_rest_of_a_secret_is_masked_after_its_beginning_was_let_go() -> None:
    masker = Masker(secret_forms([SECRET]))
    shown = b""
    for part in ("cor", "rect-horse", "-battery", " and on"):
        shown += masker.feed(part.encode()) + masker.flush()
    assert shown == b"cor" + b"*" * (len(SECRET) - 3) + b" and on"


def test_a_log_beyond_its_cap_keeps_head_and_tail_and_states_the_gap(tmp_path: Path) -> None:
    log = SessionLog(tmp_path / "log", cap=1 << 20)
    for number in range(4000):
        log.append(b"%07d " % number * 64)
    assert log.total == 4000 * 512
    assert sum(path.stat().st_size for path in (tmp_path / "log").iterdir()) <= (1 << 20) + 65536
    assert log.read(0, 8).data == b"0000000 "
    gap = log.read(700_000, 8)
    assert gap.start > 700_000
    piece = piece_make(log, 0, log.total)
    assert base64.b64decode(piece["tail"]).endswith(b"0003999 ")
    assert piece["omitted"] == log.total - 192 * 1024
    assert SessionLog(tmp_path / "log", cap=1 << 20).total == log.total


def test_a_journal_remembers_across_a_restart_and_drops_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    first = Journal(path)
    first.begin("r.1.0|op")
    first.finish("r.1.0|op", {"status": 200, "body": {}})
    first.begin("r.2.0|op")
    with path.open("ab") as stream:
        stream.write(b'{"done": "r.2.0|op", "ans')
    second = Journal(path)
    assert second.stored("r.1.0|op") == {"status": 200, "body": {}}
    assert second.is_unknown("r.2.0|op")
    assert second.covers("r.3.0|op")
    assert not Journal(tmp_path / "new").covers("r.3.0|op")


def test_a_status_line_counts_only_with_the_jobs_nonce() -> None:
    job = Job("a", "true", 0)
    assert report_parse(f"{job.nonce} 3".encode(), job.nonce) == 3
    assert report_parse(b"0" * 32 + b" 0", job.nonce) is None
    assert report_parse(b"garbage", job.nonce) is None


@given(st.integers(1, 7), st.binary(max_size=30))
def test_the_drain_mark_is_taken_out_wherever_it_is_cut(size: int, around: bytes) -> None:
    job = Job("a", "true", 0)
    drain = DrainFilter()
    drain.expect(job.drain_mark)
    text = around + job.drain_mark + around
    shown = b"".join(drain.feed(text[start : start + size]) for start in range(0, len(text), size)) + drain.release()
    assert shown == around + around
    assert drain.seen


def test_a_command_no_shell_can_take_is_refused() -> None:
    for command in ("a\0b", "x" * 300_000):
        with pytest.raises(Refusal):
            job_line(Job("a", command, 0), 0)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_fits_and_every_jump_lands_inside(machine: str) -> None:
    for strict in (True, False):
        program = filter_build(machine, strict=strict)
        assert len(program) < 4096
        for place, (code, yes, no, _value) in enumerate(program):
            if code & 0x07 == 0x05:
                assert place + 1 + max(yes, no) < len(program)
    with pytest.raises(OSError, match="no system-call table"):
        filter_build("mips", strict=True)


def test_every_refusal_code_is_known_to_the_controller() -> None:
    assert set(STATUS) - {"outcome_unknown"} == set(REFUSALS)


def test_the_package_is_reproducible_and_standard_library_only() -> None:
    package = gymd_package()
    gymd_package.cache_clear()
    assert gymd_package() == package
    assert len(package.data) < 300_000
    assert b"import pydantic" not in package.data
