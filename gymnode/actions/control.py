"""Room: gymnode.actions. The special actions. Only `think` and `node_status` are performed here.

The run's engine carries out the others, since they touch its clock, its evaluations and its end.
"""

from typing import ClassVar

from pydantic import Field, JsonValue

from gymnode.actions.arguments import SessionName, Text, Whole
from gymnode.actions.base import Action, Family, Lane, NodeAction, NodeName
from gymnode.actions.telling import counted
from gymnode.observations import (
    EvaluationObservation,
    FinishObservation,
    HintObservation,
    NodeStatusObservation,
    NullObservation,
    Observation,
    SleepObservation,
    ThoughtObservation,
)
from gymnode.rendering import shorten
from gymnode.sessions import Answer, Gpu, GpuHolder
from gymnode.workbench import Desk

SLEEP_MAX_S = 14_400


class Think(Action):
    """Write down a thought: a plan, a conclusion, what to try next. Nothing happens on the node. Not twice in a row."""

    name: ClassVar = "think"
    family: ClassVar = Family.SPECIAL
    lane: ClassVar = Lane.THINK
    observation: ClassVar[type[Observation]] = ThoughtObservation
    repeatable: ClassVar = False

    thought: Text = Field(description="The thought.", min_length=1)

    def act(self, desk: Desk) -> Observation:
        return desk.answer(ThoughtObservation, "Noted. Now act on it: the next action can't be think.")


class Null(Action):
    """Stands for a reply without a usable call; made by the engine, offered to no model."""

    name: ClassVar = "null"
    family: ClassVar = Family.SPECIAL
    lane: ClassVar = Lane.THINK
    observation: ClassVar[type[Observation]] = NullObservation
    engine: ClassVar = True
    offered: ClassVar = False


class Eval(Action):
    """Have the outputs of the task scored as they are now. Returns the score, the task's metrics, a message and how
    many evaluations are left. Evaluations are few: use one when the outputs are better than at the last."""

    name: ClassVar = "eval"
    family: ClassVar = Family.SPECIAL
    lane: ClassVar = Lane.EVALUATION
    observation: ClassVar[type[Observation]] = EvaluationObservation
    engine: ClassVar = True


class ViewHint(Action):
    """Show the task's hint. It costs points, as the answer says; refused where the run gives no hints on demand."""

    name: ClassVar = "view_hint"
    family: ClassVar = Family.SPECIAL
    lane: ClassVar = Lane.READ
    observation: ClassVar[type[Observation]] = HintObservation
    engine: ClassVar = True


class Finish(Action):
    """End the run. The outputs are scored a last time as they are. Everything that still runs is ended: wait for jobs
    whose results you need first."""

    name: ClassVar = "finish"
    family: ClassVar = Family.SPECIAL
    lane: ClassVar = Lane.EVALUATION
    observation: ClassVar[type[Observation]] = FinishObservation
    engine: ClassVar = True

    summary: Text | None = Field(default=None, description="What was done and what came out, in a few sentences.")


class Sleep(NodeAction):
    """Wait without using steps or tokens. Wakes when the time is over, when the named session has finished its job, or
    when the run's deadline is near; the answer says which."""

    name: ClassVar = "sleep"
    family: ClassVar = Family.SPECIAL
    lane: ClassVar = Lane.WAIT
    observation: ClassVar[type[Observation]] = SleepObservation
    engine: ClassVar = True

    seconds: Whole = Field(ge=1, le=SLEEP_MAX_S, description="How long to sleep at most, in seconds.")
    until_session_idle: SessionName | None = Field(
        default=None, description="Wake earlier, as soon as this session has no foreground job."
    )
    node: NodeName | None = Field(default=None, description="Node of that session. Default: the run's first node.")


class NodeStatus(NodeAction):
    """Show how busy a node is: CPU, memory, disk, load, and for each GPU its use and which session holds it. Look here
    before you start a GPU job."""

    name: ClassVar = "node_status"
    family: ClassVar = Family.SPECIAL
    lane: ClassVar = Lane.READ
    observation: ClassVar[type[Observation]] = NodeStatusObservation

    def act(self, desk: Desk) -> Observation:
        status = desk.ask("node.status", Machine, {})
        gpus = tuple(_for_run(gpu, desk.bench.run) for gpu in status.gpus)
        facts = {"cpu": status.cpu, "memory": status.memory, "disk": status.disk, "load": status.load}
        rows = [f"{name}: {_words(value)}" for name, value in facts.items() if value is not None]
        rows += [_gpu_row(gpu) for gpu in gpus]
        message = f"Node {desk.node}: {counted(len(gpus), 'GPU')}." if gpus else f"Node {desk.node}: no GPU."
        text = shorten("\n".join(rows), desk.bench.max_chars, "run_command can look closer.")
        machine = {name: value for name, value in facts.items() if value is not None}
        return desk.answer(NodeStatusObservation, message, machine=machine, gpus=gpus, output=text)


class Machine(Answer):
    """Answer of node.status. The machine's figures are shown as gymd gives them."""

    cpu: JsonValue = None
    memory: JsonValue = None
    disk: JsonValue = None
    load: JsonValue = None
    gpus: tuple[Gpu, ...] = ()


def _for_run(gpu: Gpu, run: str) -> Gpu:
    """The GPU as this run may see it: other runs' sessions and processes are none of its business."""
    holders = tuple(holder if holder.run == run else GpuHolder() for holder in gpu.holders)
    return gpu.model_copy(update={"holders": holders})


def _gpu_row(gpu: Gpu) -> str:
    used = "?" if gpu.utilisation is None else f"{gpu.utilisation:.0f} %"
    memory = "?" if gpu.memory_used_mb is None else f"{gpu.memory_used_mb:,.0f} of {gpu.memory_total_mb or 0:,.0f} MB"
    held = [f"session {holder.session}" if holder.session else "another process" for holder in gpu.holders]
    return f"GPU {gpu.index}: {used} busy, memory {memory}, held by {', '.join(held) if held else 'nobody'}"


def _words(value: JsonValue) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name.replace('_', ' ')} {_words(part)}" for name, part in value.items())
    if isinstance(value, list):
        return " ".join(_words(part) for part in value)
    return f"{value:,.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else f"{value}"
