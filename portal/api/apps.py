"""Room: portal.api. How Django finds it; wiring between rooms is in portal/apps.py."""

from django.apps import AppConfig


class ApiConfig(AppConfig):
    """The room with the label `api`."""

    name = "portal.api"
    label = "api"
