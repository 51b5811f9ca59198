"""Addresses of this room."""

from django.urls import URLPattern, URLResolver, path

from portal.catalog import views

urlpatterns: list[URLPattern | URLResolver] = [
    path("tasks/<slug:slug>/v<int:number>/public.tar", views.workspace, name="task_workspace"),
]
