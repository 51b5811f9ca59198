"""Room: gymnode. Everything that can go wrong between an action and a node, and who is to blame for it.

::

    GymError
    ├── CallRefused            model     the call was malformed, unknown or not allowed; carries its observation
    ├── EditImpossible         model     the edit doesn't fit the file: missing lines, a binary file, an encoding
    ├── NodeError              node      the machine or the way to it; the run waits or fails as infrastructure
    │   ├── NodeUnreachable    node      no link, or the link was lost before an answer came; sending again is safe
    │   ├── HostKeyUnknown     operator  the node was never trusted; carries the key it presented
    │   ├── HostKeyChanged     operator  the node presents another key than the pinned one
    │   ├── ProtocolMismatch   operator  gymd speaks no version that this controller speaks, or speaks nonsense
    │   └── OutcomeUnknown     node      the node lost its memory: whether the action ran can't be told
    └── RequestRefused         model     gymd understood and said no (status, code, message)
        ├── EpochTooLow        engine    a newer holder drives this run; this one must stop at once
        ├── NoSuchRun          engine    the run was never opened on this node, or is closed
        ├── BadRequest         engine    a frame or an argument that gymd can't read: our own mistake
        ├── RequestBroken      node      gymd itself failed (5xx); its message says how
        ├── NotPermitted       model     the node's policy or its file system forbids it
        ├── NoSuchSession      model
        ├── SessionExists      model
        ├── SessionBusy        model     a foreground job runs there
        ├── SessionClosed      model     the session has ended or was lost
        ├── NoSuchPath         model     missing, or outside what the run can see: both look alike
        ├── WrongPathKind      model     a folder where a file is needed, or the other way round, or a device
        ├── PathChanged        model     the file is not what it was when it was read
        ├── PathTooLarge       model
        └── StorageFull        model     the disk or the quota of the run is used up

The classes are facts; `blame` says whose. Raise with the thing, the limit and the next move in the message.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from gymnode.observations import Observation


class Blame(StrEnum):
    """Who has to change something before the same thing can succeed."""

    MODEL = "model"
    NODE = "node"
    OPERATOR = "operator"
    ENGINE = "engine"


class GymError(Exception):
    """Root of the tree. `blame` is a fact about the class, not about the moment."""

    blame: ClassVar[Blame] = Blame.ENGINE


class CallRefused(GymError):
    """A tool call that was not carried out; `observation` is the answer the model gets for it."""

    blame = Blame.MODEL

    def __init__(self, observation: "Observation") -> None:
        super().__init__(observation.message)
        self.observation = observation


class EditImpossible(GymError):
    """An edit that can't be made as asked; the message says what would fit."""

    blame = Blame.MODEL


class NodeError(GymError):
    """Something between us and the node named `node`."""

    blame = Blame.NODE

    def __init__(self, node: str, message: str) -> None:
        super().__init__(message)
        self.node = node


class NodeUnreachable(NodeError):
    """No connection, or it broke with answers outstanding. An action may be sent again under the same id."""


class HostKeyUnknown(NodeError):
    """No key is pinned for this node. `presented` is its key as `type base64`, for the trust button."""

    blame = Blame.OPERATOR

    def __init__(self, node: str, message: str, presented: str) -> None:
        super().__init__(node, message)
        self.presented = presented


class HostKeyChanged(HostKeyUnknown):
    """The node presents another key than the pinned one (`expected`). Never connect on."""

    def __init__(self, node: str, message: str, presented: str, expected: str) -> None:
        super().__init__(node, message, presented)
        self.expected = expected


class ProtocolMismatch(NodeError):
    """No common protocol version, or an answer that isn't a frame."""

    blame = Blame.OPERATOR


class OutcomeUnknown(NodeError):
    """The journal that would tell whether the action ran is gone (reboot of the node, lost disk)."""


class RequestRefused(GymError):
    """gymd's answer with a status of 400 or more. `code` is stable, `message` may be shown to the model."""

    blame = Blame.MODEL
    code: str = "refused"

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


class EpochTooLow(RequestRefused):
    """Another holder has a newer epoch of this run: stop, write nothing."""

    blame = Blame.ENGINE
    code = "epoch_too_low"


class NoSuchRun(RequestRefused):
    """The run isn't open on this node: open it first."""

    blame = Blame.ENGINE
    code = "no_such_run"


class BadRequest(RequestRefused):
    """gymd couldn't read the request. Not the model's fault: actions check their arguments before they ask."""

    blame = Blame.ENGINE
    code = "bad_request"


class RequestBroken(RequestRefused):
    """gymd failed while it carried the request out."""

    blame = Blame.NODE
    code = "broken"


class NotPermitted(RequestRefused):
    """Permission denied, by a file's mode or by the policy of the run."""

    code = "not_permitted"


class NoSuchSession(RequestRefused):
    """No session of that name was ever made in this run."""

    code = "no_such_session"


class SessionExists(RequestRefused):
    """A live session has that name already."""

    code = "session_exists"


class SessionBusy(RequestRefused):
    """A foreground job runs in the session."""

    code = "session_busy"


class SessionClosed(RequestRefused):
    """The session was closed, its shell ended, or it was lost with the node."""

    code = "session_closed"


class NoSuchPath(RequestRefused):
    """Nothing there that the run can see."""

    code = "no_such_path"


class WrongPathKind(RequestRefused):
    """A folder, device or socket where a regular file is needed, or a file where a folder is."""

    code = "wrong_path_kind"


class PathChanged(RequestRefused):
    """The file's content is no longer the one the caller has read (`expect_sha256`)."""

    code = "path_changed"


class PathTooLarge(RequestRefused):
    """More bytes than the operation takes."""

    code = "path_too_large"


class StorageFull(RequestRefused):
    """No space, or the run's disk limit is reached."""

    code = "storage_full"


REFUSALS: Mapping[str, type[RequestRefused]] = {
    kind.code: kind
    for kind in (
        EpochTooLow,
        NoSuchRun,
        BadRequest,
        RequestBroken,
        NotPermitted,
        NoSuchSession,
        SessionExists,
        SessionBusy,
        SessionClosed,
        NoSuchPath,
        WrongPathKind,
        PathChanged,
        PathTooLarge,
        StorageFull,
    )
}


def refusal_from(node: str, status: int, code: str, message: str) -> GymError:
    """The exception for gymd's error answer; codes this controller doesn't know become the general class."""
    if code == "outcome_unknown":
        return OutcomeUnknown(node, message)
    kind = REFUSALS.get(code)
    if kind is None:
        kind = RequestBroken if status >= 500 else RequestRefused
    return kind(status, code, message)
