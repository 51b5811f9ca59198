"""Room: portal.api. The shapes that cross the API, in and out; OpenAPI is generated from them.

Points are text with two decimals as pages show them; `..._exact` holds the full value. Times are UTC, money is USD.
"""

from decimal import Decimal
from typing import Any

from django.urls import reverse
from rest_framework import serializers

from portal.accounts.permits import Person
from portal.accounts.vault import MAX_BYTES, MOST_HOST
from portal.leaderboard.selectors import BoardPage, BoardRow, Cell
from portal.submissions.models import Submission
from portal.submissions.selectors import attempts_for
from runs.models.evaluation import Evaluation
from runs.models.log import Event
from runs.models.run import Run
from runs.presenters import reason_text
from runs.selectors import working_s
from runs.states import Visibility
from runs.wire import event_shape

_ROW = (
    *("id", "rank", "rank_low", "rank_high", "ranked", "team", "agent", "model", "config", "engine_version"),
    *("tier", "source", "note", "badges", "flags", "stated", "tasks_done", "tasks_total", "n_runs", "hours", "tokens"),
)


def points(value: Decimal | None) -> str | None:
    """Two decimals, rounded half up as on the pages; None stays None."""
    return None if value is None else str(value.quantize(Decimal("0.01"), rounding="ROUND_HALF_UP"))


def exact(value: Decimal | None) -> str | None:
    """All decimals that are stored."""
    return None if value is None else f"{value.normalize():f}"


class ConfigText(serializers.Serializer[Any]):
    """An agent config as text."""

    config = serializers.CharField(max_length=100_000, trim_whitespace=False)


class ConfigWish(ConfigText):
    """A config to store, for a team (one's own when left out)."""

    team = serializers.SlugField(required=False, allow_null=True, default=None, max_length=180)


class SubmissionWish(serializers.Serializer[Any]):
    """What to run. `tasks` are addresses of tasks; a `board` makes the runs public from their first event."""

    config = serializers.CharField(max_length=100_000, trim_whitespace=False)
    tasks = serializers.ListField(child=serializers.SlugField(max_length=80), min_length=1, max_length=100)
    repeats = serializers.IntegerField(default=1, min_value=1, max_value=10)
    visibility = serializers.ChoiceField(choices=Visibility.values, default=Visibility.PRIVATE.value)
    board = serializers.SlugField(required=False, allow_null=True, default=None, max_length=80)
    team = serializers.SlugField(required=False, allow_null=True, default=None, max_length=180)


class TokenWish(serializers.Serializer[Any]):
    """A new API token. It lives until `expires_at`, or until it is revoked when that is left out."""

    name = serializers.CharField(max_length=80)
    scopes = serializers.ListField(child=serializers.CharField(max_length=20), min_length=1, max_length=8)
    expires_at = serializers.DateTimeField(required=False, allow_null=True, default=None)


class SecretWish(serializers.Serializer[Any]):
    """A secret to keep: its value is never shown again, and it is only ever sent to `host`. An empty `host` is for
    tasks: such a secret is never sent to a model.
    """

    value = serializers.CharField(max_length=MAX_BYTES, trim_whitespace=False, write_only=True)
    host = serializers.CharField(max_length=MOST_HOST, allow_blank=True)


def board_shape(page: BoardPage, *, following: int) -> dict[str, Any]:
    """A board with the rows of `page`; `following` is the offset of the next ones."""
    board = page.board
    plain = ("slug", "title", "about", "season", "hint_rule", "repeats", "answers_public", "open_for_runs")
    return {
        **{name: getattr(board, name) for name in plain},
        "tasks": [
            {"slug": column.slug, "title": column.title, "number": column.number, "domain": column.domain}
            for column in page.columns
        ],
        "count": page.count,
        "next": following if following < page.count else None,
        "rows": [row_shape(row) for row in page.rows],
    }


def row_shape(row: BoardRow) -> dict[str, Any]:
    """One row of a board."""
    return {
        **{name: getattr(row, name) for name in _ROW},
        "mean_final": points(row.mean_final),
        "mean_final_exact": exact(row.mean_final),
        "mean_best": points(row.mean_best),
        "mean_best_exact": exact(row.mean_best),
        "mean_done_final": points(row.done_final),
        "half_width": points(row.half_width),
        "usd": exact(row.usd),
        "scored_at": row.scored_at,
        "domains": {slug: points(value) for slug, value in row.domains.items()},
        "cells": {slug: _cell_shape(cell) for slug, cell in row.cells.items()},
        "evidence_url": row.url,
    }


def _cell_shape(cell: Cell) -> dict[str, Any]:
    return {
        "final": points(cell.final),
        "final_exact": exact(cell.final),
        "best": points(cell.best),
        "best_exact": exact(cell.best),
        "n": cell.n,
        "half_width": points(cell.spread),
        "usd": exact(cell.usd),
        "hours": cell.hours,
        "runs": list(cell.runs),
    }


def run_shape(run: Run) -> dict[str, Any]:
    """A run: identity, state, budgets, score. Asks the database nothing when team, config and task are loaded."""
    plain = ("id", "visibility", "status", "steps", "limit_steps", "evaluations_used", "limit_s", "tokens")
    times = ("engine_version", "assisted", "created_at", "started_at", "ended_at")
    blank = {
        "board": run.board,
        "waiting_reason": run.waiting_reason,
        "end_reason": run.end_reason,
        "failure": run.failure_code,
        "model_returned": run.model_returned,
        "isolation_level": run.isolation,
    }
    return {
        **{name: getattr(run, name) for name in (*plain, *times)},
        **{name: value or None for name, value in blank.items()},
        "task": run.task_version.task.slug,
        "task_version": run.task_version.number,
        "config": {"id": run.config_id, "name": run.config.name, "version": run.config.version},
        "team": run.team.shown_name,
        "status_text": str(run.get_status_display()),
        "reason": reason_text(run),
        "evaluations_total": run.limit_evaluations,
        "elapsed_s": round(working_s(run), 1),
        "score": points(run.score),
        "score_exact": exact(run.score),
        "best": points(run.best),
        "best_exact": exact(run.best),
        "usd": None if run.unpriced else exact(run.usd),
        "url": run.get_absolute_url(),
    }


def event_line(row: Event) -> dict[str, Any]:
    """An event as it leaves the site, with its step and whether long texts of it are cut."""
    return {**event_shape(row), "step": row.step, "cut": bool(row.blob)}


def evaluation_shape(row: Evaluation) -> dict[str, Any]:
    """One scoring: raw metrics as the evaluator signed them; never its log, which is for curators."""
    plain = ("ordinal", "by", "state", "valid", "message", "metrics", "seconds", "sandbox_level", "bundle_sha256")
    return {
        **{name: getattr(row, name) for name in plain},
        "score": points(row.score),
        "score_exact": exact(row.score),
        "requested_at": row.requested_at,
        "scored_at": row.scored_at,
    }


def submission_shape(submission: Submission, reader: Person) -> dict[str, Any]:
    """A submission with the runs that `reader` may read; plain JSON, for an idempotency key keeps it too."""
    runs = [
        {
            "id": row.run_id,
            "task": row.task_version.task.slug,
            "repeat": row.repeat,
            "attempt": row.attempt,
            "status": row.run.status,
            "score": points(row.run.score),
            "url": row.run.get_absolute_url(),
        }
        for row in attempts_for(reader, submission)
    ]
    config = submission.config
    return {
        "id": submission.pk,
        "url": submission_url(submission),
        "team": submission.team.shown_name,
        "config": {"id": config.pk, "name": config.name, "version": config.version},
        "board": submission.board or None,
        "visibility": submission.visibility,
        "repeats": submission.repeats,
        "created_at": submission.created_at.isoformat(),
        "runs": runs,
    }


def submission_url(submission: Submission) -> str:
    """Its page."""
    return reverse("submission", args=[submission.pk])
