"""Room: gymnode.actions. All actions by name: what is offered to a model, and the one way from a call to an action."""

import difflib
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from gymnode.actions.arguments import BadArguments, arguments_parse, problems_of
from gymnode.actions.base import Action, Family, Lane
from gymnode.actions.command import GetSessionOutput, GetSessionRecentOutput, InputInSession, RunCommand
from gymnode.actions.control import Eval, Finish, NodeStatus, Null, Sleep, Think, ViewHint
from gymnode.actions.editing import CreateFile, EditFile
from gymnode.actions.files import FileGotoLine, FileScrollDown, FileScrollUp, GetFileInfo, OpenFile
from gymnode.actions.finding import FindFile, ListFiles, SearchDir, SearchFile
from gymnode.actions.session import (
    CheckSessionIdle,
    ClearSessionBuffer,
    CloseAllSessions,
    CloseSession,
    CreateSession,
    GetSessionStatus,
    KillSessionProcesses,
    ListSessions,
)
from gymnode.errors import CallRefused
from gymnode.observations import Outcome, Refusal
from gymnode.rendering import storable
from gymnode.screen import visible

_CLASSES: tuple[type[Action], ...] = (
    CreateSession,
    ListSessions,
    RunCommand,
    InputInSession,
    GetSessionOutput,
    GetSessionRecentOutput,
    GetSessionStatus,
    CheckSessionIdle,
    ClearSessionBuffer,
    CloseSession,
    CloseAllSessions,
    KillSessionProcesses,
    OpenFile,
    FileGotoLine,
    FileScrollDown,
    FileScrollUp,
    CreateFile,
    EditFile,
    SearchDir,
    SearchFile,
    FindFile,
    ListFiles,
    GetFileInfo,
    Think,
    Null,
    Eval,
    ViewHint,
    Finish,
    Sleep,
    NodeStatus,
)
ACTIONS: Mapping[str, type[Action]] = {action.name: action for action in _CLASSES}

_PARSE = "parse_pdf parse_docx parse_latex parse_pptx parse_audio parse_image parse_video"
_BROWSE = (
    "web_browse web_page_goto_line web_page_scroll_down web_page_scroll_up web_page_search web_page_search_next "
    "web_page_get_links"
)
UNAVAILABLE: Mapping[str, Family] = {
    **dict.fromkeys(_PARSE.split(), Family.PARSE),
    "web_search": Family.SEARCH,
    **dict.fromkeys(_BROWSE.split(), Family.BROWSE),
}
KNOWN: frozenset[str] = frozenset(ACTIONS) | frozenset(UNAVAILABLE)

_OFFERED = tuple(name for name, action in ACTIONS.items() if action.offered and action is not ViewHint)
_NOT_PUBLISHED = {"get_session_recent_output", "get_session_status", "node_status"}
_PUBLISHED = tuple(name for name in _OFFERED if name not in _NOT_PUBLISHED)

# What each preset offers in this release. `view_hint` is added by whoever knows the run's hint mode. The authors' two
# configs name the same tools but for web search and browsing, and both name parse_image and parse_video besides.
PRESETS: Mapping[str, tuple[str, ...]] = {
    "innovatorbench": _OFFERED,
    "published": _PUBLISHED,
    "published-browse": _PUBLISHED,
}


class ToolSpec(BaseModel):
    """A tool as it is offered to a model; `parameters` is its JSON schema."""

    model_config = ConfigDict(frozen=True)

    name: str
    description: str
    parameters: dict[str, JsonValue]


def tool_specs(names: Iterable[str]) -> tuple[ToolSpec, ...]:
    """The offer for these names, in the registry's order whatever theirs. Names that this release can't carry out, and
    `null`, are left out. Raises KeyError for a name that no release knows."""
    wanted = set(names)
    unknown = sorted(wanted - KNOWN)
    if unknown:
        raise KeyError(f"no action is named {', '.join(unknown)}")
    chosen = [action for name, action in ACTIONS.items() if name in wanted and action.offered]
    return tuple(
        ToolSpec(name=action.name, description=action.description(), parameters=action.parameters())
        for action in chosen
    )


def lane_of(name: str) -> Lane:
    """The viewer's lane of an action; names without a class are reading, whatever they are."""
    return ACTIONS[name].lane if name in ACTIONS else Lane.READ


def family_of(name: str) -> Family | None:
    """The family of a known action."""
    return ACTIONS[name].family if name in ACTIONS else UNAVAILABLE.get(name)


def action_parse(name: str, raw_arguments: str, *, allowed: Collection[str], refused: str = "") -> Action:
    """The action that a model called. `allowed` is the agent config's list: enforced here, whatever was offered;
    `refused` says why the call isn't even looked at.

    Raises CallRefused with the observation to answer that call: unknown, unavailable or not allowed; broken JSON;
    missing, unknown, mistyped or out-of-range arguments, each named, with the schema.
    """
    if refused:
        raise _refused(name, refused)
    if name not in ACTIONS or not ACTIONS[name].offered:
        raise _refused(name, _no_such(name, allowed))
    if name not in allowed:
        raise _refused(name, f"{name} is not among the tools of this run. Its tools: {_names(allowed)}.")
    action = ACTIONS[name]
    try:
        return action.model_validate(arguments_parse(raw_arguments))
    except BadArguments as error:
        problems: tuple[str, ...] = (str(error),)
    except ValidationError as error:
        problems = problems_of(error, tuple(action.model_fields))
    message = f"{name} was not carried out: {'; '.join(problems)}. Call it again with arguments that fit its schema."
    raise _refused(name, message, problems=problems, parameters=action.parameters())


def _no_such(name: str, allowed: Collection[str]) -> str:
    if name in UNAVAILABLE:
        return f"{name} is not available in this release. Use other tools: {_names(allowed)}."
    close = difflib.get_close_matches(name.lower(), sorted(allowed), n=1)
    hint = f" Did you mean {close[0]}?" if close else ""
    shown = name if len(name) <= 80 else name[:80] + "..."
    return f"There is no tool named {shown!r}.{hint} The tools: {_names(allowed)}."


def _names(allowed: Collection[str]) -> str:
    return ", ".join(name for name in ACTIONS if name in allowed and ACTIONS[name].offered)


def _refused(
    name: str,
    message: str,
    *,
    problems: tuple[str, ...] = (),
    parameters: Mapping[str, JsonValue] | None = None,
) -> CallRefused:
    now, message = datetime.now(UTC), str(storable(visible(message)))
    return CallRefused(
        Refusal(
            outcome=Outcome.REFUSED,
            message=message,
            started_at=now,
            finished_at=now,
            tool=name,
            problems=problems or (message,),
            parameters=parameters,
        )
    )
