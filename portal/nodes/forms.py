"""Room: portal.nodes. The form that adds a machine: it checks shape, the service checks sense."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from portal.accounts.models import Role, User
from portal.nodes.models import NodeState
from portal.nodes.services import NodeFacts


class SecretArea(forms.Textarea):
    """A text that goes in and never comes out: the form shown again is shown without it."""

    def format_value(self, value: Any) -> None:
        """Nothing, whatever was sent."""


class NodeForm(forms.Form):
    """What an operator says of a machine."""

    owner = forms.ChoiceField(label=_("Whose"))
    name = forms.CharField(label=_("Name"), max_length=60, help_text=_("Small letters, digits and dashes, as in gpu-1"))
    host = forms.CharField(label=_("Host"), max_length=255)
    port = forms.IntegerField(label=_("Port"), min_value=1, max_value=65535, initial=22)
    user = forms.CharField(label=_("User"), max_length=64)
    private_key = forms.CharField(
        label=_("Private key"),
        required=False,
        max_length=16384,
        strip=False,
        widget=SecretArea(attrs={"rows": 4, "autocomplete": "off", "spellcheck": "false"}),
        help_text=_(
            "Sealed at once and never shown again, so paste it anew when this form comes back with a fault. "
            "Empty: one is made, and you put its public half into authorized_keys."
        ),
    )
    host_key = forms.CharField(
        label=_("Host key"),
        required=False,
        max_length=2000,
        help_text=_("As in known_hosts. Empty: the node offers one, and you trust it on its page."),
    )
    workspace_root = forms.CharField(label=_("Folder for runs"), required=False, max_length=255)
    cpus = forms.IntegerField(label=_("Cores"), min_value=1, max_value=4096, initial=1)
    memory_gb = forms.IntegerField(label=_("Memory, GB"), min_value=1, max_value=65536, initial=1)
    gpus = forms.IntegerField(label=_("GPUs"), min_value=0, max_value=64, initial=0)
    gpu_memory_gb = forms.IntegerField(label=_("Memory of a GPU, GB"), min_value=0, max_value=4096, initial=0)
    capacity = forms.IntegerField(label=_("Runs at once"), min_value=1, max_value=1000, initial=1)
    internet = forms.BooleanField(label=_("Runs on it may reach the internet"), required=False)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        owned = user.memberships.filter(role=Role.OWNER, team__deleted_at=None).select_related("team")
        teams = [(m.team.slug, m.team.shown_name) for m in owned]
        field = self.fields["owner"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [("", _("the site's")), *teams] if user.is_staff else teams
        field.required = not user.is_staff

    def facts(self) -> NodeFacts:
        """The values as the service takes them."""
        left_out = {"owner", "private_key", "host_key"}
        return NodeFacts(**{name: value for name, value in self.cleaned_data.items() if name not in left_out})


def state_given(text: str) -> NodeState | None:
    """The state a person may set that a form names; None for any other word."""
    return next((state for state in NodeState if state == text and state != NodeState.LOST), None)
