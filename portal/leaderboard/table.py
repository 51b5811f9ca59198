"""Room: portal.leaderboard. A board as one CSV text, equal to page and JSON: the same rows in the same order."""

from portal.leaderboard.presenters import csv_lines
from portal.leaderboard.selectors import BoardPage


def board_csv(page: BoardPage) -> str:
    """Head and rows of `page`; texts that a spreadsheet would run as a formula are defused."""
    return "".join(csv_lines(page))
