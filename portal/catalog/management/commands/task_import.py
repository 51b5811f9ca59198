"""Room: portal.catalog. `manage.py task_import DIR`: take in what `evaluator pack` made."""

from argparse import ArgumentParser
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from portal.catalog.models import Suite
from portal.catalog.packed import PackageFaults, packed_read
from portal.catalog.services import task_version_import
from portal.core.errors import SiteError


class Command(BaseCommand):
    """Prints one line: what the package became."""

    help = "Import a packed task version (public.tar, sealed.age, manifest.json, digest) from a folder."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, help="the folder that `evaluator pack` wrote")
        parser.add_argument("--suite", choices=Suite.values, default=Suite.NANO.value)

    def handle(self, *, folder: Path, suite: str, **_options: object) -> None:
        try:
            version = task_version_import(packed=packed_read(folder), by=None, suite=Suite(suite))
        except PackageFaults as problem:
            raise CommandError("\n".join(str(fault) for fault in problem.faults)) from problem
        except SiteError as problem:
            raise CommandError(problem.sentence) from problem
        self.stdout.write(f"{version} {version.digest} {version.size}")
