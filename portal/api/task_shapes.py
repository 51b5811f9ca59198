"""Room: portal.api. Shapes of tasks. Hints are never part of them."""

from dataclasses import asdict
from typing import Any

from portal.catalog.models import Task
from portal.catalog.selectors import task_sheet, version_current, versions_of


def task_line(task: Task) -> dict[str, Any]:
    """A task in a list."""
    return {
        "slug": task.slug,
        "title": task.title,
        "domain": task.domain.slug,
        "suite": task.suite,
        "number": task.number,
        "contaminated": task.contaminated,
        "url": task.get_absolute_url(),
    }


def task_shape(task: Task) -> dict[str, Any]:
    """A task's page."""
    version = version_current(task)
    sheet = task_sheet(task, version)
    facts = {} if sheet is None else {name: value for name, value in asdict_plain(sheet).items() if name != "score"}
    return {
        **task_line(task),
        "description": version.description if version else None,
        "facts": facts,
        "score": sheet.score.model_dump(mode="json") if sheet and sheet.score else None,
        "versions": [
            {"number": row.number, "digest": row.digest, "size": row.size, "published_at": row.published_at}
            for row in versions_of(task)
        ],
    }


def asdict_plain(sheet: Any) -> dict[str, Any]:
    """Fields of a sheet, nested dataclasses as plain objects; the score keeps its own form."""
    plain = {name: getattr(sheet, name) for name in sheet.__dataclass_fields__ if name != "score"}
    return {name: _plain(value) for name, value in plain.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return asdict(value) if hasattr(value, "__dataclass_fields__") else value
