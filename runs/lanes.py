"""Room: runs. Which lane of the strip an action belongs to, under the name that the style sheet gives it. Pure."""

from collections.abc import Mapping

from gymnode.actions.base import Lane
from gymnode.actions.registry import ACTIONS

LANES: Mapping[str, str] = {
    name: "eval" if action.lane is Lane.EVALUATION else action.lane.value for name, action in ACTIONS.items()
}
