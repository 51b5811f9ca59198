"""Addresses of this room."""

from django.urls import URLPattern, URLResolver, path

from portal.submissions import views

urlpatterns: list[URLPattern | URLResolver] = [
    path("submissions/", views.submissions, name="submissions"),
    path("submissions/<int:submission_id>/", views.submission, name="submission"),
    path("submissions/retry/<int:run_id>/", views.retry, name="submission_retry"),
]
