"""Room: runs. The one table of states: what a run can be, why it waits or ended, and which move is allowed. Pure."""

from collections.abc import Mapping

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class Status(TextChoices):
    """Where a run stands. The last three are final."""

    QUEUED = "queued", _("queued")
    PREPARING = "preparing", _("preparing")
    RUNNING = "running", _("running")
    WAITING = "waiting", _("waiting")
    FINISHING = "finishing", _("finishing")
    FINISHED = "finished", _("finished")
    FAILED = "failed", _("failed")
    CANCELLED = "cancelled", _("cancelled")


class Waiting(TextChoices):
    """What a waiting run waits for. It holds no worker meanwhile."""

    SLEEP = "sleep", _("sleep")
    PAUSED = "paused", _("paused")
    MODEL = "model", _("the model provider")
    NODE_LOST = "node_lost", _("node lost")
    EVALUATION = "evaluation", _("evaluation")
    STORE = "store", _("the file store")


class End(TextChoices):
    """Why a run ended."""

    FINISH = "finish", _("finish")
    DEADLINE = "deadline", _("deadline")
    STEP_LIMIT = "step_limit", _("step limit")
    COST_LIMIT = "cost_limit", _("cost limit")
    TOKEN_LIMIT = "token_limit", _("token limit")
    CANCELLED = "cancelled", _("cancelled")
    AGENT_ERROR = "agent_error", _("agent error")
    INFRASTRUCTURE = "infrastructure", _("infrastructure")


class Visibility(TextChoices):
    """Who may read a run."""

    PUBLIC = "public", _("public")
    PRIVATE = "private", _("private")


TERMINAL = frozenset({Status.FINISHED, Status.FAILED, Status.CANCELLED})
LIVE = frozenset(Status) - TERMINAL
STARTED = frozenset({Status.PREPARING, Status.RUNNING, Status.WAITING, Status.FINISHING})
# Ends that no final evaluation follows: the team called it off, or our machinery broke.
UNEVALUATED = frozenset({End.CANCELLED, End.INFRASTRUCTURE})

MOVES: Mapping[Status, frozenset[Status]] = {
    Status.QUEUED: frozenset({Status.PREPARING, Status.FAILED, Status.CANCELLED}),
    Status.PREPARING: frozenset({Status.RUNNING, Status.WAITING, Status.FINISHING, Status.FAILED, Status.CANCELLED}),
    Status.RUNNING: frozenset({Status.WAITING, Status.FINISHING, Status.FAILED, Status.CANCELLED}),
    Status.WAITING: frozenset(
        {Status.PREPARING, Status.RUNNING, Status.WAITING, Status.FINISHING, Status.FAILED, Status.CANCELLED}
    ),
    Status.FINISHING: frozenset({Status.FINISHED, Status.FAILED, Status.CANCELLED}),
    Status.FINISHED: frozenset(),
    Status.FAILED: frozenset(),
    Status.CANCELLED: frozenset(),
}


class MoveRefused(Exception):
    """A move that the table doesn't hold; the run stays as it was."""

    def __init__(self, run_id: int, old: str, new: str) -> None:
        super().__init__(f"run {run_id} is {old} and can't become {new}")
        self.old, self.new = old, new


def move_check(run_id: int, old: str, new: str) -> None:
    """Raises MoveRefused unless `old -> new` stands in the table."""
    if Status(new) not in MOVES[Status(old)]:
        raise MoveRefused(run_id, old, new)


def sources_of(new: Status) -> list[Status]:
    """Every status from which `new` may be reached: the WHERE of a conditional UPDATE."""
    return [old for old in Status if new in MOVES[old]]
