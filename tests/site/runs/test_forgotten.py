"""A deleted person's name is gone from the logs of runs too; what they did stays, as done by a deleted user."""

from django.db import connection
from django.test import Client

from portal.accounts.models import Membership, Role, Team, User
from portal.accounts.services import user_delete
from runs.models.log import Event
from runs.models.run import Run
from runs.services.controls import run_cancel, run_message, run_pause, run_resume, run_share
from runs.states import Status, Visibility

NAME = "zuleika-zz"


def test_the_names_are_found_without_reading_every_log(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        plan = Event.objects.filter(body__has_key="person", body__person=7).explain()
    assert "event_of_person" in plan


def stored() -> str:
    """Everything the database holds of runs and their logs, as text."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT t::text FROM runs_event t UNION ALL SELECT t::text FROM runs_run t")
        return str(cursor.fetchall())


def test_the_name_of_a_deleted_user_is_in_no_log_of_a_run(queue, team: Team, alice: User, client: Client) -> None:
    """A5: pages, API, and the rows themselves."""
    zuleika = User.objects.create_user(NAME, "z@example.org")
    Membership.objects.create(team=team, user=zuleika, role=Role.MEMBER)
    run = queue()
    Run.objects.filter(pk=run.pk).update(status=Status.PREPARING)
    run_share(run=run, by=zuleika, visibility=Visibility.PUBLIC)
    run_message(run=run, by=zuleika, text="look at the data first")
    run_message(run=run, by=alice, text="and at the baseline")
    run_pause(run=run, by=zuleika)
    run_resume(run=run, by=zuleika)
    run_cancel(run=run, by=zuleika)
    assert stored().count(NAME) == 5
    user_delete(user=zuleika, by=zuleika)
    assert NAME not in stored()
    events = client.get(f"/api/v1/runs/{run.pk}/events/").content.decode()
    assert (events.count("deleted user"), events.count(alice.username)) == (5, 1)
    assert '"person"' not in events
    assert "deleted user" in client.get(run.get_absolute_url()).content.decode()
