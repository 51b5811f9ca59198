"""Room: portal.nodes. Doors of the machines' pages: read input, call one selector or service, shape the answer."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from portal.accounts.people import me
from portal.accounts.permits import demand
from portal.accounts.roles import Thing, Verb
from portal.accounts.selectors import team_get_for
from portal.core.doors import field_fault_into, tell_errors
from portal.core.errors import FieldFault
from portal.core.secrets import Secret
from portal.nodes.asking import node_doctor_ask
from portal.nodes.forms import NodeForm, state_given
from portal.nodes.presenters import node_page
from portal.nodes.selectors import node_get_for, node_row_for, node_rows_for
from portal.nodes.services import node_add, node_state_set, node_trust_host_key


@require_safe
@login_required
def nodes(request: HttpRequest) -> HttpResponse:
    """The machines the reader may see: the site's and those of their teams."""
    return render(request, "nodes/nodes.html", {"rows": node_rows_for(request.user)})


@require_safe
@login_required
@never_cache
def node(request: HttpRequest, name: str) -> HttpResponse:
    """One machine."""
    row = node_row_for(request.user, name)
    return render(request, "nodes/node.html", {"page": node_page(row, request.user)})


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@tell_errors
def add(request: HttpRequest) -> HttpResponse:
    """The form for a machine; what is wrong stands at its field."""
    form = NodeForm(request.POST or None, user=me(request))
    if request.method == "POST" and form.is_valid():
        try:
            return redirect("node", name=_added(request, form))
        except FieldFault as fault:
            field_fault_into(form, fault)
    return render(request, "nodes/add.html", {"form": form}, status=400 if form.errors else 200)


def _added(request: HttpRequest, form: NodeForm) -> str:
    slug = form.cleaned_data["owner"]
    owner = team_get_for(me(request), slug, need=Verb.MANAGE) if slug else None
    demand(me(request), owner, Thing.TEAM_NODE if owner else Thing.SITE_NODE, Verb.MANAGE)
    key = form.cleaned_data["private_key"]
    private_key = Secret(key) if key.strip() else None
    host_key = form.cleaned_data["host_key"]
    made = node_add(facts=form.facts(), by=me(request), owner=owner, private_key=private_key, host_key=host_key)
    return made.name


@require_POST
@login_required
@tell_errors
def trust(request: HttpRequest, name: str) -> HttpResponse:
    """Pin the host key that the page showed."""
    found = node_get_for(request.user, name, need=Verb.MANAGE)
    node_trust_host_key(node=found, host_key=request.POST.get("host_key", ""), by=me(request))
    messages.success(request, _("The key is trusted from now on."))
    return redirect("node", name=name)


@require_POST
@login_required
@tell_errors
def state(request: HttpRequest, name: str) -> HttpResponse:
    """Take a machine into service, drain it, or take it out."""
    found = node_get_for(request.user, name, need=Verb.MANAGE)
    wanted = state_given(request.POST.get("to", ""))
    if wanted is not None:
        node_state_set(node=found, to=wanted, by=me(request))
    return redirect("node", name=name)


@require_POST
@login_required
@tell_errors
def doctor(request: HttpRequest, name: str) -> HttpResponse:
    """Have a worker examine a machine."""
    found = node_get_for(request.user, name, need=Verb.MANAGE)
    node_doctor_ask(node=found, by=me(request))
    messages.success(request, _("A worker examines the node now; look again in a few seconds."))
    return redirect("node", name=name)
