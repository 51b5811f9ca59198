"""Terminal output as markup: colours stay, everything that could act is gone."""

import re
from html import unescape
from pathlib import Path
from unicodedata import category

import pytest

from gymnode.cells import width
from gymnode.screen import Screen
from portal.core.ansi import ansi_html
from tests.pure.pages.terminal_cases import CASES

ANSI_JS = Path(__file__).parents[3] / "static" / "js" / "run" / "ansi.js"


def test_markup_in_output_is_text():
    """T7"""
    assert ansi_html("<img src=x onerror=alert(1)>") == "&lt;img src=x onerror=alert(1)&gt;"


def test_markup_split_by_colour_codes_is_text():
    """T7"""
    html = ansi_html("<\x1b[31mscript>alert(1)</\x1b[0mscript>")
    assert "<script" not in html
    assert '<span class="c-r">' in html


def test_bare_carriage_returns_leave_one_line():
    """T4"""
    assert ansi_html("\r".join(f"{i:3}%" for i in range(101))) == "100%"


@pytest.mark.parametrize(("printed", "read"), CASES.values(), ids=CASES)
def test_page_and_model_read_frames_as_a_terminal_shows_them(printed, read):
    """T4: what is written over is gone from both."""
    assert unescape(re.sub(r"<[^>]+>", "", ansi_html(printed))) == read
    screen = Screen()
    screen.feed(printed.encode())
    assert "\n".join(line.text for line in screen.lines()) == read


def test_the_live_viewer_counts_the_columns_of_every_character_alike():
    """T4: its table of wide characters holds what this Python knows as wide, and nothing narrow."""
    table = re.search(r"String\.raw`\[(.*?)\]`", ANSI_JS.read_text(), re.S)[1].replace("\n", "")
    listed = re.compile(f"[{re.sub(r'u{([0-9a-f]+)}', lambda point: f'U{point[1]:0>8}', table)}]")
    known = [chr(code) for code in range(0x300, 0x10000) if category(chr(code)) not in {"Cn", "Cs"}]
    assert [char for char in known if width(char) and (width(char) == 2) != bool(listed.match(char))] == []
    assert all(listed.match(char) for char in "😀🚀🧪𠀀")


@pytest.mark.parametrize(
    "sequence", ["\x1b[99999b", "x\x1b[99999b", "\x1b[99999Gx", "\x1b[99999Cx", "\u0301", "进\r\x1b[C"]
)
def test_a_few_bytes_make_no_long_line(sequence):
    """T6"""
    assert len(ansi_html(f"{sequence}\n" * 50)) < 50 * 1100
    assert len(ansi_html(sequence * 5000)) < 60_000


def test_titles_links_clipboard_and_queries_vanish():
    """T5"""
    text = "a\x1b]0;title\x07b\x1b]8;;http://x\x1b\\c\x1b]52;c;AAAA\x07d\x1b[?1049he\x1b[6nf\x1bP1$r\x1b\\g"
    assert ansi_html(text) == "abcdefg"


def test_nul_becomes_a_visible_symbol():
    """T1"""
    assert ansi_html("a\0b") == "a␀b"


def test_an_escape_cut_at_the_end_is_dropped():
    assert ansi_html("done\x1b[3") == "done"
    assert ansi_html("done\x1b]0;half a title") == "done"


def test_bold_dim_and_reset():
    assert ansi_html("\x1b[1mA\x1b[2mB\x1b[0mC") == '<span class="c-1">A</span><span class="c-d">B</span>C'


def test_backspace_and_erase_act_on_their_line():
    assert ansi_html("abc\b\bX\x1b[K") == "aX"


def test_lines_end_alike_on_every_system():
    assert ansi_html("a\r\nb\nc") == "a\nb\nc"


def test_a_line_without_end_is_cut_and_marked():
    """T6"""
    assert ansi_html("\x1b[31m" + "x" * 500_000).count("x") == 200_000
