"""Room: portal.api. From the words of a request to the typed wish of portal.submissions; what is said of a config."""

from collections.abc import Mapping
from typing import Any

from django.http import Http404
from django.utils.translation import gettext_lazy as _

from portal.catalog.models import TaskVersion
from portal.catalog.selectors import task_get, version_current
from portal.core.errors import FieldFault
from portal.leaderboard.joining import board_wish
from portal.submissions.services import Wish
from runs.agent.spec import SpecErrors, parse_spec, spec_digest
from runs.models.config import AgentConfig


def wish_of(wanted: Mapping[str, Any]) -> Wish:
    """`wanted` as validated by SubmissionWish. Raises FieldFault for tasks and boards that don't take runs, and
    SpecErrors for a board's wish whose config has faults.
    """
    wish = Wish(
        config=wanted["config"],
        tasks=[_version(slug) for slug in wanted["tasks"]],
        repeats=wanted["repeats"],
        visibility=wanted["visibility"],
        board=wanted["board"] or "",
    )
    return board_wish(wish)


def _version(slug: str) -> TaskVersion:
    try:
        version = version_current(task_get(slug))
    except Http404:
        raise FieldFault(field="tasks", message=str(_("there is no task {slug}")).format(slug=slug)) from None
    if version is None:
        message = str(_("{slug} can't be run here: nobody has brought its data yet")).format(slug=slug)
        raise FieldFault(field="tasks", message=message)
    return version


def config_checked(text: str) -> dict[str, Any]:
    """What `POST /configs/check/` answers."""
    try:
        spec = parse_spec(text)
    except SpecErrors as faults:
        return {"valid": False, "errors": spec_faults(faults), "summary": None}
    model = spec.model
    summary = {"name": spec.name, "digest": spec_digest(spec), "model": model.name, "provider": str(model.provider)}
    return {"valid": True, "errors": [], "summary": {**summary, "hint": str(spec.hint)}}


def spec_faults(faults: SpecErrors) -> list[dict[str, Any]]:
    """Faults of a config as the API sends them."""
    return [{"line": one.line, "column": one.column, "path": one.path, "message": one.message} for one in faults.errors]


def config_line(config: AgentConfig) -> dict[str, Any]:
    """A config in a list; its team must be loaded."""
    plain = ("id", "name", "version", "digest")
    shown = {"team": config.team.shown_name, "url": config.get_absolute_url()}
    return {**{name: getattr(config, name) for name in plain}, **shown}
