"""Room: runs. Background jobs: doors to the services. Each may run twice, and at any time."""

from celery import shared_task

from portal.accounts.vault import formers_forget
from runs.outbox import outbox_deliver
from runs.services.stepping import run_advance
from runs.services.ticking import tick


@shared_task
def advance_run_job(run_id: int) -> None:
    """Bring one run on by a slice."""
    run_advance(run_id=run_id)


@shared_task
def tick_job() -> None:
    """Look what is due."""
    tick()


@shared_task
def outbox_job() -> None:
    """Deliver news to higher rooms."""
    outbox_deliver()


@shared_task
def forget_job() -> None:
    """Remove what is kept for a while only."""
    formers_forget()
