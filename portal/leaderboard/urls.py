"""Addresses of this room."""

from django.urls import URLPattern, URLResolver, path

from portal.leaderboard import views

urlpatterns: list[URLPattern | URLResolver] = [
    path("leaderboard/", views.leaderboard, name="leaderboard"),
    path("leaderboard/<slug:slug>/", views.board, name="board"),
    path("leaderboard/<slug:slug>/board.csv", views.board_csv, name="board_csv"),
    path("leaderboard/<slug:slug>/<int:entry_id>/", views.entry, name="entry"),
]
