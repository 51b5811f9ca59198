"""Room: gymnode.actions. Finding files and text in them, listing folders. May touch the desk and the bench's cursor."""

from typing import ClassVar

from pydantic import Field

from gymnode.actions.arguments import PathText, Text, Whole
from gymnode.actions.base import Family, Lane, NodeAction
from gymnode.actions.files import NO_FILE
from gymnode.actions.telling import counted
from gymnode.observations import ListingObservation, Observation, Outcome, PathsObservation, SearchObservation
from gymnode.rendering import moment, shorten
from gymnode.screen import visible
from gymnode.sessions import Entry, Found, Listing, PathKind, Paths
from gymnode.workbench import Args, Bench, Desk

MAX_HITS = 200
PAGE_SIZE = 200
_LINE_CHARS = 300
_NARROWER = "Search for something rarer, or in a smaller folder."


class SearchDir(NodeAction):
    """Search a folder and everything below it for a text (as it is: no pattern, capital letters count) and show each
    line that holds it. Binary and huge files are skipped and named."""

    name: ClassVar = "search_dir"
    family: ClassVar = Family.FILE
    lane: ClassVar = Lane.READ
    observation: ClassVar[type[Observation]] = SearchObservation

    search_term: Text = Field(description="The text to look for.", min_length=1)
    dir_path: PathText = Field(default="/workspace", description="The folder to search.")

    def act(self, desk: Desk) -> Observation:
        return _search(desk, self.search_term, self.dir_path)


class SearchFile(NodeAction):
    """Search one file (default: the open one) for a text (as it is: no pattern, capital letters count) and show each
    line that holds it, with its number."""

    name: ClassVar = "search_file"
    family: ClassVar = Family.FILE
    lane: ClassVar = Lane.READ
    observation: ClassVar[type[Observation]] = SearchObservation

    search_term: Text = Field(description="The text to look for.", min_length=1)
    file_path: PathText | None = Field(default=None, description="The file to search. Default: the open one.")

    def place(self, bench: Bench) -> str | None:
        if self.node is None and self.file_path is None and bench.cursor is not None:
            return bench.cursor.node
        return self.node

    def act(self, desk: Desk) -> Observation:
        path = self.file_path or (desk.bench.cursor.path if desk.bench.cursor else None)
        if path is None:
            return desk.answer(SearchObservation, f"{NO_FILE} Or name a file_path.", outcome=Outcome.FAILED)
        return _search(desk, self.search_term, path)


class FindFile(NodeAction):
    """Find files and folders by name, in a folder and everything below it."""

    name: ClassVar = "find_file"
    family: ClassVar = Family.FILE
    lane: ClassVar = Lane.READ
    observation: ClassVar[type[Observation]] = PathsObservation

    file_name: Text = Field(
        description="A part of the name, or a pattern with * ? [...] for the whole name, such as *.py.", min_length=1
    )
    dir_path: PathText = Field(default="/workspace", description="The folder to look in.")

    def act(self, desk: Desk) -> Observation:
        args: Args = {"pattern": self.file_name, "path": self.dir_path, "max_hits": MAX_HITS}
        found = desk.ask("file.find", Paths, args)
        count = len(found.paths)
        more = f" There are more than these {count}: use a narrower name or folder." if found.truncated else ""
        message = f"{counted(count, 'path')} below {self.dir_path} with {self.file_name} in the name.{more}"
        text = shorten("\n".join(visible(path) for path in found.paths), desk.bench.max_chars, "Use a narrower name.")
        return desk.answer(PathsObservation, message, paths=found.paths, truncated=found.truncated, output=text)


class ListFiles(NodeAction):
    """List a folder: names with size and time of the last change, sorted by name, 200 to a page."""

    name: ClassVar = "list_files"
    family: ClassVar = Family.FILE
    lane: ClassVar = Lane.READ
    observation: ClassVar[type[Observation]] = ListingObservation

    path: PathText = Field(default=".", description="The folder.")
    show_hidden: bool = Field(default=False, description="Show names that begin with a dot.")
    page: Whole = Field(default=1, ge=1, le=1_000_000, description="Page to show.")

    def act(self, desk: Desk) -> Observation:
        args: Args = {
            "path": self.path,
            "show_hidden": self.show_hidden,
            "page": self.page,
            "page_size": PAGE_SIZE,
        }
        listing = desk.ask("file.list", Listing, args)
        pages = max(1, -(-listing.total // PAGE_SIZE))
        hidden = "" if self.show_hidden else "; hidden ones aren't counted"
        message = f"{self.path}: {counted(listing.total, 'entry', 'entries')}{hidden}."
        outcome = Outcome.OK
        if self.page > pages:
            message = f"{self.path} has {counted(pages, 'page')}; there is no page {self.page}."
            outcome = Outcome.FAILED
        elif pages > 1:
            message += f" Page {self.page} of {pages}" + (
                f": go on with page={self.page + 1}." if self.page < pages else "."
            )
        text = "\n".join(_entry_row(entry) for entry in listing.entries)
        return desk.answer(
            ListingObservation,
            message,
            outcome=outcome,
            path=self.path,
            entries=listing.entries,
            page=self.page,
            total=listing.total,
            output=shorten(text, desk.bench.max_chars, "Use ls in run_command for a part."),
        )


def _search(desk: Desk, term: str, path: str) -> SearchObservation:
    found = desk.ask("file.search", Found, {"term": term, "path": path, "max_hits": MAX_HITS}, wait_s=30)
    count = len(found.hits)
    searched = counted(found.files_searched, "file")
    message = f"{counted(count, 'line')} with {term!r} in {path} ({searched} searched)."
    if found.truncated:
        message += f" There may be more: the search stopped early. {_NARROWER}"
    if found.skipped:
        names = ", ".join(f"{visible(item.path)} ({item.why})" for item in found.skipped[:5])
        more = f" and {len(found.skipped) - 5} more" if len(found.skipped) > 5 else ""
        message += f" Not searched: {names}{more}."
    rows = [f"{visible(hit.path)}:{hit.line}: {visible(hit.text[:_LINE_CHARS])}" for hit in found.hits]
    return desk.answer(
        SearchObservation,
        message,
        hits=found.hits,
        files_searched=found.files_searched,
        skipped=found.skipped,
        truncated=found.truncated,
        output=shorten("\n".join(rows), desk.bench.max_chars, _NARROWER),
    )


def _entry_row(entry: Entry) -> str:
    at = moment(entry.mtime)
    when = f"{at:%Y-%m-%d %H:%M}" if at else f"{'-':>16}"
    mark = {PathKind.FOLDER: "/", PathKind.LINK: "@"}.get(entry.kind, "")
    odd = " (name isn't valid UTF-8)" if entry.name_base64 else ""
    return f"{entry.size:>14,}  {when}  {visible(entry.name)}{mark}{odd}"
