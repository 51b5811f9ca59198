"""Room: portal.catalog. `manage.py catalog_import`: domains and the published tasks from this project's data files."""

from django.core.management.base import BaseCommand

from portal.catalog.services import catalog_import_published


class Command(BaseCommand):
    """May run again at any time."""

    help = "Make or refresh the six domains and the pages of the 20 published tasks."

    def handle(self, **_options: object) -> None:
        new = catalog_import_published()
        self.stdout.write(f"{new} tasks added, the others are up to date")
