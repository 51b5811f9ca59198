"""Room: portal.accounts. How Django finds it; wiring between rooms is in portal/apps.py."""

from importlib import import_module

from django.apps import AppConfig
from django.db.models.signals import post_save


class AccountsConfig(AppConfig):
    """The room with the label `accounts`; gives every new user a team of their own."""

    name = "portal.accounts"
    label = "accounts"

    def ready(self) -> None:
        """The signal's module needs the models, which can only be imported now."""
        make = import_module("portal.accounts.signals").personal_team_make
        post_save.connect(make, sender="accounts.User", dispatch_uid="accounts.personal_team")
