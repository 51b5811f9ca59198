"""Every address of the site: one line per room. A room's own urls.py lists its pages."""

from django.contrib import admin
from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView

handler404 = "portal.api.errors.not_found"

urlpatterns = [
    path("admin/", admin.site.urls),
    path("i18n/", include("django.conf.urls.i18n")),
    path("", include("portal.accounts.urls")),  # before allauth's: it has signing up and in of its own
    path("accounts/", include("allauth.account.urls")),
    path("api/v1/schema/", SpectacularAPIView.as_view(), name="schema"),
    path("api/v1/", include("portal.api.urls")),
    path("", include("portal.catalog.urls")),
    path("", include("portal.nodes.urls")),
    path("", include("portal.submissions.urls")),
    path("", include("portal.leaderboard.urls")),
    path("", include("runs.urls")),
    path("", include("portal.pages.urls")),
]
handler500 = "portal.core.doors.failed"
