"""Room: gymnode.actions. What every primitive action is: a frozen class of arguments that can be performed at a bench.

The docstring of an action is the description that a model reads; the fields with their types, ranges, defaults and
descriptions are its JSON schema. Offer, validation, docs page and viewer all come from the class.
"""

import inspect
import logging
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from gymnode.actions.arguments import Text, schema_of
from gymnode.errors import (
    Blame,
    EditImpossible,
    EpochTooLow,
    GymError,
    NodeError,
    NoSuchPath,
    NoSuchRun,
    NoSuchSession,
    OutcomeUnknown,
    PathChanged,
    RequestRefused,
    SessionBusy,
    SessionClosed,
    SessionExists,
    StorageFull,
)
from gymnode.observations import Observation, Outcome
from gymnode.workbench import Bench, Desk

log = logging.getLogger(__name__)
NodeName = Annotated[Text, Field(min_length=1, max_length=255)]


class Family(StrEnum):
    """The six families of the paper."""

    COMMAND = "command"
    FILE = "file"
    PARSE = "parse"
    SEARCH = "search"
    BROWSE = "browse"
    SPECIAL = "special"


class Lane(StrEnum):
    """The viewer's six lanes: what a run was busy with."""

    EVALUATION = "evaluation"
    COMMAND = "command"
    FILE = "file"
    READ = "read"
    THINK = "think"
    WAIT = "wait"


NEXT_MOVE: Mapping[type[GymError], str] = {
    NoSuchSession: "list_sessions shows which sessions there are; create_session makes one.",
    SessionExists: "Use that session as it is, or choose another name.",
    SessionBusy: (
        "Use another session_id, wait for it with sleep(until_session_idle=...), answer it with input_in_session, "
        "or end it with kill_session_processes."
    ),
    SessionClosed: "Make a new session with create_session.",
    NoSuchPath: "list_files and find_file show what is there; relative paths start at /workspace.",
    PathChanged: "Open it again to see what it holds now, then repeat the edit.",
    StorageFull: "Delete what is no longer needed, then repeat the action.",
}


class Action(BaseModel):
    """Base of all actions. `perform` answers with an observation whatever the model did wrong.

    `engine` marks the actions that the run's engine carries out itself; `repeatable` is False for `think`, which is
    refused twice in a row; `offered` is False for what no model is ever offered.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    name: ClassVar[str]
    family: ClassVar[Family]
    lane: ClassVar[Lane]
    observation: ClassVar[type[Observation]] = Observation
    engine: ClassVar[bool] = False
    repeatable: ClassVar[bool] = True
    offered: ClassVar[bool] = True

    @classmethod
    def description(cls) -> str:
        """What a model reads about the action."""
        return " ".join(inspect.cleandoc(cls.__doc__ or "").split())

    @classmethod
    def parameters(cls) -> dict[str, JsonValue]:
        """The JSON schema of the arguments."""
        return schema_of(cls.model_json_schema())

    def arguments(self) -> dict[str, JsonValue]:
        """The arguments as JSON, defaults filled in, empty ones left out."""
        return self.model_dump(mode="json", exclude_none=True)

    def perform(self, bench: Bench) -> Observation:
        """Carry the action out. Raises NodeError but OutcomeUnknown (send again, or wait for the node), EpochTooLow and
        NoSuchRun (not ours any more); everything else becomes an observation."""
        node = self.place(bench)
        desk = Desk(bench, node or bench.default_node, bench.clock())
        if node is not None and node not in bench.nodes:
            names = ", ".join(bench.nodes)
            return desk.answer(
                self.observation,
                f"This run has no node {node!r}. Its nodes: {names}. Leave node out for {bench.default_node}.",
                outcome=Outcome.REFUSED,
            )
        try:
            return self.act(desk)
        except (EpochTooLow, NoSuchRun, NotImplementedError):
            raise  # the engine's to settle: another holds the run, or the action was never a node's
        except (RequestRefused, EditImpossible, OutcomeUnknown) as error:
            return self.failure(desk, error)
        except NodeError:
            raise  # the run waits for the node
        except Exception:  # a bug of ours that some output brings about: else a model could choose to end its run by it
            log.exception("%s could not be carried out or told", self.name)
            message = f"{self.name} failed by a fault of the site's own, which is on record. Go on another way."
            return desk.answer(self.observation, message, outcome=Outcome.BROKEN)

    def place(self, bench: Bench) -> str | None:
        """The node the action asks for; None for the run's first."""
        return None

    def act(self, desk: Desk) -> Observation:
        """The action itself. Raises GymError."""
        raise NotImplementedError(f"{self.name} is carried out by the run's engine")

    def failure(self, desk: Desk, error: GymError) -> Observation:
        """What the model is told about an error that isn't the engine's."""
        if isinstance(error, OutcomeUnknown):
            message = (
                f"Outcome unknown: {_sentence(str(error))} Whether {self.name} was carried out can't be told. "
                "Look at sessions and files before you repeat it."
            )
            return desk.answer(self.observation, message, outcome=Outcome.BROKEN)
        outcome = Outcome.BROKEN if error.blame is Blame.NODE else Outcome.FAILED
        move = next((text for kind, text in NEXT_MOVE.items() if isinstance(error, kind)), "")
        return desk.answer(self.observation, f"{_sentence(str(error))} {move}".strip(), outcome=outcome)


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."


class NodeAction(Action):
    """Base of actions that happen on one node."""

    node: NodeName | None = Field(default=None, description="Node to work on. Default: the run's first node.")

    @model_validator(mode="before")
    @classmethod
    def _computer_ip(cls, data: Any) -> Any:
        """`computer_ip` is what older prompts call the node."""
        if not isinstance(data, dict) or "computer_ip" not in data:
            return data
        named = {key: value for key, value in data.items() if key != "computer_ip"}
        if named.get("node") not in (None, data["computer_ip"]):
            raise ValueError('"node" and "computer_ip" mean the same and differ; send only "node"')
        return {**named, "node": data["computer_ip"]}

    def place(self, bench: Bench) -> str | None:
        return self.node
