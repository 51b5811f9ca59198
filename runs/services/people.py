"""Room: runs.services. Who of the people did something to a run, and what is left of it when they are deleted."""

from django.utils.translation import gettext_noop

from portal.accounts.models import User
from runs.models.log import Event
from runs.models.run import Run

DELETED = gettext_noop("deleted user")


def said_by(person: User | None) -> dict[str, str | int | None]:
    """What an event tells of who did it: the name for readers, and by which row the name can be found again."""
    return {"by": person.shown_name if person else "", "person": person.pk if person else None}


def person_forget(user_id: int) -> None:
    """Take a deleted person's name out of the events that hold it: the one thing that is ever changed in a log."""
    said = Event.objects.filter(body__has_key="person", body__person=user_id)  # as the index `event_of_person` has it
    for event in said.select_for_update().order_by("run_id", "seq"):
        event.body = {**event.body, "by": DELETED}
        event.save(update_fields=["body"])
    for run in Run.objects.select_for_update().filter(conditions__person=user_id).order_by("pk"):
        run.conditions = {**run.conditions, "by": DELETED}
        run.save(update_fields=["conditions"])
