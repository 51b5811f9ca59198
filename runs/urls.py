"""Addresses of this room."""

from django.urls import URLPattern, URLResolver, path

from runs import views

urlpatterns: list[URLPattern | URLResolver] = [
    path("runs/", views.runs, name="runs"),
    path("runs/<int:run_id>/", views.run, name="run"),
    path("runs/<int:run_id>/steps/", views.run_steps, name="run_steps"),
    path("runs/<int:run_id>/steps/<int:number>/", views.run_step, name="run_step"),
    path("runs/<int:run_id>/terminal/", views.run_terminal, name="run_terminal"),
    path("runs/<int:run_id>/cancel/", views.cancel, name="run_cancel"),
    path("runs/<int:run_id>/pause/", views.pause, name="run_pause"),
    path("runs/<int:run_id>/resume/", views.resume, name="run_resume"),
    path("runs/<int:run_id>/message/", views.message, name="run_message"),
    path("runs/<int:run_id>/share/", views.share, name="run_share"),
]
