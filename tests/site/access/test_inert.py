"""Every page of the site with hostile text in every column that holds somebody's words: shown, and it doesn't act."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from django.apps import apps
from django.db import connection, models
from django.utils import timezone

from runs.models.log import TerminalChunk
from runs.models.run import Run
from tests.site.access.table import TABLE
from tests.site.access.test_access import address
from tests.site.access.world import World

EVIL = "\"'><img src=x onerror=hit()><script>hit()</script></title></textarea><svg onload=hit()>javascript:hit()"
SHOWN = "&lt;img src=x onerror=hit()&gt;"
ROOMS = ("accounts", "catalog", "nodes", "runs", "submissions", "leaderboard")
# Pages on which some of it stands: a test that poisons nothing any more is noticed here.
SHOWING = {
    *("account", "agent", "agents", "board", "entry", "home", "home_live", "node", "nodes", "run", "run_step"),
    *("run_steps", "run_terminal", "runs", "submission", "submissions", "submit", "task", "tasks", "team"),
}
# Columns that hold names of ours: keys, digests, words of a list. Whoever adds a column of text answers for it here.
OURS = {
    *("slug", "key", "digest", "code", "hue", "password", "seed_kind", "board", "engine_version", "failure_code"),
    *("kind", "run_key", "topic", "wanted", "isolation", "visibility", "nonce", "ticket", "envelope", "action_id"),
    *(
        "token_sha256",
        "public_blob",
        "public_sha256",
        "sealed_blob",
        "sealed_sha256",
        "bundle_sha256",
        "blob",
        "role",
        "session",
    ),
}
# JSON that the site itself parses before it shows it, and keys of events that name things of ours.
PARSED = {"manifest", "spec", "score", "fold", "conditions", "runs", "jumps", "offered"}
NAMES = {"id", "call_id", "action_id", "kind", "outcome", "usd", "score", "digest", "by"}


def evil(value: Any, key: str = "") -> Any:
    """The JSON value with every text that somebody may choose replaced."""
    if isinstance(value, dict):
        return {name: evil(item, name) for name, item in value.items()} | {EVIL: EVIL}
    if isinstance(value, list):
        return [evil(item, key) for item in value]
    return EVIL if isinstance(value, str) and key not in NAMES else value


def columns(model: type[models.Model]) -> Iterator[Any]:
    for field in model._meta.fields:
        texts = isinstance(field, models.CharField | models.TextField) and not field.choices and not field.unique
        json = isinstance(field, models.JSONField) and field.name not in PARSED
        if (texts and field.name not in OURS) or json:
            yield field


def poison() -> None:
    """Past all checks and triggers, as an import or an older release might have stored it."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = 'replica'")
    for room in ROOMS:
        for model in apps.get_app_config(room).get_models():
            for row in model._default_manager.all():
                values = {field.name: _value(field, row) for field in columns(model)}
                model._default_manager.filter(pk=row.pk).update(**values)
    TerminalChunk.objects.update(data=EVIL.encode())
    for run in Run.objects.all():
        TerminalChunk.objects.create(run=run, session=EVIL, offset=0, at=timezone.now(), data=EVIL.encode())


def _value(field: Any, row: models.Model) -> Any:
    if isinstance(field, models.JSONField):
        return evil(getattr(row, field.name))
    return f"{EVIL}{row.pk}"[: getattr(field, "max_length", None) or 500]


class Acting(HTMLParser):
    """Collects what of a page could act: tags and attributes that no page of ours has."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        acting = [name for name in given if name.startswith("on") or name in {"style", "srcdoc"}]
        for name in {"href", "src", "action", "formaction", "xlink:href"} & set(given):
            where = re.sub(r"[\x00-\x20]", "", given[name]).lower()
            acting += [name] if where.startswith(("javascript:", "data:", "vbscript:")) or where == "x" else []
        own = tag == "script" and not given.get("src", "").startswith("/static/")
        if acting or own or tag in {"iframe", "object", "embed", "base"}:
            self.found.append(f"<{tag} {given}>")


@pytest.fixture
def poisoned(world: World) -> World:
    poison()
    return world


def test_no_page_acts_on_what_somebody_wrote(poisoned: World) -> None:
    """T7: names of teams, people, tasks, agents, models and nodes, thoughts, arguments, file names, output, notes."""
    showing = set()
    for line in (line for line in TABLE if line.method == "get" and line.statuses.split()[2] == "200"):
        answer = poisoned.clients["owner"].get(address(line, poisoned))
        where = f"{line.name} {line.args}"
        assert answer.status_code == 200, where
        assert answer["X-Content-Type-Options"] == "nosniff", where
        if not answer["Content-Type"].startswith("text/html"):
            continue
        html = answer.content.decode()
        assert not Acting(html).found, where
        policy = answer["Content-Security-Policy"]
        assert "script-src 'self'" in [part.strip() for part in policy.split(";")], where
        assert "unsafe" not in policy, where
        showing |= {line.name} if SHOWN in html else set()
    assert showing >= SHOWING
