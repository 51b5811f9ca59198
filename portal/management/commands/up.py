"""`manage.py up`: start the whole site on this machine, until Ctrl-C. A second start finds the first."""

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.embedded.programs import ROOT
from portal.embedded.site import pids_write, running_already, site_up
from portal.settings.instance import instance_of


class Command(BaseCommand):
    """Door to portal.embedded.site."""

    help = "Start PostgreSQL, Valkey, an SSH node and all processes of the site on this machine."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=8000, help="wished port (the next free one is taken)")

    def handle(self, *_args: Any, **options: Any) -> None:
        instance = instance_of(ROOT)
        try:
            found = running_already(instance)
            if found:
                self.stdout.write(f"The site is running already: {found.url}")
                return
            with site_up(instance, options["port"], self._say) as running:
                self._say(self.style.SUCCESS(f"The site is at {running.url} (Ctrl-C ends it)"))
                if running.supervisor:
                    running.supervisor.watch(lambda pids: pids_write(instance, pids))
                self._say("ending all processes ...")
        except RuntimeError as error:
            raise CommandError(f"{error}\nLogs: {instance.logs}") from error

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
