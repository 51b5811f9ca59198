"""Room: gymnode.actions. Looking into files: windows, scrolling, facts. May touch the desk and the bench's cursor."""

from typing import ClassVar

from pydantic import Field

from gymnode.actions.arguments import PathText, Whole
from gymnode.actions.base import Family, Lane, NodeAction, NodeName
from gymnode.actions.telling import counted
from gymnode.errors import EditImpossible
from gymnode.observations import FileCursor, FileInfoObservation, Observation, Outcome, WindowObservation
from gymnode.rendering import moment
from gymnode.sessions import Lines, PathKind, Stat
from gymnode.workbench import Args, Bench, Desk
from gymnode.workspace.viewport import Chunk, Window, chunk_decode, window_around, window_from, window_until

WINDOW_BYTES = 192 * 1024
NO_FILE = "No file is open: open_file(path=...) opens one."


class OpenFile(NodeAction):
    """Open a text file and show a window of it with line numbers. The file stays open: file_goto_line, file_scroll_down
    and file_scroll_up move the window."""

    name: ClassVar = "open_file"
    family: ClassVar = Family.FILE
    lane: ClassVar = Lane.READ
    observation: ClassVar[type[Observation]] = WindowObservation

    path: PathText = Field(description="The file, relative to /workspace or absolute.")
    line_number: Whole = Field(default=1, ge=1, description="Line to show, in the middle of the window if it can be.")
    context_lines: Whole = Field(default=100, ge=1, le=1000, description="Height of the window in lines.")

    def act(self, desk: Desk) -> Observation:
        return show_around(desk, self.path, self.line_number, self.context_lines)


class CursorAction(NodeAction):
    """Base of actions on the file that is open: they work where it was opened."""

    node: NodeName | None = Field(default=None, description="Node of the open file; may be left out.")

    def place(self, bench: Bench) -> str | None:
        if self.node is None and bench.cursor is not None:
            return bench.cursor.node
        return self.node

    def act(self, desk: Desk) -> Observation:
        cursor = desk.bench.cursor
        if cursor is None:
            return desk.answer(self.observation, NO_FILE, outcome=Outcome.FAILED)
        if desk.node != (cursor.node or desk.bench.default_node):
            message = f"The open file {cursor.path} is on node {cursor.node}: leave node out, or open a file there."
            return desk.answer(self.observation, message, outcome=Outcome.FAILED)
        return self.on_file(desk, cursor)

    def on_file(self, desk: Desk, cursor: FileCursor) -> Observation:
        """The action itself, on a file that is open at this desk."""
        raise NotImplementedError


class FileGotoLine(CursorAction):
    """Move the window of the open file to a line."""

    name: ClassVar = "file_goto_line"
    family: ClassVar = Family.FILE
    lane: ClassVar = Lane.READ
    observation: ClassVar[type[Observation]] = WindowObservation

    line_number: Whole = Field(ge=1, description="Line to show, in the middle of the window if it can be.")

    def on_file(self, desk: Desk, cursor: FileCursor) -> Observation:
        return show_around(desk, cursor.path, self.line_number, cursor.context)


class FileScrollDown(CursorAction):
    """Show the next window of the open file: it begins with the line after the last one shown."""

    name: ClassVar = "file_scroll_down"
    family: ClassVar = Family.FILE
    lane: ClassVar = Lane.READ
    observation: ClassVar[type[Observation]] = WindowObservation

    def on_file(self, desk: Desk, cursor: FileCursor) -> Observation:
        first = cursor.last + 1
        chunk = read_lines(desk, cursor.path, first, cursor.context)
        if not chunk.lines:
            message = f"The window of {cursor.path} already ends with its last line, {chunk.total}."
            return desk.answer(WindowObservation, message, path=cursor.path, total_lines=chunk.total, cursor=cursor)
        window = window_from(chunk, height=cursor.context, max_chars=desk.bench.max_chars)
        return window_answer(desk, cursor.path, window, cursor.context)


class FileScrollUp(CursorAction):
    """Show the window of the open file before this one: it ends with the line before the first one shown."""

    name: ClassVar = "file_scroll_up"
    family: ClassVar = Family.FILE
    lane: ClassVar = Lane.READ
    observation: ClassVar[type[Observation]] = WindowObservation

    def on_file(self, desk: Desk, cursor: FileCursor) -> Observation:
        if cursor.line <= 1:
            message = f"The window of {cursor.path} already begins with line 1."
            return desk.answer(WindowObservation, message, path=cursor.path, cursor=cursor)
        chunk = read_until(desk, cursor.path, cursor.line - 1, cursor.context)
        if not chunk.lines:
            raise EditImpossible(f"{cursor.path} has only {chunk.total} lines now: move with file_goto_line")
        window = window_until(chunk, height=cursor.context, max_chars=desk.bench.max_chars)
        return window_answer(desk, cursor.path, window, cursor.context)


class GetFileInfo(NodeAction):
    """Show size, number of lines, encoding, mode and modification time of a file (default: the open one)."""

    name: ClassVar = "get_file_info"
    family: ClassVar = Family.FILE
    lane: ClassVar = Lane.READ
    observation: ClassVar[type[Observation]] = FileInfoObservation

    path: PathText | None = Field(default=None, description="The file. Default: the open one.")

    def place(self, bench: Bench) -> str | None:
        if self.node is None and self.path is None and bench.cursor is not None:
            return bench.cursor.node
        return self.node

    def act(self, desk: Desk) -> Observation:
        cursor = desk.bench.cursor
        path = self.path or (cursor.path if cursor else None)
        if path is None:
            return desk.answer(FileInfoObservation, NO_FILE, outcome=Outcome.FAILED)
        stat = desk.ask("file.stat", Stat, {"path": path})
        text = None
        if stat.kind is PathKind.FILE:
            text = desk.ask("file.lines", Lines, {"path": path, "start": 1, "count": 0, "max_bytes": 0})
        return _info(desk, path, stat, text)


def _info(desk: Desk, path: str, stat: Stat, text: Lines | None) -> FileInfoObservation:
    cursor = desk.bench.cursor
    modified_at = moment(stat.mtime)
    kind = {"dir": "a folder", "link": "a link", "other": "no regular file"}.get(stat.kind, "a file")
    if text is not None:
        kind = (
            "a binary file"
            if text.binary
            else f"a text file ({text.encoding_guess}, {counted(text.total_lines, 'line')})"
        )
    facts = f"{path} is {kind}, {stat.size:,} bytes, mode {stat.mode & 0o7777:04o}"
    message = f"{facts}, changed {f'{modified_at:%Y-%m-%d %H:%M:%S} UTC' if modified_at else 'at an impossible time'}."
    if cursor is not None and cursor.path == path:
        message += f" It is open; the window shows lines {cursor.line} to {cursor.last}."
    is_text = text is not None and not text.binary
    return desk.answer(
        FileInfoObservation,
        message,
        path=path,
        path_kind=stat.kind.value,
        size=stat.size,
        lines=text.total_lines if text and is_text else None,
        encoding=text.encoding_guess if text and is_text else None,
        mode=f"{stat.mode & 0o7777:04o}",
        modified_at=modified_at,
    )


def read_lines(desk: Desk, path: str, first: int, count: int) -> Chunk:
    """Up to `count` lines from `first` on; fewer at the end of the file, or when they are long. Raises GymError."""
    args: Args = {"path": path, "start": first, "count": count, "max_bytes": WINDOW_BYTES}
    found = desk.ask("file.lines", Lines, args)
    if found.binary or found.encoding_guess.startswith("utf-16"):
        what = "binary" if found.binary else found.encoding_guess.upper()
        tool = "file, xxd or a program of your own" if found.binary else f"iconv -f {found.encoding_guess} -t utf-8"
        raise EditImpossible(f"{path} is {what} and can't be shown as text ({found.size:,} bytes): use {tool}")
    last = min(found.last, found.total_lines)
    return chunk_decode(
        found.data, first=found.first, last=last, total=found.total_lines, encoding=found.encoding_guess
    )


def read_until(desk: Desk, path: str, last: int, count: int) -> Chunk:
    """Up to `count` lines that end with line `last`. Long lines may need a second look, from nearer on."""
    while True:
        first = max(1, last - count + 1)
        chunk = read_lines(desk, path, first, last - first + 1)
        if chunk.last >= last or count == 1 or chunk.total < last:
            return chunk
        count = max(1, count // 4)


def show_around(desk: Desk, path: str, line: int, height: int) -> Observation:
    """A window with `line` in it. Raises EditImpossible when the file has fewer lines."""
    before = read_until(desk, path, line, height // 2 + 1)
    if before.total < line and not (line == 1 and not before.total):
        message = f"{path} has {counted(before.total, 'line')}; there is no line {line}."
        return desk.answer(WindowObservation, message, outcome=Outcome.FAILED, path=path, total_lines=before.total)
    after = read_lines(desk, path, line + 1, height) if before.total > line and height > 1 else None
    lines = before.lines + (after.lines if after else ())
    chunk = Chunk(before.first, lines, after.total if after else before.total)
    window = window_around(chunk, line, height=height, max_chars=desk.bench.max_chars)
    return window_answer(desk, path, window, height)


def window_answer(desk: Desk, path: str, window: Window, height: int) -> WindowObservation:
    """The observation of a window, with the cursor that it leaves behind."""
    if not window.total:
        message = f"{path} is empty."
    else:
        moves = []
        if window.first > 1:
            moves.append(f"{counted(window.first - 1, 'line')} above (file_scroll_up)")
        if window.last < window.total:
            moves.append(f"{window.total - window.last:,} below (file_scroll_down)")
        rest = f"; {', '.join(moves)}" if moves else ""
        message = f"{path}, lines {window.first} to {window.last} of {window.total:,}{rest}."
    if "[... this line goes on after" in window.text:
        message += " Read the rest of a long line with run_command: sed -n 'NUMBERp' FILE | cut -c 2001-"
    return desk.answer(
        WindowObservation,
        message,
        output=window.text,
        path=path,
        first_line=window.first,
        last_line=window.last,
        total_lines=window.total,
        cursor=FileCursor(node=desk.node, path=path, line=window.first, last=window.last, context=height),
    )
