"""Addresses of this room."""

from django.urls import URLPattern, URLResolver, path

from portal.nodes import views

urlpatterns: list[URLPattern | URLResolver] = [
    path("nodes/", views.nodes, name="nodes"),
    path("nodes/add/", views.add, name="node_add"),
    path("nodes/at/<slug:name>/", views.node, name="node"),
    path("nodes/at/<slug:name>/trust/", views.trust, name="node_trust"),
    path("nodes/at/<slug:name>/state/", views.state, name="node_state"),
    path("nodes/at/<slug:name>/doctor/", views.doctor, name="node_doctor"),
]
