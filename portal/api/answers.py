"""Room: portal.api. Shapes of answers, for the OpenAPI description: what shapes.py and its neighbours really send.

A test holds each of them against a real answer, so that neither can drift.
"""

from typing import Any

from drf_spectacular.utils import OpenApiResponse
from rest_framework import serializers

Shape = serializers.Serializer[Any]


def _text(**options: Any) -> serializers.CharField:
    return serializers.CharField(**options)


def _maybe(**options: Any) -> serializers.CharField:
    return serializers.CharField(allow_null=True, **options)


def _names() -> serializers.ListField:
    return serializers.ListField(child=serializers.CharField())


class FaultLine(Shape):
    """One fault: of a config with its line and column, else with the field it stands in."""

    path = serializers.CharField()
    message = serializers.CharField()
    line = serializers.IntegerField(required=False)
    column = serializers.IntegerField(required=False)


class Refusal(Shape):
    """Why a request was refused: `code` for programs, `message` for people."""

    code = serializers.CharField()
    message = serializers.CharField()
    errors = FaultLine(many=True, required=False)  # type: ignore[assignment]  # the metaclass takes fields off the class


class ErrorAnswer(Shape):
    """Every refusal has this shape."""

    error = Refusal()


def answers(shape: Any, *refusals: int, status: int = 200) -> dict[int, Any]:
    """Responses of one operation: `shape` when it goes well, and the refusals it knows; 429 everywhere."""
    known = {code: OpenApiResponse(ErrorAnswer) for code in sorted({*refusals, 429})}
    return {status: shape, **known}


class BoardLine(Shape):
    """A board in a list."""

    slug = serializers.SlugField()
    title = serializers.CharField()
    hint_rule = serializers.CharField()
    open_for_runs = serializers.BooleanField()
    url = serializers.CharField()


class BoardsAnswer(Shape):
    """All boards."""

    boards = BoardLine(many=True)


class BoardColumn(Shape):
    """One task of a board."""

    slug = serializers.SlugField()
    title = serializers.CharField()
    number = serializers.IntegerField(allow_null=True)
    domain = serializers.SlugField()


class BoardCell(Shape):
    """One task of a row: means over `n` repeats."""

    final = _maybe()
    final_exact = _maybe()
    best = _maybe()
    best_exact = _maybe()
    n = serializers.IntegerField()
    half_width = _maybe()
    usd = _maybe()
    hours = serializers.FloatField(allow_null=True)
    runs = serializers.ListField(child=serializers.IntegerField())


class BoardRowAnswer(Shape):
    """One row. Points are text with two decimals; `..._exact` holds all that are stored. `rank` is null for unranked
    rows, `rank_low` to `rank_high` the places that can't be told apart.
    """

    id = serializers.IntegerField()
    rank = serializers.IntegerField(allow_null=True)
    rank_low = serializers.IntegerField(allow_null=True)
    rank_high = serializers.IntegerField(allow_null=True)
    ranked = serializers.BooleanField()
    team = serializers.CharField()
    agent = serializers.CharField()
    model = serializers.CharField()
    config = serializers.IntegerField(allow_null=True)
    engine_version = serializers.CharField()
    tier = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]  # the metaclass takes fields off the class
    note = serializers.CharField()
    badges = _names()
    flags = _names()
    stated = serializers.BooleanField()
    mean_final = _maybe()
    mean_final_exact = _maybe()
    mean_best = _maybe()
    mean_best_exact = _maybe()
    mean_done_final = _maybe()
    half_width = _maybe()
    tasks_done = serializers.IntegerField()
    tasks_total = serializers.IntegerField()
    n_runs = serializers.IntegerField()
    usd = _maybe()
    hours = serializers.FloatField(allow_null=True)
    tokens = serializers.IntegerField(allow_null=True)
    scored_at = serializers.DateTimeField(allow_null=True)
    domains = serializers.DictField(child=serializers.CharField(allow_null=True))
    cells = serializers.DictField(child=BoardCell())
    evidence_url = serializers.CharField()


class BoardAnswer(Shape):
    """A board with its rows in the order asked for; `next` is the `offset` of the following page, or null."""

    slug = serializers.SlugField()
    title = serializers.CharField()
    about = serializers.CharField()
    season = serializers.IntegerField()
    hint_rule = serializers.CharField()
    repeats = serializers.IntegerField()
    answers_public = serializers.BooleanField()
    open_for_runs = serializers.BooleanField()
    tasks = BoardColumn(many=True)
    count = serializers.IntegerField()
    next = serializers.IntegerField(allow_null=True)
    rows = BoardRowAnswer(many=True)


class TaskLineAnswer(Shape):
    """A task in a list."""

    slug = serializers.SlugField()
    title = serializers.CharField()
    domain = serializers.SlugField()
    suite = serializers.CharField()
    number = serializers.IntegerField(allow_null=True)
    contaminated = serializers.BooleanField()
    url = serializers.CharField()


class TasksAnswer(Shape):
    """Every task that is shown."""

    tasks = TaskLineAnswer(many=True)


class TaskVersionAnswer(Shape):
    """One frozen version of a task."""

    number = serializers.IntegerField()
    digest = serializers.CharField()
    size = serializers.CharField()
    published_at = serializers.DateTimeField()


class TaskAnswer(TaskLineAnswer):
    """A task: text, facts as its page shows them, scoring rule, versions. Never its hint."""

    description = _maybe()
    facts = serializers.DictField()
    score = serializers.DictField(allow_null=True)
    versions = TaskVersionAnswer(many=True)
