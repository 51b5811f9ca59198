"""Room: gymnode, pure. Edits of text files: bytes in, bytes out; encoding, byte order mark and newline style are kept.

Only the replaced lines change: every other byte stays what it was, also in a file that mixes newline styles.
"""

import codecs
import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from gymnode.errors import EditImpossible
from gymnode.screen import visible

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_SAMPLE = 8192
_DIFF_LINES = 800  # beyond this a changed block is shown as removed and added, not aligned line by line
_CONTEXT = 3


@dataclass(frozen=True)
class TextFile:
    """A decoded file. `lines` keep their endings; the last one has none if the file doesn't end with a newline."""

    lines: tuple[str, ...]
    encoding: str
    mark: bytes
    newline: str


@dataclass(frozen=True)
class Replacement:
    """The file after the edit, and which lines of the old one were replaced (1-based; `last < first`: inserted)."""

    file: TextFile
    first: int
    last: int
    added: int


def text_decode(data: bytes, path: str) -> TextFile:
    """Raises EditImpossible for a binary file. Without a mark: UTF-8, else Latin-1, which keeps every byte."""
    mark, encoding = next(((mark, name) for mark, name in _MARKS if data.startswith(mark)), (b"", ""))
    if not mark and b"\0" in data[:_SAMPLE]:
        raise EditImpossible(f"{path} is a binary file; change it with a program of your own through run_command")
    body = data[len(mark) :]
    try:
        text = body.decode(encoding or "utf-8")
        encoding = encoding or "utf-8"
    except UnicodeDecodeError as error:
        if mark:
            raise EditImpossible(f"{path} begins like {encoding} but isn't valid {encoding}: {error.reason}") from error
        text, encoding = body.decode("latin-1"), "latin-1"
    lines = split_lines(text)
    windows = sum(line.endswith("\r\n") for line in lines)
    return TextFile(lines, encoding, mark, "\r\n" if windows * 2 > len(lines) else "\n")


def text_encode(file: TextFile, path: str) -> bytes:
    """Raises EditImpossible when new text has characters that the file's encoding lacks."""
    try:
        return file.mark + "".join(file.lines).encode(file.encoding)
    except UnicodeEncodeError as error:
        wrong = error.object[error.start]
        raise EditImpossible(
            f"{path} is {file.encoding} text, which has no {wrong!r}; write ASCII, or convert the file first "
            f"(run_command: iconv -f {file.encoding} -t utf-8)"
        ) from error


def split_lines(text: str) -> tuple[str, ...]:
    """Lines with their endings. Only a newline ends a line: form feeds and Unicode separators are text."""
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return tuple(lines if lines[-1] else lines[:-1])


def lines_replace(file: TextFile, start: int, end: int, content: str, path: str) -> Replacement:
    """Replace lines `start` to `end` (inclusive, -1 = last line) by `content`.

    `end = start - 1` replaces nothing: `content` is inserted before line `start`, which may be one past the last line.
    Empty content deletes the lines. A missing newline at the end of `content` is added where text follows and where
    the file ended with one. Raises EditImpossible for lines that don't exist.
    """
    total = len(file.lines)
    first = max(1, total) if start == -1 else start
    last = total if end == -1 else end
    if first > total + 1:
        raise EditImpossible(f"start is {start}, but {path} ends with line {total}; use 1 to {total + 1}, or -1")
    if last > total:
        raise EditImpossible(f"end is {end}, but {path} ends with line {total}; use -1 for the last line")
    if last < first - 1:
        raise EditImpossible(f"end ({end}) is before start ({start}); end = start - 1 inserts before line {first}")
    before, after = list(file.lines[: first - 1]), file.lines[last:]
    new = [_styled(line, file.newline) for line in split_lines(content.replace("\r\n", "\n"))]
    ended = not file.lines or file.lines[-1].endswith("\n")
    if new and not new[-1].endswith("\n") and (after or (ended and total)):
        new[-1] += file.newline
    if new and before and not before[-1].endswith("\n"):
        before[-1] += file.newline
    lines = (*before, *new, *after)
    return Replacement(TextFile(lines, file.encoding, file.mark, file.newline), first, last, len(new))


def _styled(line: str, newline: str) -> str:
    return line[:-1] + newline if newline != "\n" and line.endswith("\n") else line


def diff_unified(old: Sequence[str], new: Sequence[str], path: str) -> str:
    """A unified diff of two lists of lines (with endings), linear for large inputs; empty when nothing changed."""
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    gone, come = old[head : len(old) - tail], new[head : len(new) - tail]
    if not gone and not come:
        return ""
    context = min(_CONTEXT, head)
    after = min(_CONTEXT, tail)
    near_old = old[head - context : len(old) - tail + after]
    near_new = new[head - context : len(new) - tail + after]
    if max(len(gone), len(come)) <= _DIFF_LINES:
        body = _aligned(near_old, near_new, head - context)
    else:
        body = [_range_line(head - context, len(near_old), len(near_new))]
        body += [" " + line for line in near_old[:context]]
        body += ["-" + line for line in gone] + ["+" + line for line in come]
        body += [" " + line for line in near_old[len(near_old) - after :] if after]
    return "\n".join([f"--- {visible(path)}", f"+++ {visible(path)}", *_shown(body)])


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    count = 0
    for left, right in zip(old, new, strict=False):
        if left != right:
            break
        count += 1
    return count


def _aligned(old: Sequence[str], new: Sequence[str], skipped: int) -> list[str]:
    """Hunks of a small block, their line numbers moved down by the lines before it."""
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    body: list[str] = []
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        (_, i1, _, j1, _), (_, _, i2, _, j2) = group[0], group[-1]
        body.append(f"@@ -{_span(skipped + i1, i2 - i1)} +{_span(skipped + j1, j2 - j1)} @@")
        for tag, a1, a2, b1, b2 in group:
            if tag == "equal":
                body += [" " + line for line in old[a1:a2]]
                continue
            body += ["-" + line for line in old[a1:a2]] + ["+" + line for line in new[b1:b2]]
    return body


def _range_line(start: int, old: int, new: int) -> str:
    return f"@@ -{_span(start, old)} +{_span(start, new)} @@"


def _span(start: int, length: int) -> str:
    """`first,count` as diff writes it: an empty range names the line before it."""
    return f"{start + 1 if length else start},{length}"


def _shown(body: Sequence[str]) -> list[str]:
    """Diff lines without their endings; a missing final newline is said the way diff says it."""
    shown: list[str] = []
    for line in body:
        shown.append(visible(line.removesuffix("\n").removesuffix("\r")))
        if not line.endswith("\n") and not line.startswith("@@"):
            shown.append("\\ No newline at end of file")
    return shown
