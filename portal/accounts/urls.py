"""Addresses of this room."""

from django.urls import URLPattern, URLResolver, path

from portal.accounts import signing, views

urlpatterns: list[URLPattern | URLResolver] = [
    path("accounts/signup/", signing.SignUp.as_view(), name="account_signup"),
    path("accounts/login/", signing.SignIn.as_view(), name="account_login"),
    path("account/", views.account, name="account"),
    path("account/delete/", views.account_delete, name="account_delete"),
    path("account/notices/read/", views.notices_read, name="notices_read"),
    path("account/tokens/", views.token_create, name="token_create"),
    path("account/tokens/<int:token_id>/revoke/", views.token_revoke, name="token_revoke"),
    path("account/vault/", views.secret_put, name="secret_put"),
    path("account/vault/<slug:slug>/<int:secret_id>/delete/", views.secret_delete, name="secret_delete"),
    path("account/teams/", views.team_create, name="team_create"),
    path("account/teams/<slug:slug>/", views.team, name="team"),
    path("account/teams/<slug:slug>/rename/", views.team_rename, name="team_rename"),
    path("account/teams/<slug:slug>/invites/", views.invite_create, name="invite_create"),
    path("account/teams/<slug:slug>/invites/<int:invite_id>/revoke/", views.invite_revoke, name="invite_revoke"),
    path("account/teams/<slug:slug>/members/<int:user_id>/role/", views.member_role, name="member_role"),
    path("account/teams/<slug:slug>/members/<int:user_id>/remove/", views.member_remove, name="member_remove"),
    path("join/<str:value>/", views.invite, name="invite"),
]
