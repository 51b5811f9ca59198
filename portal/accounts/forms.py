"""Room: portal.accounts. Forms of the account and team pages: they check shape, services check sense."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from portal.accounts.models import Role, Scope, User
from portal.accounts.selectors import teams_of


class TokenForm(forms.Form):
    """A new API token."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"auto_id": "token_%s", **kwargs})

    name = forms.CharField(label=_("What it is for"), max_length=80)
    scopes = forms.MultipleChoiceField(
        label=_("May"), choices=Scope.choices, widget=forms.CheckboxSelectMultiple, initial=[Scope.READ]
    )
    days = forms.TypedChoiceField(
        label=_("Lives for"),
        coerce=int,
        initial=90,
        choices=[(30, _("30 days")), (90, _("90 days")), (365, _("a year")), (0, _("until revoked"))],
    )


class SecretForm(forms.Form):
    """A key for the vault. The value goes in and never comes out."""

    team = forms.ChoiceField(label=_("Team"))
    name = forms.CharField(label=_("Name"), max_length=64, help_text=_("Capital letters, as in ANTHROPIC_KEY"))
    host = forms.CharField(
        label=_("Host"),
        max_length=255,
        required=False,
        help_text=_(
            "The one host it may be sent to, as in api.anthropic.com, with its port where that isn't 443 for https or "
            "80 for http, as in 10.0.0.5:8000. Empty: for tasks, never for a model."
        ),
    )
    value = forms.CharField(
        label=_("Value"),
        max_length=16384,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=_("Sealed at once. Nobody can read it back here, you neither."),
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        # The account page holds several forms with a field `name`: each needs element ids of its own.
        super().__init__(*args, **{"auto_id": "secret_%s", **kwargs})
        field = self.fields["team"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(team.slug, team.shown_name) for team in teams_of(user)]


class TeamForm(forms.Form):
    """A team's name."""

    name = forms.CharField(label=_("Name"), max_length=80)


def role_given(text: str) -> Role:
    """The role a form names; whatever it does not know is a member."""
    return Role.OWNER if text == Role.OWNER else Role.MEMBER
