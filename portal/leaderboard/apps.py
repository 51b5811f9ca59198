"""Room: portal.leaderboard. How Django finds it; wiring between rooms is in portal/apps.py."""

from django.apps import AppConfig


class LeaderboardConfig(AppConfig):
    """The room with the label `leaderboard`."""

    name = "portal.leaderboard"
    label = "leaderboard"
