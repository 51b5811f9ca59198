"""A1: every route x {nobody, stranger, owner, team mate, staff}; what is hidden stands in no body."""

import re

import pytest
from django.urls import reverse

from portal.accounts.models import ApiToken
from tests.site.access.routes import FOREIGN, ours, routes
from tests.site.access.table import TABLE, Line
from tests.site.access.world import INSIDE, NEVER, PEOPLE, World


def address(line: Line, world: World) -> str:
    filled = {name: text.format(**world.ids) for name, text in line.args.items()}
    return reverse(line.name, kwargs=filled) + line.query


def body(answer) -> str:
    raw = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return raw.decode(errors="replace")


def label(line: Line) -> str:
    return f"{line.method} {line.name} {' '.join(line.args.values())}{line.query}"


@pytest.mark.parametrize("line", TABLE, ids=label)
def test_everybody_gets_the_status_of_the_table_and_nothing_hidden(line, world):
    """A1"""
    wanted = dict(zip(PEOPLE, line.statuses.split(), strict=line.method == "get"))
    where, got, leaks = address(line, world), {}, []
    for person, status in wanted.items():
        if status == "-":
            got[person] = "-"
            continue
        answer = getattr(world.clients[person], line.method)(where)
        got[person] = str(answer.status_code)
        hidden = NEVER + (INSIDE if person in ("nobody", "stranger") else ())
        leaks += [(person, text) for text in hidden if text in body(answer) and text not in where]
    assert got == wanted
    assert not leaks


def test_every_route_stands_in_the_table():
    """A1: 100 % of the routes that are ours."""
    covered = {line.name for line in TABLE}
    known = ours() | {name for name, _ in routes() if name == "account_delete"}
    assert not known - covered, "routes without a line in table.py"
    assert not covered - known, "lines of routes that are gone"


def test_every_route_has_a_name_of_its_own():
    names = [name for name, _ in routes() if not name.startswith(FOREIGN)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("person", PEOPLE)
def test_the_admin_is_for_staff(world, person):
    """A1"""
    status = world.clients[person].get(reverse("admin:index")).status_code
    assert status == (200 if person == "staff" else 302)


@pytest.mark.parametrize(
    "name", sorted({n for n, _ in routes() if n.startswith("admin:") and n.endswith("_changelist")})
)
def test_lists_of_the_admin_are_closed_to_staff_without_the_right(world, name):
    """A1"""
    assert world.clients["staff"].get(reverse(name)).status_code == 403
    assert world.clients["owner"].get(reverse(name)).status_code == 302


def test_a_stranger_s_refused_post_changes_nothing(world):
    """A1: revoking somebody else's token says "no such token" and leaves it alive."""
    world.clients["stranger"].post(reverse("token_revoke", kwargs={"token_id": world.ids["token"]}))
    assert ApiToken.objects.get(pk=world.ids["token"]).revoked_at is None


def _plain(text: str) -> str:
    """Without numbers (the run that was asked for) and the one-time value of forms."""
    return re.sub(r"[0-9]+", "", re.sub(r'value="[A-Za-z0-9]{64}"', "", text))


def test_private_and_absent_runs_look_alike_to_strangers(world):
    """A1: a 404 that differs would say that there is something."""
    for name in ("run", "api-run", "api-run-events", "api-run-evaluations"):
        private = reverse(name, kwargs={"run_id": world.ids["private"]})
        absent = reverse(name, kwargs={"run_id": 999_999})
        for person in ("nobody", "stranger"):
            client = world.clients[person]
            one, other = (_plain(body(client.get(where))) for where in (private, absent))
            assert one == other


def test_lists_name_private_things_to_insiders_alone(world):
    """A1"""
    for person in PEOPLE:
        listed = {row["id"] for row in world.clients[person].get(reverse("api-runs")).json()["runs"]}
        assert (world.ids["private"] in listed) is (person in ("owner", "mate", "staff"))
