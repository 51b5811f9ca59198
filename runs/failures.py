"""Room: runs. The failure table: for every error who may try again, who pays the time, and what the reader is told.

Retries, the ledger, scoring and the badges read it. Stored are code and arguments; the sentence is made in the reader's
language. A code that a newer release wrote reads as `unknown`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from runs.ledger import Clock

MINUTE, HOUR, DAY = 60, 3600, 86400
MOST_SECONDS = 1e9  # what is longer is no duration, but a row that was spoiled


class Retry(StrEnum):
    """What the engine does by itself."""

    WAIT = "wait"  # the run waits and tries again, until the outage limit
    NEVER = "never"  # asking again gives the same


class Code(StrEnum):
    """Stable names of everything that can end a run or keep it waiting."""

    NODE_UNREACHABLE = "node_unreachable"
    NODE_KEY_CHANGED = "node_key_changed"
    NODE_KEY_UNKNOWN = "node_key_unknown"
    NODE_LOST = "node_lost"
    NODE_REFUSED = "node_refused"
    NODE_FULL = "node_full"
    RATE_LIMITED = "rate_limited"
    PROVIDER_DOWN = "provider_down"
    PROVIDER_GONE = "provider_gone"
    WRONG_KEY = "wrong_key"
    UNKNOWN_MODEL = "unknown_model"
    CONTENT_REFUSED = "content_refused"
    ADDRESS_REFUSED = "address_refused"
    ADDRESS_MOVED = "address_moved"
    ADDRESS_BROKEN = "address_broken"
    REQUEST_REFUSED = "request_refused"
    REQUEST_UNSENDABLE = "request_unsendable"
    SECRET_MISSING = "secret_missing"  # noqa: S105  a name of a failure
    FAULT_STREAK = "fault_streak"
    CONTEXT_TOO_SMALL = "context_too_small"
    TASK_BROKEN = "task_broken"
    STORE_DOWN = "store_down"
    ENGINE_ERROR = "engine_error"
    EVALUATION_FAILED = "evaluation_failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Failure:
    """One row. `payer` is the ledger kind of the time lost; `valid`: whether a result of the run still counts.
    `shorter`: sentences for when an argument isn't known, the longest first.
    """

    code: Code
    retry: Retry
    payer: Clock
    valid: bool
    sentence: str | Promise
    shorter: tuple[str | Promise, ...] = ()

    def text(self, arguments: Mapping[str, Any]) -> str:
        """The sentence in the active language, with `arguments` filled in: the first that names nothing unknown, else
        the last, where what is missing shows as a dash.
        """
        told = _told(arguments)
        for sentence in map(str, (self.sentence, *self.shorter)):
            filled = _Dashed(told)
            text = sentence % filled
            if not filled.missed:
                break
        return text


class _Dashed(dict[str, Any]):
    missed = False

    def __missing__(self, key: str) -> str:
        self.missed = True
        return "–"


def _told(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that are known, and their seconds as a duration. Older releases stored hours."""
    told = {name: value for name, value in arguments.items() if value not in ("", "–", None)}
    try:
        seconds = float(told.get("seconds") or float(told.get("hours", 0)) * 3600)
    except (TypeError, ValueError):
        return told
    return told | {"duration": duration_text(seconds)} if 0 < seconds < MOST_SECONDS else told


def duration_text(seconds: float) -> str:
    """A duration as a person says it: in the largest unit of which there are two at least."""
    number = max(1, round(seconds))
    if number < 2 * MINUTE:
        return ngettext("%(number)d second", "%(number)d seconds", number) % {"number": number}
    if number < 2 * HOUR:
        number = round(number / MINUTE)
        return ngettext("%(number)d minute", "%(number)d minutes", number) % {"number": number}
    if number < 2 * DAY:
        number = round(number / HOUR)
        return ngettext("%(number)d hour", "%(number)d hours", number) % {"number": number}
    number = round(number / DAY)
    return ngettext("%(number)d day", "%(number)d days", number) % {"number": number}


_INFRA, _MODEL, _ENGINE = Clock.INFRASTRUCTURE, Clock.MODEL, Clock.ENGINE
_ROWS = (
    Failure(
        Code.NODE_FULL,
        Retry.WAIT,
        _INFRA,
        True,
        _("The disk of a node of the run is full. The run waits until there is room; the time is not charged."),
    ),
    Failure(
        Code.NODE_UNREACHABLE,
        Retry.WAIT,
        _INFRA,
        True,
        _("Node %(node)s does not answer. The run waits and goes on where it stopped; the time is not charged."),
        (_("A node of the run does not answer. The run waits and goes on where it stopped; the time is not charged."),),
    ),
    Failure(
        Code.NODE_KEY_CHANGED,
        Retry.WAIT,
        _INFRA,
        True,
        _(
            "The host key of node %(node)s has changed: it was set up anew, or another machine answers in its place. "
            "Nothing is sent to it. An admin was told and has to look; the run waits and goes on where it stopped, and "
            "the time is not charged."
        ),
    ),
    Failure(
        Code.NODE_KEY_UNKNOWN,
        Retry.WAIT,
        _INFRA,
        True,
        _(
            "The host key of node %(node)s is not trusted yet, so nothing is sent to it. An admin was told; the run "
            "waits and goes on where it stopped, and the time is not charged."
        ),
    ),
    Failure(
        Code.NODE_LOST,
        Retry.NEVER,
        _INFRA,
        False,
        _("Node %(node)s did not come back within %(duration)s. Start another attempt; this one is not counted."),
        (
            _("Its node did not come back within %(duration)s. Start another attempt; this one is not counted."),
            _("The nodes of the run are gone and did not come back. Start another attempt; this one is not counted."),
        ),
    ),
    Failure(
        Code.NODE_REFUSED,
        Retry.NEVER,
        _INFRA,
        False,
        _("Node %(node)s refused the run (%(reason)s). Run the node's doctor, then try again."),
    ),
    Failure(
        Code.RATE_LIMITED,
        Retry.WAIT,
        _INFRA,
        True,
        _("The model provider asks us to slow down (%(tries)s tries). The run waits; the time is not charged."),
    ),
    Failure(
        Code.PROVIDER_DOWN,
        Retry.WAIT,
        _INFRA,
        True,
        _("The model provider does not answer (%(tries)s tries). The run waits; the time is not charged."),
    ),
    Failure(
        Code.PROVIDER_GONE,
        Retry.NEVER,
        _INFRA,
        False,
        _("The model provider gave no reply for %(duration)s. Start another attempt; this one is not counted."),
        (_("The model provider gave no reply. Start another attempt; this one is not counted."),),
    ),
    Failure(
        Code.WRONG_KEY,
        Retry.NEVER,
        _MODEL,
        False,
        _("The provider refused the key %(secret)s. Store a valid one in the vault, then start another attempt."),
    ),
    Failure(
        Code.UNKNOWN_MODEL,
        Retry.NEVER,
        _MODEL,
        False,
        _("The provider knows no model %(model)s. Check model.name and model.base_url of the agent config."),
    ),
    Failure(
        Code.CONTENT_REFUSED,
        Retry.NEVER,
        _MODEL,
        False,
        _("The provider's content filter refused the conversation. Nothing here can change that."),
    ),
    Failure(
        Code.ADDRESS_REFUSED,
        Retry.NEVER,
        _MODEL,
        False,
        _("The address of the model is not allowed here. Use a public address, or ask an operator to allow this one."),
    ),
    Failure(
        Code.ADDRESS_MOVED,
        Retry.NEVER,
        _MODEL,
        False,
        _(
            "The address of the model redirects to %(goal)s, and redirects are not followed. Put the final address "
            "into model.base_url of the agent config."
        ),
        (
            _(
                "The address of the model redirects elsewhere, and redirects are not followed. Put the final address "
                "into model.base_url of the agent config."
            ),
        ),
    ),
    Failure(
        Code.ADDRESS_BROKEN,
        Retry.NEVER,
        _MODEL,
        False,
        _("The address of the model is none that can be asked. Correct model.base_url of the agent config."),
    ),
    Failure(
        Code.REQUEST_UNSENDABLE,
        Retry.NEVER,
        _MODEL,
        False,
        _("The agent config's model settings make no request that can be sent. Correct them, above all extra_body."),
    ),
    Failure(
        Code.REQUEST_REFUSED,
        Retry.NEVER,
        _MODEL,
        False,
        _("The provider refused the request. Check the model's settings in the agent config: %(reason)s"),
    ),
    Failure(
        Code.SECRET_MISSING,
        Retry.NEVER,
        _INFRA,
        False,
        _("The team's vault has no key %(secret)s for %(host)s. Store it there, then start another attempt."),
    ),
    Failure(
        Code.FAULT_STREAK,
        Retry.NEVER,
        _ENGINE,
        True,
        _("Ten replies in a row held no call that could be carried out. The outputs were evaluated as they were."),
    ),
    Failure(
        Code.CONTEXT_TOO_SMALL,
        Retry.NEVER,
        _ENGINE,
        True,
        _("The conversation does not fit the model's window, also when compacted. The outputs were evaluated."),
    ),
    Failure(
        Code.TASK_BROKEN,
        Retry.NEVER,
        _INFRA,
        False,
        _("The files of the task can't be used (%(reason)s). Its curators should publish a mended version."),
    ),
    Failure(
        Code.STORE_DOWN,
        Retry.WAIT,
        _INFRA,
        True,
        _("The file store does not answer. The run waits and goes on where it stopped; the time is not charged."),
    ),
    Failure(
        Code.ENGINE_ERROR,
        Retry.NEVER,
        _INFRA,
        False,
        _("The engine failed (reference %(reference)s). Operators find the details in the log; start another attempt."),
    ),
    Failure(
        Code.EVALUATION_FAILED,
        Retry.NEVER,
        _INFRA,
        True,
        _("The evaluator failed %(tries)s times. It is not counted; the stored outputs will be scored again."),
    ),
    Failure(
        Code.UNKNOWN,
        Retry.NEVER,
        _INFRA,
        False,
        _("The run ended for a reason that this release does not know."),
    ),
)
FAILURES: Mapping[str, Failure] = {row.code.value: row for row in _ROWS}


def failure_of(code: str) -> Failure:
    """The row of a stored code."""
    return FAILURES.get(code, FAILURES[Code.UNKNOWN])


def failure_text(code: str, arguments: Mapping[str, Any]) -> str:
    """What the reader is told, in the active language. Never a host name, never a traceback."""
    return failure_of(code).text(arguments)


class RunFailed(Exception):
    """The run can't go on: final, `infrastructure` unless the table says otherwise."""

    def __init__(self, code: Code, **arguments: str | int | float) -> None:
        super().__init__(code.value)
        self.code = code
        self.arguments = arguments


class Outage(Exception):
    """Something outside doesn't answer: the run waits and tries again. `after_s`: as the other side asked."""

    def __init__(self, code: Code, after_s: float | None = None, **arguments: str | int | float) -> None:
        super().__init__(code.value)
        self.code = code
        self.after_s = after_s
        self.arguments = arguments
