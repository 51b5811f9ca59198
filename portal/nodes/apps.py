"""Room: portal.nodes. How Django finds it; wiring between rooms is in portal/apps.py."""

from django.apps import AppConfig


class NodesConfig(AppConfig):
    """The room with the label `nodes`."""

    name = "portal.nodes"
    label = "nodes"
