"""Room: portal.api. Query strings, read with forgiveness: what is no number or no text counts as not given."""

from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from rest_framework.request import Request

PAGE = 50
Row = TypeVar("Row", bound=Model)


def number_of(request: Request, name: str, default: int, most: int) -> int:
    """A whole number from 0 to `most`."""
    raw = request.query_params.get(name, "")
    return min(int(raw), most) if raw.isascii() and raw.isdecimal() and len(raw) < 19 else default


def text_of(request: Request, name: str, default: str = "") -> str:
    """A short text; NUL, which the database refuses, makes it not given."""
    raw = request.query_params.get(name, default)
    return default if "\0" in raw else raw[:200]


def page_before(request: Request, rows: QuerySet[Row]) -> tuple[list[Row], int | None]:
    """A page of `rows` (newest first by key) below `?before=`, and the `before` of the next one."""
    before = number_of(request, "before", 0, 2**62)
    newest = rows.order_by("-pk")
    page = list(newest.filter(pk__lt=before)[:PAGE] if before else newest[:PAGE])
    return page, page[-1].pk if len(page) == PAGE else None


def answer_page(name: str, rows: list[Any], following: int | None) -> dict[str, Any]:
    """A page under its own name."""
    return {name: rows, "next": following}
