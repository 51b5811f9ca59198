"""Room: portal.catalog. How Django finds it; wiring between rooms is in portal/apps.py."""

from typing import Any

from django.apps import AppConfig
from django.apps import apps as live
from django.apps.registry import Apps
from django.db.models.signals import post_migrate

from portal.catalog.domains import PAPER_DOMAINS


class CatalogConfig(AppConfig):
    """The room with the label `catalog`; a database always has the domains of the paper, however it was made."""

    name = "portal.catalog"
    label = "catalog"

    def ready(self) -> None:
        post_migrate.connect(_domains_make, sender=self, dispatch_uid="catalog.domains")


def _domains_make(*, using: str, apps: Apps = live, **_rest: Any) -> None:
    """After migrations and flushes; nothing to do where the table is not there (migrated back to zero)."""
    try:
        domain = apps.get_model("catalog", "Domain")
    except LookupError:
        return
    for position, facts in enumerate(PAPER_DOMAINS, start=1):
        values = {"name": facts.name, "code": facts.code, "hue": facts.hue, "position": position}
        domain._default_manager.using(using).get_or_create(slug=facts.slug, defaults=values)
