"""File actions over the real file operations of gymd, on a folder."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gymnode.observations import Outcome

FEW = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def numbers(text: str) -> list[int]:
    return [int(line.partition("|")[0]) for line in text.split("\n")]


def test_window_has_numbers_and_says_what_is_above_and_below(gym):
    (gym.root / "f").write_text("".join(f"line {number}\n" for number in range(1, 301)))
    seen = gym.call("open_file", '{"path":"f","line_number":150,"context_lines":10}')
    assert "150| line 150" in seen.output
    assert seen.message == "f, lines 146 to 155 of 300; 145 lines above (file_scroll_up), 145 below (file_scroll_down)."
    assert (seen.cursor.line, seen.cursor.last, seen.cursor.path) == (146, 155, "f")


@FEW
@given(st.lists(st.integers(0, 300), min_size=1, max_size=60), st.integers(1, 20), st.integers(100, 900))
def test_scrolling_reaches_every_line_and_skips_none(gym, widths, height, max_chars):
    (gym.root / "f").write_text("".join("x" * width + "\n" for width in widths))
    gym.max_chars = max_chars
    seen = gym.call("open_file", json.dumps({"path": "f", "context_lines": height}))
    down = numbers(seen.output)
    while seen.last_line is not None and seen.last_line < len(widths):
        seen = gym.call("file_scroll_down")
        down += numbers(seen.output)
    assert down == list(range(1, len(widths) + 1))
    up = numbers(seen.output)
    while seen.first_line > 1:
        seen = gym.call("file_scroll_up")
        up = numbers(seen.output) + up
    assert up == down


def test_scrolling_beyond_the_ends_says_so_and_keeps_the_window(gym):
    (gym.root / "f").write_text("a\nb\n")
    gym.call("open_file", '{"path":"f"}')
    assert "already ends with its last line, 2" in gym.call("file_scroll_down").message
    assert "already begins with line 1" in gym.call("file_scroll_up").message
    assert gym.cursor.last == 2


def test_lines_of_a_megabyte_do_not_hide_their_neighbours(gym):
    (gym.root / "f").write_text("a\n" + ("x" * 1_000_000 + "\n") * 3 + "b\n")
    seen = gym.call("open_file", '{"path":"f","line_number":5}')
    assert "5| b" in seen.output
    seen = gym.call("file_goto_line", '{"line_number":1}')
    assert seen.output.startswith("1| a\n2| xxx")
    assert "cut -c 2001-" in seen.message


def test_line_that_is_not_there_is_a_failure_with_the_number_of_lines(gym):
    (gym.root / "f").write_text("a\n")
    seen = gym.call("open_file", '{"path":"f","line_number":7}')
    assert (seen.outcome, seen.message) == (Outcome.FAILED, "f has 1 line; there is no line 7.")


def test_empty_missing_and_binary_files(gym):
    (gym.root / "empty").write_text("")
    (gym.root / "data.bin").write_bytes(b"\0\1\2" * 100)
    assert gym.call("open_file", '{"path":"empty"}').message == "empty is empty."
    missing = gym.call("open_file", '{"path":"gone"}')
    assert (missing.outcome, missing.observation_type) == (Outcome.FAILED, "file_window")
    assert "list_files" in missing.message
    assert "binary" in gym.call("open_file", '{"path":"data.bin"}').message
    assert "folder" in gym.call("open_file", '{"path":"."}').message


@pytest.mark.parametrize("name", ["file_scroll_down", "file_scroll_up", "get_file_info"])
def test_actions_on_the_open_file_say_when_none_is_open(gym, name):
    seen = gym.call(name)
    assert (seen.outcome, "open_file" in seen.message) == (Outcome.FAILED, True)


def test_open_file_stays_on_its_node(two_nodes):
    (two_nodes.root / "n2" / "f").write_text("on n2\n")
    two_nodes.call("open_file", '{"path":"f","node":"n2"}')
    assert two_nodes.call("file_goto_line", '{"line_number":1}').node == "n2"
    seen = two_nodes.call("file_goto_line", '{"line_number":1,"node":"n1"}')
    assert "is on node n2" in seen.message


def test_created_file_and_its_replacement_are_told_apart(gym):
    seen = gym.call("create_file", '{"filename":"sub/new.txt","content":"a\\nb\\n"}')
    assert seen.created is True
    assert seen.message == "Created sub/new.txt: 2 lines, 4 bytes."
    assert "+a" in seen.output
    (gym.root / "sub" / "new.txt").chmod(0o755)
    again = gym.call("create_file", '{"filename":"sub/new.txt","content":"a\\nc\\n"}')
    assert (again.created, "-b\n+c" in again.output) == (False, True)
    assert (gym.root / "sub" / "new.txt").stat().st_mode & 0o777 == 0o755
    assert "nothing changed" in gym.call("create_file", '{"filename":"sub/new.txt","content":"a\\nc\\n"}').message


def test_edit_shows_the_diff_and_keeps_mode_newlines_and_encoding(gym):
    path = gym.root / "f"
    path.write_bytes("é\r\nb\r\nc\r\n".encode("latin-1"))
    path.chmod(0o750)
    seen = gym.call("edit_file", '{"path":"f","start":2,"end":2,"content":"ü"}')
    assert path.read_bytes() == "é\r\nü\r\nc\r\n".encode("latin-1")
    assert path.stat().st_mode & 0o777 == 0o750
    assert "-b\n+ü" in seen.output
    assert seen.total_lines == 3


def test_edit_sent_again_changes_the_file_once_and_answers_the_same(gym):
    """N7"""
    (gym.root / "f").write_text("a\n")
    arguments = '{"path":"f","start":2,"end":1,"content":"b"}'
    first = gym.call("edit_file", arguments, action_id="412.9.0")
    again = gym.call("edit_file", arguments, action_id="412.9.0", resend=True)
    assert (gym.root / "f").read_text() == "a\nb\n"
    assert again.body() == first.body()


def test_edit_of_a_file_that_changed_meanwhile_is_refused(gym):
    (gym.root / "f").write_text("a\n")
    gym.call("edit_file", '{"path":"f","content":"b"}', action_id="412.9.0")
    (gym.root / "f").write_text("other\n")
    del gym.node.journal["412.9.0"]
    seen = gym.call("edit_file", '{"path":"f","content":"b"}', action_id="412.9.0")
    assert seen.outcome is Outcome.FAILED
    assert "Open it again" in seen.message


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ('{"path":"f","start":0,"content":"x"}', "counted from 1"),
        ('{"path":"f","start":9,"content":"x"}', "ends with line 1"),
        ('{"path":"gone","content":"x"}', "does not exist"),
    ],
)
def test_edits_that_do_not_fit_change_nothing(gym, arguments, said):
    (gym.root / "f").write_text("a\n")
    seen = gym.call("edit_file", arguments)
    assert seen.outcome is Outcome.FAILED
    assert said in seen.message
    assert (gym.root / "f").read_text() == "a\n"


def test_searches_name_hits_and_what_was_skipped(gym):
    (gym.root / "a.py").write_text("x = 1\nneedle = 2\n")
    (gym.root / "b.bin").write_bytes(b"needle\0")
    seen = gym.call("search_dir", '{"search_term":"needle"}')
    assert [(hit.line, hit.text) for hit in seen.hits] == [(2, "needle = 2")]
    assert "b.bin (binary)" in seen.message
    gym.call("open_file", '{"path":"a.py"}')
    assert gym.call("search_file", '{"search_term":"x ="}').hits[0].line == 1
    assert len(gym.call("find_file", '{"file_name":"*.py"}').paths) == 1
    assert gym.call("find_file", '{"file_name":"b."}').paths[0].endswith("b.bin")


def test_listing_is_paged_and_survives_names_that_are_not_utf8(gym):
    """T2"""
    for number in range(250):
        (gym.root / f"f{number:03}").write_text("")
    (gym.root / b"\xff".decode("utf-8", "surrogateescape")).write_text("")
    seen = gym.call("list_files")
    assert (len(seen.entries), seen.total) == (200, 251)
    assert "Page 1 of 2: go on with page=2." in seen.message
    last = gym.call("list_files", '{"page":2}')
    assert "\ufffd (name isn't valid UTF-8)" in last.output
    json.dumps(last.body(), ensure_ascii=False).encode()
    assert gym.call("list_files", '{"page":3}').outcome is Outcome.FAILED


def test_file_info_tells_size_lines_encoding_mode_and_cursor(gym):
    (gym.root / "f").write_text("ä\nb\n")
    gym.call("open_file", '{"path":"f"}')
    seen = gym.call("get_file_info")
    assert (seen.size, seen.lines, seen.encoding) == (5, 2, "utf-8")
    assert "window shows lines 1 to 2" in seen.message
    assert gym.call("get_file_info", '{"path":"."}').path_kind == "dir"


@pytest.mark.parametrize("mtime", [99_999_999_999_999, -99_999_999_999_999, 1e300])
def test_a_time_that_no_calendar_holds_is_told_as_such(gym, mtime):
    """A file may carry any time: what is told of it must not depend on it."""
    (gym.root / "f").write_text("x")
    listed = gym.node.files.call("file.list", {"path": ".", "offset": 0, "limit": 9})
    gym.node.script["file.list"] = {**listed, "entries": [{**entry, "mtime": mtime} for entry in listed["entries"]]}
    assert gym.call("list_files").output.split()[-2:] == ["-", "f"]
    stat = gym.node.files.call("file.stat", {"path": "f"})
    gym.node.script["file.stat"] = {**stat, "mtime": mtime}
    seen = gym.call("get_file_info", '{"path":"f"}')
    assert (seen.modified_at, "changed at an impossible time" in seen.message) == (None, True)


def test_a_fault_of_our_own_ends_an_action_and_not_the_run(gym, caplog):
    gym.node.script["file.stat"] = ZeroDivisionError("ours")
    seen = gym.call("get_file_info", '{"path":"f"}')
    assert seen.outcome is Outcome.BROKEN
    assert "by a fault of the site's own" in seen.message
    assert "ZeroDivisionError" in caplog.text


def test_control_characters_of_a_path_are_visible_in_the_message(gym):
    """T5"""
    seen = gym.call("open_file", '{"path":"a\\u001b[31m\\nb"}')
    assert "\x1b" not in seen.text()
    assert "\u241b" in seen.message
