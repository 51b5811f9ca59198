"""Room: portal.accounts. Doors of the account and team pages: read input, call one service, shape the answer."""

from datetime import timedelta

from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from portal.accounts import services, tokens, vault
from portal.accounts.forms import SecretForm, TeamForm, TokenForm, role_given
from portal.accounts.notices import notices_mark_read
from portal.accounts.people import me
from portal.accounts.permits import demand
from portal.accounts.presenters import account_page, team_page
from portal.accounts.roles import Thing, Verb
from portal.accounts.selectors import team_get_for
from portal.core.doors import field_fault_into, tell_errors
from portal.core.errors import FieldFault
from portal.core.secrets import Secret


def _account(request: HttpRequest, status: int = 200, **parts: object) -> HttpResponse:
    forms = {"token_form": TokenForm(), "secret_form": SecretForm(user=me(request)), "team_form": TeamForm()}
    page = account_page(me(request))
    return render(request, "accounts/account.html", {**forms, **parts, "page": page}, status=status)


@require_safe
@login_required
@never_cache
def account(request: HttpRequest) -> HttpResponse:
    """Profile, teams, tokens, vault and notices of the reader."""
    return _account(request)


@require_POST
@login_required
@never_cache
@tell_errors
def token_create(request: HttpRequest) -> HttpResponse:
    """Make a token and show its value this once: the answer is no redirect, so that it is never stored."""
    form = TokenForm(request.POST)
    if not form.is_valid():
        return _account(request, 400, token_form=form)
    days = form.cleaned_data["days"]
    expires_at = timezone.now() + timedelta(days=days) if days else None
    scopes, name = form.cleaned_data["scopes"], form.cleaned_data["name"]
    made = tokens.token_create(user=me(request), name=name, scopes=scopes, expires_at=expires_at)
    return _account(request, new_token=made.token, new_token_value=made.value.reveal())


@require_POST
@login_required
@tell_errors
def token_revoke(request: HttpRequest, token_id: int) -> HttpResponse:
    """End one's own token."""
    tokens.token_revoke(user=me(request), token_id=token_id)
    messages.success(request, _("The token is dead from now on."))
    return redirect("account")


@require_POST
@login_required
@tell_errors
def secret_put(request: HttpRequest) -> HttpResponse:
    """Seal a key into a team's vault."""
    form = SecretForm(request.POST, user=me(request))
    if not form.is_valid():
        return _account(request, 400, secret_form=form)
    team = team_get_for(me(request), form.cleaned_data["team"])
    demand(me(request), team, Thing.SECRET, Verb.WRITE)
    name, host, value = (form.cleaned_data[key] for key in ("name", "host", "value"))
    try:
        vault.secret_put(team=team, name=name, value=Secret(value), host=host, by=me(request))
    except FieldFault as fault:
        field_fault_into(form, fault)
        return _account(request, 400, secret_form=form)
    return redirect(reverse("account") + "#vault")


@require_POST
@login_required
@tell_errors
def secret_delete(request: HttpRequest, slug: str, secret_id: int) -> HttpResponse:
    """Remove a key."""
    team = team_get_for(me(request), slug)
    demand(me(request), team, Thing.SECRET, Verb.WRITE)
    vault.secret_delete(team=team, secret_id=secret_id, by=me(request))
    messages.success(request, _("The key is gone. Runs that need it will say so."))
    return redirect(reverse("account") + "#vault")


@require_POST
@login_required
@tell_errors
def notices_read(request: HttpRequest) -> HttpResponse:
    """All notices are read."""
    notices_mark_read(user=me(request))
    return redirect("account")


@require_POST
@login_required
@tell_errors
def account_delete(request: HttpRequest) -> HttpResponse:
    """Delete oneself; what the person did stays, without a name."""
    if request.POST.get("confirm") != me(request).username:
        messages.error(request, _("Type your user name to confirm. Nothing was deleted."))
        return redirect("account")
    user = me(request)
    services.user_delete(user=user, by=user)
    logout(request)
    messages.success(request, _("Your account is deleted."))
    return redirect("home")


@require_POST
@login_required
@tell_errors
def team_create(request: HttpRequest) -> HttpResponse:
    """A new team with the reader as its owner."""
    form = TeamForm(request.POST)
    if not form.is_valid():
        return _account(request, 400, team_form=form)
    team = services.team_create(name=form.cleaned_data["name"], by=me(request))
    return redirect("team", slug=team.slug)


def _team(request: HttpRequest, slug: str, **parts: object) -> HttpResponse:
    team = team_get_for(me(request), slug)
    shown = team_page(me(request), team)
    form = TeamForm(initial={"name": team.name})
    return render(request, "accounts/team.html", {"page": shown, "team_form": form, **parts})


@require_safe
@login_required
@never_cache
def team(request: HttpRequest, slug: str) -> HttpResponse:
    """Members and invitation links of a team."""
    return _team(request, slug)


@require_POST
@login_required
@tell_errors
def team_rename(request: HttpRequest, slug: str) -> HttpResponse:
    """Another name for a team; its address stays."""
    found = team_get_for(me(request), slug, need=Verb.MANAGE)
    services.team_rename(team=found, name=request.POST.get("name", ""), by=me(request))
    return redirect("team", slug=slug)


@require_POST
@login_required
@never_cache
@tell_errors
def invite_create(request: HttpRequest, slug: str) -> HttpResponse:
    """Make an invitation link and show it this once."""
    found = team_get_for(me(request), slug, need=Verb.MANAGE)
    made = tokens.invite_create(team=found, by=me(request))
    link = request.build_absolute_uri(reverse("invite", args=[made.value.reveal()]))
    return _team(request, slug, new_invite=link)


@require_POST
@login_required
@tell_errors
def invite_revoke(request: HttpRequest, slug: str, invite_id: int) -> HttpResponse:
    """End an invitation link."""
    found = team_get_for(me(request), slug, need=Verb.MANAGE)
    tokens.invite_revoke(team=found, invite_id=invite_id, by=me(request))
    return redirect("team", slug=slug)


@require_POST
@login_required
@tell_errors
def member_role(request: HttpRequest, slug: str, user_id: int) -> HttpResponse:
    """Make a member an owner, or an owner a member."""
    found = team_get_for(me(request), slug, need=Verb.MANAGE)
    role = role_given(request.POST.get("role", ""))
    services.member_role_set(team=found, user_id=user_id, role=role, by=me(request))
    return redirect("team", slug=slug)


@require_POST
@login_required
@tell_errors
def member_remove(request: HttpRequest, slug: str, user_id: int) -> HttpResponse:
    """Take a member out of the team, or leave it oneself."""
    leaving = user_id == me(request).pk
    found = team_get_for(me(request), slug, need=Verb.READ if leaving else Verb.MANAGE)
    services.member_remove(team=found, user_id=user_id, by=me(request))
    if leaving:
        return redirect("account")
    said = _("The member is out, and all links made so far are dead; make a new one for whom you want in the team.")
    messages.success(request, said)
    return redirect("team", slug=slug)


@login_required
@never_cache
@tell_errors
def invite(request: HttpRequest, value: str) -> HttpResponse:
    """Ask whether to join the team of a link; join it on POST."""
    if request.method != "POST":
        return render(request, "accounts/invite.html", {"team": tokens.invite_team(value), "value": value})
    joined = tokens.invite_accept(value=value, user=me(request))
    return redirect("team", slug=joined.slug)
