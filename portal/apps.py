"""Composition root: the one place that tells lower rooms whom to call. Handlers are registered nowhere else."""

from importlib import import_module

from django.apps import AppConfig

from portal.celery import app as celery_app
from portal.nodes import sinks

# What a row of a board is made of changed: a run ended, was scored, or its final score failed to come.
ROW_TOPICS = ("run_ended", "evaluation_scored", "evaluation_failed")


class PortalConfig(AppConfig):
    """Wires sinks and outbox handlers once every room is loaded."""

    name = "portal"
    label = "portal"

    def ready(self) -> None:
        """Every process that enqueues jobs uses the site's own Celery application, also those that aren't workers."""
        celery_app.set_default()
        # Rooms with models can only be imported now: their rows exist once every app is loaded.
        watching = import_module("runs.services.watching")
        sinks.register(
            on_terminal=watching.terminal_took,
            on_quiet=watching.terminal_paused,
            on_change=watching.change_took,
            stored_end=watching.terminal_stored,
        )
        import_module("portal.accounts.leaving").register(import_module("runs.services.people").person_forget)
        import_module("portal.nodes.holders").register(import_module("runs.selectors").run_keys_readable)
        outbox, entries = import_module("runs.outbox"), import_module("portal.leaderboard.entries")
        for topic in ROW_TOPICS:
            outbox.register(topic, entries.on_run_changed)
