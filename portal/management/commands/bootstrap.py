"""`manage.py bootstrap`: what an instance must hold before it serves: tables, catalogue, boards, tasks, its node."""

import subprocess
import time
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from portal.catalog.services import catalog_import_published
from portal.embedded.local_node import local_node_ensure
from portal.embedded.shipped import shipped_import
from portal.leaderboard.boards import boards_ensure
from portal.leaderboard.published import published_import


class Command(BaseCommand):
    """May run again at any time: what is there already is left alone. Lines beginning with a dash are progress."""

    help = "Bring this instance's database and catalogue up to date (called by `up`)."

    def handle(self, *_args: Any, **_options: Any) -> None:
        self._step("tables", lambda: call_command("migrate", interactive=False, verbosity=0))
        self._step("published tasks", catalog_import_published)
        self._step("shipped tasks", lambda: shipped_import(self._say))
        self._step("boards", lambda: (boards_ensure(), published_import()))
        self._step("local node", lambda: local_node_ensure(settings.INSTANCE / "keys"))

    def _step(self, name: str, action: Callable[[], object]) -> None:
        began = time.monotonic()
        try:
            action()
        except subprocess.CalledProcessError as error:
            raise CommandError(f"{name}: {' '.join(error.cmd)} ended with {error.returncode}") from error
        self._say(f"{name}: {time.monotonic() - began:.1f} s")

    def _say(self, line: str) -> None:
        self.stdout.write(f"- {line}")
        self.stdout.flush()
