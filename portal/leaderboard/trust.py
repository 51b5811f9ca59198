"""Room: portal.leaderboard. How far a row can be trusted: its tier, what takes it out of the ranking, its badges.

The functions read loaded rows and ask the database nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext_noop

from portal.catalog.models import Size
from portal.leaderboard.models import Board, BoardTask, HintRule, Tier
from portal.nodes.models import Lease, Level
from runs.models.evaluation import EvaluationState
from runs.models.run import Run

SANDBOX_LEVEL = 1
_HINTS = {
    HintRule.NONE: frozenset({"none"}),
    HintRule.PENALISED: frozenset({"none", "on_demand"}),
    HintRule.UPFRONT: frozenset({"upfront"}),
}


def hint_fits(board: Board, spec: Mapping[str, Any]) -> bool:
    """Whether a config's `hint` is one that the board's rule lets rank."""
    return str(spec.get("hint", "none")) in _HINTS[HintRule(board.hint_rule)]


def unranked_because(run: Run, board: Board, column: BoardTask | None) -> list[str]:
    """Reasons why this run takes its row out of the ranking; empty: none."""
    other_version = column is not None and column.version_id != run.task_version_id
    facts = {
        gettext_noop("assisted run"): run.assisted,
        gettext_noop("branched run"): run.parent_id is not None,
        gettext_noop("altered limits"): run.limits_altered,
        gettext_noop("small build of a task"): run.task_version.size == Size.SMALL,
        gettext_noop("another version than the board's"): other_version,
        gettext_noop("hint against the board's rule"): not hint_fits(board, run.config.spec),
    }
    return [name for name, holds in facts.items() if holds]


def tier_of(runs: Sequence[Run], leases: Mapping[int, Sequence[Lease]]) -> Tier:
    """`run_here` only if it holds for each run; everything else that our evaluator scored is `scored_here`."""
    return Tier.RUN_HERE if runs and all(run_here(run, leases.get(run.pk, ())) for run in runs) else Tier.SCORED_HERE


def run_here(run: Run, leases: Sequence[Lease]) -> bool:
    """The site's own node, best isolation there (egress is enforced at that level only), sandbox level 1 throughout."""
    site_nodes = bool(leases) and all(lease.node.owner_id is None for lease in leases)
    levels = {one.sandbox_level for one in run.evaluations.all() if one.state == EvaluationState.SCORED}
    return site_nodes and run.isolation == Level.NAMESPACE and levels <= {SANDBOX_LEVEL}


def badges_of(runs: Sequence[Run]) -> list[str]:
    """What a reader should know of the agent before comparing it; one config makes one row, so the first run tells."""
    spec: Mapping[str, Any] = runs[0].config.spec
    prompt = spec.get("prompt") or {}
    facts = {
        gettext_noop("custom prompt"): bool(prompt.get("system") or prompt.get("extra")),
        gettext_noop("guardrails"): spec.get("guardrails", "none") != "none",
        gettext_noop("hint"): spec.get("hint", "none") != "none",
        gettext_noop("scripted"): (spec.get("model") or {}).get("provider") == "scripted",
    }
    return [name for name, holds in facts.items() if holds]
