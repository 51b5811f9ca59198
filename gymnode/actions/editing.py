"""Room: gymnode.actions. Writing files: create and edit, all or nothing. May touch the desk alone."""

import base64
import hashlib
from typing import ClassVar

from pydantic import Field

from gymnode.actions.arguments import PathText, Text, Whole
from gymnode.actions.base import Family, Lane, NodeAction
from gymnode.actions.telling import counted
from gymnode.errors import EditImpossible, NoSuchPath
from gymnode.observations import EditObservation, Observation
from gymnode.rendering import shorten
from gymnode.sessions import Content, Written
from gymnode.workbench import Args, Desk
from gymnode.workspace.edits import TextFile, diff_unified, lines_replace, split_lines, text_decode, text_encode

EDIT_BYTES = 4 * 1024 * 1024
PART_BYTES = 180 * 1024


class CreateFile(NodeAction):
    """Create a file with the given content, or replace the whole content of an existing one. Missing folders are made.
    The answer shows the difference to what was there."""

    name: ClassVar = "create_file"
    family: ClassVar = Family.FILE
    lane: ClassVar = Lane.FILE
    observation: ClassVar[type[Observation]] = EditObservation

    filename: PathText = Field(description="The file to write, relative to /workspace or absolute.")
    content: Text = Field(default="", description="The whole content, written exactly as it is (UTF-8).")

    def act(self, desk: Desk) -> Observation:
        old = _content_or_none(desk, self.filename)
        data = self.content.encode()
        written = _write(desk, self.filename, data, None)
        created = old is None
        lines = split_lines(self.content)
        verb = "Created" if created else "Replaced"
        message = f"{verb} {self.filename}: {counted(len(lines), 'line')}, {counted(written.size, 'byte')}."
        if old is not None and old.data == data:
            message = f"{self.filename} already had exactly this content: nothing changed."
        elif old is not None and old.size > len(old.data):
            message += " The old content was too large to be compared."
        return desk.answer(
            EditObservation,
            message,
            path=self.filename,
            created=created,
            size=written.size,
            sha256=written.sha256,
            total_lines=len(lines),
            output=_diff(desk, self.filename, _old_lines(old, self.filename), lines),
        )


class EditFile(NodeAction):
    """Replace lines of a text file by new content, and show the change as a unified diff. Encoding, newline style and
    mode of the file stay. Use the line numbers that open_file shows; they shift after an edit. To insert without
    replacing, give end = start - 1: the content goes before line start (one past the last line appends)."""

    name: ClassVar = "edit_file"
    family: ClassVar = Family.FILE
    lane: ClassVar = Lane.FILE
    observation: ClassVar[type[Observation]] = EditObservation

    path: PathText = Field(description="The file to change.")
    start: Whole = Field(default=1, ge=-1, description="First line to replace, from 1; -1 is the last line.")
    end: Whole = Field(default=-1, ge=-1, description="Last line to replace, inclusive; -1 is the last line.")
    content: Text = Field(description="The new lines. Empty content deletes the lines.")

    def act(self, desk: Desk) -> Observation:
        if self.start == 0:
            raise EditImpossible("start is 0, but lines are counted from 1 (-1 is the last line)")
        old = _content(desk, self.path)
        if old.masked:
            raise EditImpossible(
                f"{self.path} holds a secret of this run, which is masked here: use sed in run_command"
            )
        if old.size > len(old.data):
            text = f"{self.path} has {old.size:,} bytes; edit_file takes at most {EDIT_BYTES:,}. Use sed in run_command"
            raise EditImpossible(text)
        before = text_decode(old.data, self.path)
        change = lines_replace(before, self.start, self.end, self.content, self.path)
        data = text_encode(change.file, self.path)
        written = _write(desk, self.path, data, old)
        return self._answer(desk, before, change.file, written)

    def _answer(self, desk: Desk, before: TextFile, after: TextFile, written: Written) -> EditObservation:
        count = len(after.lines)
        diff = _diff(desk, self.path, before.lines, after.lines)
        message = f"Changed {self.path}: it has {counted(count, 'line')} now (before: {len(before.lines):,})."
        if not diff:
            message = f"{self.path} already had exactly these lines: nothing changed."
        return desk.answer(
            EditObservation,
            message,
            path=self.path,
            created=False,
            size=written.size,
            sha256=written.sha256,
            total_lines=count,
            output=diff,
        )


def _content(desk: Desk, path: str) -> Content:
    """A whole file, or the first part of one that is larger than EDIT_BYTES.

    Read in parts small enough for the node's journal to keep: an action sent again sees the file as it was.
    """
    parts: list[bytes] = []
    offset = 0
    while True:
        part = desk.ask("file.read", Content, {"path": path, "offset": offset, "max_bytes": PART_BYTES})
        parts.append(part.data)
        offset += len(part.data)
        if not part.data or offset >= part.size or part.size > EDIT_BYTES or part.masked:
            return part.model_copy(update={"data": b"".join(parts)})


def _content_or_none(desk: Desk, path: str) -> Content | None:
    try:
        return _content(desk, path)
    except NoSuchPath:
        return None


def _write(desk: Desk, path: str, data: bytes, old: Content | None) -> Written:
    """Write all of a file. When `old` is given it must still be what is there, and its mode stays."""
    args: Args = {
        "path": path,
        "data": base64.b64encode(data).decode(),
        "mode": old.mode & 0o7777 if old else None,
        "expect_sha256": hashlib.sha256(old.data).hexdigest() if old else None,
        "make_dirs": old is None,
    }
    return desk.ask("file.write", Written, args)


def _old_lines(old: Content | None, path: str) -> tuple[str, ...]:
    """Lines of a replaced file for the diff; none for a binary or too large one, which has no useful diff."""
    if old is None or old.size > len(old.data):
        return ()
    try:
        return text_decode(old.data, path).lines
    except EditImpossible:
        return ()


def _diff(desk: Desk, path: str, old: tuple[str, ...], new: tuple[str, ...]) -> str:
    return shorten(diff_unified(old, new, path), desk.bench.max_chars, "open_file shows the file as it is now.")
