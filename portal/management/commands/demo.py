"""`manage.py demo`: the site, one run of a shipped task, its score; then keeps serving (`--once`: ends)."""

import argparse
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.embedded.demo import Outcome, demo_run, demo_token
from portal.embedded.programs import ROOT
from portal.embedded.site import Running, pids_write, running_already, site_up
from portal.settings.instance import Instance, instance_of


class Command(BaseCommand):
    """Door to portal.embedded.demo."""

    help = "Start the site on this machine and run an agent on a shipped task."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--once", action="store_true", help="end after the score")
        parser.add_argument("--port", type=int, default=8000, help="wished port (the next free one is taken)")

    def handle(self, *_args: Any, **options: Any) -> None:
        instance = instance_of(ROOT)
        try:
            found = running_already(instance)
            if found:
                self._say(f"The site is running already: {found.url}")
                self._report(self._play(instance, found.url))
                return
            with site_up(instance, options["port"], self._say) as running:
                self._say(f"The site is at {running.url}")
                self._report(self._beside(instance, running))
                if options["once"]:
                    self._say("The site ends now and keeps all this; `make up` serves it again.")
                elif running.supervisor:
                    self._say("It keeps serving; Ctrl-C ends it.")
                    running.supervisor.watch(lambda pids: pids_write(instance, pids))
        except RuntimeError as error:
            raise CommandError(f"{error}\nLogs: {instance.logs}") from error

    def _beside(self, instance: Instance, running: Running) -> Outcome:
        """The run in a thread, while this thread keeps the processes alive."""
        with ThreadPoolExecutor(1) as pool:
            future: Future[Outcome] = pool.submit(self._play, instance, running.url)
            if running.supervisor:
                running.supervisor.watch(lambda pids: pids_write(instance, pids), until=future.done)
            return future.result()

    def _play(self, instance: Instance, url: str) -> Outcome:
        began = time.monotonic()
        outcome = demo_run(url, demo_token(url, instance.keys / "demo.json"), self._say)
        self._say(f"run: {time.monotonic() - began:.1f} s")
        return outcome

    def _report(self, outcome: Outcome) -> None:
        if outcome.status != "finished" or not outcome.score:
            message = f"run {outcome.run} ended as {outcome.status} without a score; see {outcome.run_url}"
            raise RuntimeError(message)
        self._say(self.style.SUCCESS(f"\nScore {outcome.score} (baseline 0, reference 80)"))
        self._say(f"  run          {outcome.run_url}\n  leaderboard  {outcome.board_url}")

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
