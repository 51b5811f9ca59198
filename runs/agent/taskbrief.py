"""Room: runs.agent. What the engine tells the agent about its task: values only."""

from collections.abc import Iterator
from decimal import Decimal

from pydantic import BaseModel, ConfigDict

from runs.agent.events import NodeBrief


class TaskBrief(BaseModel):
    """A task version as one run gets it. `description` is the task's Markdown; limits are the lower of task's and
    config's; `hint` is given only for `hint: upfront`.
    """

    model_config = ConfigDict(frozen=True)

    task_id: str
    task_version: int
    description: str
    engine_version: str
    nodes: tuple[NodeBrief, ...] = ()
    outputs: tuple[str, ...] = ()
    hint: str | None = None
    hours: float | None = None
    steps: int | None = None
    usd: Decimal | None = None
    tokens: int | None = None
    disk_gb: float | None = None
    evaluations_by_agent: int = 0
    final_evaluation: bool = True

    def limit_lines(self) -> Iterator[str]:
        """The limits that never change during the run, one sentence each."""
        if self.hours is not None:
            yield f"{self.hours:g} hours of working time"
        if self.steps is not None:
            yield f"{self.steps} steps (one reply of yours is one step)"
        if self.usd is not None:
            yield f"${self.usd} for model calls"
        if self.tokens is not None:
            yield f"{self.tokens} tokens"
        if self.disk_gb is not None:
            yield f"{self.disk_gb:g} GB on the disk of each machine; what goes on growing above it is ended"
        final = ", and a last one when the run ends" if self.final_evaluation else ""
        yield f"{self.evaluations_by_agent} evaluations at your request{final}"
