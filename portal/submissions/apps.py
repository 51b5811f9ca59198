"""Room: portal.submissions. How Django finds it; wiring between rooms is in portal/apps.py."""

from django.apps import AppConfig


class SubmissionsConfig(AppConfig):
    """The room with the label `submissions`."""

    name = "portal.submissions"
    label = "submissions"
