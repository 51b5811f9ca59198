"""Room: portal.core. How Django finds it; wiring between rooms is in portal/apps.py."""

from django.apps import AppConfig


class CoreConfig(AppConfig):
    """The room with the label `core`."""

    name = "portal.core"
    label = "core"
