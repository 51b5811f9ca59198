"""Room: portal.pages. What the pages of agents show: versions, their differences, runs and rows."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from portal.leaderboard.models import LeaderboardEntry
from portal.leaderboard.selectors import entries_of_config
from portal.pages.home import RunLine, run_lines
from runs.models.config import AgentConfig
from runs.selectors import Viewer, configs_list_for, runs_list_for

MOST_RUNS = 30


@dataclass(frozen=True)
class AgentLine:
    """An agent of a team with its newest version."""

    newest: AgentConfig
    versions: int
    model: str
    provider: str


@dataclass(frozen=True)
class DiffLine:
    """A line of a difference: `a`dded, `d`eleted, `h`ead or same."""

    kind: str
    text: str


@dataclass(frozen=True)
class AgentPage:
    """One version of an agent."""

    config: AgentConfig
    versions: Sequence[AgentConfig]
    lines: Sequence[str]
    before: AgentConfig | None
    diff: tuple[DiffLine, ...]
    runs: tuple[RunLine, ...]
    entries: Sequence[LeaderboardEntry]


def agent_lines(user: Viewer) -> tuple[AgentLine, ...]:
    """Agents the reader may see, newest version of each."""
    groups: dict[tuple[int, str], list[AgentConfig]] = {}
    for config in configs_list_for(user):
        groups.setdefault((config.team_id, config.name), []).append(config)
    return tuple(_agent(versions) for versions in groups.values())


def _agent(versions: Sequence[AgentConfig]) -> AgentLine:
    model = versions[0].spec.get("model") or {}
    return AgentLine(versions[0], len(versions), str(model.get("name", "")), str(model.get("provider", "")))


def agent_page(user: Viewer, config: AgentConfig) -> AgentPage:
    """The page of one version, with what changed since the one before."""
    same = configs_list_for(user).filter(team=config.team_id, name=config.name)
    versions = list(same.order_by("-version"))
    before = next((v for v in versions if v.version < config.version), None)
    runs = runs_list_for(user, config=config.pk).prefetch_related("evaluations")[:MOST_RUNS]
    return AgentPage(
        config=config,
        versions=versions,
        lines=config.source.splitlines(),
        before=before,
        diff=_diff(before.source, config.source) if before else (),
        runs=run_lines(list(runs)),
        entries=list(entries_of_config(config.pk)),
    )


def _diff(old: str, new: str) -> tuple[DiffLine, ...]:
    kinds = {"+": "a", "-": "d", "@": "h"}
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=2)
    return tuple(DiffLine(kinds.get(line[:1], ""), line) for line in list(lines)[2:])
