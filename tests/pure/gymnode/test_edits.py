"""Edits of files: only the replaced lines change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymnode.errors import EditImpossible
from gymnode.workspace.edits import diff_unified, lines_replace, split_lines, text_decode, text_encode


def edited(data: bytes, start: int, end: int, content: str) -> bytes:
    return text_encode(lines_replace(text_decode(data, "f"), start, end, content, "f").file, "f")


@pytest.mark.parametrize(
    ("data", "start", "end", "content", "wanted"),
    [
        (b"a\nb\nc\n", 2, 2, "B", b"a\nB\nc\n"),
        (b"a\nb\nc\n", 2, 2, "B\n", b"a\nB\nc\n"),
        (b"a\nb\nc\n", 1, -1, "x\ny", b"x\ny\n"),
        (b"a\nb\nc\n", -1, -1, "C", b"a\nb\nC\n"),
        (b"a\nb\nc", -1, -1, "C", b"a\nb\nC"),
        (b"a\nb\nc", -1, -1, "C\n", b"a\nb\nC\n"),
        (b"a\nb\n", 2, 2, "", b"a\n"),
        (b"a\nb\n", 2, 1, "new", b"a\nnew\nb\n"),
        (b"a\nb\n", 3, -1, "new", b"a\nb\nnew\n"),
        (b"a\nb", 3, -1, "new", b"a\nb\nnew"),
        (b"", 1, -1, "new\n", b"new\n"),
        (b"", -1, -1, "new", b"new"),
        (b"a\r\nb\r\n", 2, 2, "x\ny", b"a\r\nx\r\ny\r\n"),
        (b"a\r\nb\r\nc\n", 3, 3, "C", b"a\r\nb\r\nC\r\n"),
        (b"\xef\xbb\xbfa\nb\n", 1, 1, "ä", b"\xef\xbb\xbf\xc3\xa4\nb\n"),
        ("é\nb\n".encode("latin-1"), 2, 2, "ü", "é\nü\n".encode("latin-1")),
        ("a\nb\n".encode("utf-16"), 2, 2, "B", "a\nB\n".encode("utf-16")),
        (b"a\x0cb\nc\n", 2, 2, "C", b"a\x0cb\nC\n"),
    ],
)
def test_replacing_lines(data, start, end, content, wanted):
    assert edited(data, start, end, content) == wanted


@pytest.mark.parametrize(
    ("start", "end", "said"),
    [(9, -1, "ends with line 3"), (1, 9, "ends with line 3"), (3, 1, "before start"), (1, -1, "")],
)
def test_lines_that_are_not_there_are_named(start, end, said):
    if not said:
        assert edited(b"a\nb\nc\n", start, end, "x") == b"x\n"
        return
    with pytest.raises(EditImpossible, match=said):
        edited(b"a\nb\nc\n", start, end, "x")


def test_binary_files_are_refused():
    with pytest.raises(EditImpossible, match="binary"):
        text_decode(b"\x7fELF\0\0", "f")


def test_characters_the_encoding_lacks_are_named():
    with pytest.raises(EditImpossible, match="→"):
        edited(b"\xe9\n", 1, 1, "→")


@given(st.binary(max_size=300).filter(lambda data: b"\0" not in data), st.data())
def test_bytes_outside_the_replaced_lines_stay(data, draw):
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return
    count = len(text_decode(data, "f").lines)
    start = draw.draw(st.integers(1, count + 1))
    end = draw.draw(st.integers(start - 1, count))
    seen = edited(data, start, end, "")
    lines = data.split(b"\n")
    assert seen.startswith(b"\n".join(lines[: start - 1])[:-1])
    assert seen.endswith(b"\n".join(lines[end:]))


@given(st.lists(st.text("ab\r", max_size=5), max_size=20), st.data())
def test_replacing_lines_by_themselves_changes_nothing(parts, draw):
    file = text_decode("\n".join(parts).encode(), "f")
    if not file.lines or file.newline != "\n":
        return
    start = draw.draw(st.integers(1, len(file.lines)))
    end = draw.draw(st.integers(start, len(file.lines)))
    content = "".join(file.lines[start - 1 : end])
    if "\r\n" not in content:
        assert lines_replace(file, start, end, content, "f").file == file


TEXTS = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n"]), max_size=30)


@given(TEXTS, TEXTS, st.booleans())
def test_diff_names_exactly_the_lines_that_differ(old, new, cut):
    if cut and new:
        new = [*new[:-1], "last"]
    diff = diff_unified(old, new, "f").split("\n")[2:]
    assert bool(diff) == (old != new)
    gone = sum(line.startswith("-") for line in diff)
    come = sum(line.startswith("+") for line in diff)
    assert come - gone == len(new) - len(old)


def applied(old: list[str], diff: str) -> list[str]:
    """A patch program of ten lines."""
    new, place, missing = [], 0, "\\ No newline at end of file"
    body = diff.split("\n")[2:]
    for line, following in zip(body, [*body[1:], ""], strict=False):
        if line.startswith("@@"):
            first, count = (int(part) for part in line.split()[1][1:].split(","))
            stop = first - 1 if count else first
            new += old[place:stop]
            place = stop
        elif line.startswith("+"):
            new.append(line[1:] + ("" if following == missing else "\n"))
        elif line.startswith(("-", " ")):
            new += [old[place]] if line.startswith(" ") else []
            place += 1
    return new + old[place:]


@given(TEXTS, TEXTS, st.booleans())
def test_diff_turns_the_old_lines_into_the_new_ones(old, new, cut):
    new = [*new, "last"] if cut else new
    assert applied(old, diff_unified(old, new, "f")) == new


def test_diff_of_a_large_block_turns_the_old_lines_into_the_new_ones():
    old = [f"{number}\n" for number in range(5000)]
    new = [*old[:40], *(f"new {number}\n" for number in range(3000)), *old[4000:]]
    assert applied(old, diff_unified(old, new, "f")) == new


def test_diff_of_a_whole_large_file_is_linear():
    old = [f"{number}\n" for number in range(50_000)]
    assert diff_unified(old, [line.strip() + "x\n" for line in old], "f").count("\n") > 100_000


def test_lines_end_at_newlines_only():
    assert split_lines("a\x0bb\u2028c\n\nd") == ("a\x0bb\u2028c\n", "\n", "d")
    assert split_lines("") == ()
