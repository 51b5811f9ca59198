"""Room: portal.curation. How Django finds it; wiring between rooms is in portal/apps.py."""

from django.apps import AppConfig


class CurationConfig(AppConfig):
    """The room with the label `curation`."""

    name = "portal.curation"
    label = "curation"
