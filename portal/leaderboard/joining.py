"""Room: portal.leaderboard. May this be run for that board, and on which frozen versions. Asked before it queues."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.utils.translation import gettext_lazy as _

from portal.catalog.models import TaskVersion
from portal.core.errors import FieldFault
from portal.leaderboard.models import Board
from portal.leaderboard.selectors import board_for_submission
from portal.leaderboard.trust import hint_fits
from portal.submissions.services import Wish
from runs.agent.spec import parse_spec


def board_wish(wish: Wish) -> Wish:
    """`wish` on the versions that its board has frozen; a wish without a board as it is.

    Raises FieldFault (an unknown or closed board, a task that isn't on it, fewer repeats than it declares, a hint
    against its rule), SpecErrors.
    """
    if not wish.board:
        return wish
    board = board_for_submission(wish.board)
    if board is None:
        raise FieldFault(field="board", message=str(_("no board named {name} takes runs")).format(name=wish.board))
    if wish.repeats < board.repeats:
        message = _("{board} takes at least {least} repeats, declared at the start; this asks for {given}")
        raise _fault("repeats", message, board=board.title, least=board.repeats, given=wish.repeats)
    spec: Mapping[str, Any] = parse_spec(wish.config).model_dump(mode="json")
    if not hint_fits(board, spec):
        message = _("the rule of {board} is “{rule}” and the config says hint: {given}; change the config or the board")
        raise _fault("config", message, board=board.title, rule=board.get_hint_rule_display(), given=spec["hint"])
    return replace(wish, tasks=_frozen(board, wish))


def _frozen(board: Board, wish: Wish) -> list[TaskVersion]:
    columns = {column.task_id: column.version for column in board.columns.select_related("version__task")}
    versions = []
    for asked in wish.tasks:
        version = columns.get(asked.task_id)
        if version is None:
            message = _("{task} can't be run for {board}: it holds no version of this task")
            raise _fault("tasks", message, task=asked.task.slug, board=board.title)
        versions.append(version)
    return versions


def _fault(field: str, message: Any, **facts: Any) -> FieldFault:
    return FieldFault(field=field, message=str(message).format(**facts))
