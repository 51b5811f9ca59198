"""Room: portal.accounts. allauth's doors for signing up and in, with our rule of when two names are one (names.py)."""

from typing import Any

from allauth.account.adapter import get_adapter
from allauth.account.forms import LoginForm, SignupForm
from allauth.account.views import LoginView, SignupView
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse

from portal.accounts.names import name_hold, plain, users_called


class TakenMeanwhile(Exception):
    """Name or address were free when the form was checked, and are not any more."""


class SignUpForm(SignupForm):  # type: ignore[misc]  # allauth has no types
    """A new account: its name is kept in one way of writing and is nobody else's in any."""

    def clean_username(self) -> str:
        """The name as it is kept, checked as it is kept: the plain form may be longer than what was typed."""
        self.cleaned_data["username"] = plain(self.cleaned_data["username"])
        name: str = super().clean_username()
        if users_called(name):
            raise get_adapter().validation_error("username_taken")
        return name

    def try_save(self, request: HttpRequest) -> Any:
        """User, address and team, or nothing. Raises TakenMeanwhile."""
        name = self.cleaned_data["username"]
        try:
            with transaction.atomic():
                name_hold(name)
                if users_called(name):
                    raise TakenMeanwhile
                return super().try_save(request)
        except IntegrityError as error:
            raise TakenMeanwhile from error


class SignUp(SignupView):  # type: ignore[misc]  # allauth has no types
    """The sign-up page."""

    form_class = SignUpForm

    def form_valid(self, form: SignUpForm) -> HttpResponse:
        """Signed up and in; or the form again, which says by now what is taken."""
        try:
            answer: HttpResponse = super().form_valid(form)
        except TakenMeanwhile:
            form.full_clean()
            answer = self.form_invalid(form)
        return answer


class SignInForm(LoginForm):  # type: ignore[misc]  # allauth has no types
    """Signing in by the name however it is typed; the database itself sees through ASCII's case alone."""

    def clean_login(self) -> str:
        """What was typed, or the name of the only user whom it means."""
        typed: str = super().clean_login()
        meant = () if "@" in typed else users_called(typed)
        return meant[0].username if len(meant) == 1 else typed


class SignIn(LoginView):  # type: ignore[misc]  # allauth has no types
    """The sign-in page."""

    form_class = SignInForm
