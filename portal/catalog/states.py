"""Room: portal.catalog. How a task moves through curation: one table, and the only function that writes it."""

from collections.abc import Mapping

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.utils.translation import gettext_lazy as _

from portal.catalog.models import Task, TaskState
from portal.core.audit import audit_write
from portal.core.errors import Conflict

S = TaskState
MOVES: Mapping[TaskState, frozenset[TaskState]] = {
    S.DRAFT: frozenset({S.CHECKING, S.RETIRED}),
    S.CHECKING: frozenset({S.DRAFT, S.CALIBRATING}),
    S.CALIBRATING: frozenset({S.DRAFT, S.IN_REVIEW}),
    S.IN_REVIEW: frozenset({S.DRAFT, S.PUBLISHED}),
    S.PUBLISHED: frozenset({S.RETIRED}),
    S.RETIRED: frozenset({S.PUBLISHED}),
}


class TaskStateRefused(Conflict):
    """The table has no such move, or somebody else moved the task first."""

    code = "task_state_refused"
    template = _("Task {task} is {state}; it can't become {wanted} from there.")


def task_state_move(*, task: Task, to: TaskState, by: AbstractBaseUser | None, reason: str = "") -> None:
    """Move `task` (row and object). Raises TaskStateRefused when the table forbids it or the row has moved."""
    before = TaskState(task.state)
    with transaction.atomic():
        moved = to in MOVES[before] and Task.objects.filter(pk=task.pk, state=before).update(state=to)
        if not moved:
            raise TaskStateRefused(task=task.slug, state=str(before.label), wanted=str(to.label))
        facts = {"before": before.value, "after": to.value, "reason": reason}
        audit_write(verb="moved", thing=task, by=by, team_id=task.owner_id, facts=facts)
    task.state = to
