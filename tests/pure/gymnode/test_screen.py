"""What a reader of the terminal sees of raw bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymnode.screen import FULL_SCREEN, HEIGHT, WIDTH, Screen, visible


def shown(data: bytes) -> str:
    screen = Screen()
    screen.feed(data)
    return "\n".join(line.text for line in screen.lines())


def test_progress_frames_between_bare_carriage_returns_become_one_line():
    """T4"""
    frames = b"".join(b"\r%3d%%|%s|" % (step, b"#" * (step // 10)) for step in range(101))
    assert shown(frames) == "100%|##########|"


def test_windows_line_ends_are_plain_line_ends():
    assert shown(b"a\r\nb\r\r\nc") == "a\nb\nc"


def test_nul_is_shown_as_a_symbol():
    """T1"""
    assert shown(b"a\0b\r\n") == "a\u2400b\n"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x1b]0;title\x07x", "x"),
        (b"\x1b]2;title\x1b\\x", "x"),
        (b"\x1b]8;;http://evil.example\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"\x1b]52;c;ZWNobyBoaQ==\x07x", "x"),
        (b"\x1b[c\x1b[6n\x1b[>c\x1bP+q544e\x1b\\x", "x"),
        (b"\x1b[1;31mred\x1b[0m", "red"),
        (b"\x1b[?2004hx\x1b[?2004l", "x"),
        (b"\x1b(B\x1b=x\x1b>", "x"),
        (b"\x1bktitle\x1b\\x", "x"),
    ],
)
def test_titles_links_clipboard_and_queries_leave_nothing(data, text):
    """T5"""
    assert shown(data) == text


def test_alternate_screen_leaves_nothing_once_it_is_left():
    """T5"""
    assert shown(b"before\r\n\x1b[?1049h\x1b[Hfull screen\x1b[2;1Hmore\x1b[?1049lafter") == "before\nafter"


def test_full_screen_program_that_is_still_on_is_shown_as_such():
    assert shown(b"$ vi\r\n\x1b[?1049h\x1b[H\x1b[2J~\r\n~") == f"$ vi\n\n{FULL_SCREEN}\n~\n~"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"abc\b\bX", "aXc"),
        (b"abc\x1b[2DX", "aXc"),
        (b"abc\r\x1b[CX", "aXc"),
        (b"abcdef\x1b[3G\x1b[K", "ab"),
        (b"abcdef\x1b[3G\x1b[1KX", "  Xdef"),
        (b"abcdef\x1b[2K\rx", "x"),
        (b"abcdef\r\x1b[2P", "cdef"),
        (b"abcdef\r\x1b[2X", "  cdef"),
        (b"abc\r\x1b[2@", "  abc"),
        (b"ab\x1b7cd\x1b8X", "abXd"),
        (b"a\x1b[5GX", "a   X"),
    ],
)
def test_cursor_moves_within_a_line_are_resolved(data, text):
    assert shown(data) == text


def test_two_progress_bars_fold_to_their_last_state():
    frames = b"".join(b"a %d\r\nb %d\r\n\x1b[2A" % (step, step) for step in range(50))
    assert shown(frames + b"\x1b[2Bdone") == "a 49\nb 49\ndone"


def test_repeated_clearing_folds_frames_and_keeps_what_was_before():
    frames = b"".join(b"\x1b[H\x1b[2Jframe %d\r\n" % step for step in range(9))
    assert shown(b"kept\r\n" + frames) == "kept\nframe 8\n"


def test_unterminated_sequence_hides_nothing_but_its_own_line_start():
    assert "shown" in shown(b"\x1b]0;never ends\r\nshown")
    assert "secret" in shown(b"\x1bPsecret\r\n")


def test_sequence_cut_off_at_the_end_is_dropped():
    assert shown(b"text\x1b[3") == "text"
    assert shown(b"text\x1b]0;ti") == "text"


def test_line_offsets_name_the_byte_where_the_line_began():
    screen = Screen(offset=100)
    screen.feed("é\r\nb\nc".encode())
    assert [line.offset for line in screen.lines()] == [100, 104, 106]


def test_old_rows_are_out_of_reach_and_unchanged():
    lines = b"".join(b"line %d\r\n" % number for number in range(200))
    seen = shown(lines + b"\x1b[999A\rX").split("\n")
    assert seen[0] == "line 0"
    assert seen[200 - HEIGHT + 1].startswith("Xine")


@given(st.binary(max_size=2000))
def test_any_bytes_give_text_without_control_characters(data):
    """T2"""
    text = shown(data)
    assert not {chr(code) for code in [*range(32), *range(0x7F, 0xA0)]} & set(text) - {"\t", "\n"}
    text.encode()


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=30), max_size=40))
def test_plain_text_comes_through_as_it_is(lines):
    text = "\n".join([*lines, "end"])
    assert shown(text.encode()) == "\n".join([*(line.rstrip(" ") for line in lines), "end"])


@pytest.mark.parametrize(
    "unit",
    [
        b"\x1b",
        b"\x1b]",
        b"\x1b[",
        b"\x1b[1@",
        b"\x1b[L\x1b[M",
        b"\x1b[2J",
        b"\x1b[999;999Hx",
        b"\x1b[99999b",
        b"x\xcc\x81",
        b"\xcc\x81",
        b"\xe8\xbf\x9b\r\x1b[C",
        b"\x1b[999Gx\n",
        b"\t",
        b"\x1bP\x1b",
    ],
)
def test_hostile_input_takes_linear_time(unit):
    """Not timed: with steps that cost as much as the input is long this would not end."""
    screen = Screen()
    screen.feed(unit * (60_000 // len(unit)))
    assert screen.lines()


def test_one_endless_line_is_kept_whole_without_cells_for_each_character():
    """T6"""
    assert shown(b"x" * (WIDTH * 300)) == "x" * (WIDTH * 300)


def test_visible_keeps_tabs():
    assert visible("a\tb\x1b\x7f\x85") == "a\tb\u241b\u2421\ufffd"
