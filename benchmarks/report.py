"""Benchmarks: what every one of them returns. Figures next to the targets they are held to."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Bound(StrEnum):
    """Which side of a target is good."""

    AT_MOST = "at_most"
    AT_LEAST = "at_least"


@dataclass(frozen=True)
class Target:
    """The value a figure has to reach."""

    bound: Bound
    value: float

    def met_by(self, figure: float) -> bool:
        """True when the figure is on the good side."""
        return figure <= self.value if self.bound is Bound.AT_MOST else figure >= self.value


@dataclass(frozen=True)
class Report:
    """Figures by name (the unit is the name's last part: `_ms`, `_mb`, `_ratio`) and targets for some of them."""

    name: str
    figures: Mapping[str, float]
    targets: Mapping[str, Target]

    @property
    def missed(self) -> tuple[str, ...]:
        """Names of figures that miss their target."""
        return tuple(name for name, target in self.targets.items() if not target.met_by(self.figures[name]))

    def line(self) -> str:
        """One JSON object on one line."""
        targets = {name: {"bound": target.bound, "value": target.value} for name, target in self.targets.items()}
        figures = {name: round(value, 4) for name, value in self.figures.items()}
        missed = list(self.missed)
        return json.dumps(
            {"benchmark": self.name, "figures": figures, "targets": targets, "missed": missed, "ok": not missed}
        )


def percentile(values: list[float], share: float) -> float:
    """The value below which `share` (0..1) of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
