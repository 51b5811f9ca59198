"""Room: portal.api. The evidence of a row as JSON: the same facts as its page."""

from dataclasses import asdict
from decimal import Decimal
from typing import Any

from portal.api.shapes import exact, row_shape
from portal.leaderboard.evidence import Evidence

_PLAIN = ("config_digest", "config_version", "model_asked", "model_host", "shared_os_user")
_LISTS = ("frozen", "repeats", "runs", "interventions")


def evidence_shape(evidence: Evidence) -> dict[str, Any]:
    """Everything but the other rows of the board. Points and money are text with all decimals that are stored."""
    return {
        "board": evidence.page.board.slug,
        "row": row_shape(evidence.row),
        **{name: getattr(evidence, name) for name in _PLAIN},
        "models_returned": list(evidence.models_returned),
        **{name: [_plain(asdict(each)) for each in getattr(evidence, name)] for name in _LISTS},
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return exact(value)
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
