"""Addresses of this room."""

from django.urls import URLPattern, URLResolver, path

from portal.pages import views

urlpatterns: list[URLPattern | URLResolver] = [
    path("", views.home, name="home"),
    path("live/", views.home_live, name="home_live"),
    path("tasks/", views.tasks, name="tasks"),
    path("tasks/<slug:slug>/", views.task, name="task"),
    path("agents/", views.agents, name="agents"),
    path("agents/<int:config_id>/", views.agent, name="agent"),
    path("submit/", views.submit, name="submit"),
    path("docs/", views.docs, name="docs"),
    path("docs/<slug:section>/", views.docs, name="docs_section"),
]
