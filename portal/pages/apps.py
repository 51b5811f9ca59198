"""Room: portal.pages. How Django finds it; wiring between rooms is in portal/apps.py."""

from django.apps import AppConfig


class PagesConfig(AppConfig):
    """The room with the label `pages`."""

    name = "portal.pages"
    label = "pages"
