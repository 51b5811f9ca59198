"""Room: portal.accounts. Who is at the door: the signed-in person of a request, and of a session's key."""

from importlib import import_module
from typing import cast

from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from django.utils.crypto import constant_time_compare

from portal.accounts.models import User


def me(request: HttpRequest) -> User:
    """The person whose request this is. Only for doors with `login_required`."""
    return cast(User, request.user)


def person_of_session(key: str) -> User | AnonymousUser:
    """Who is signed in under a session's key now: a visitor once that session or that person has ended, or the password
    was changed. Unlike Django's `get_user` it never writes: there may be no answer that could carry a new key.
    """
    if not key.isalnum():  # what the site never gave out, and what the database might refuse
        return AnonymousUser()
    session = import_module(settings.SESSION_ENGINE).SessionStore(key)
    user = User.objects.filter(pk=session.get(SESSION_KEY), is_active=True).first()
    if user is None:
        return AnonymousUser()
    given = session.get(HASH_SESSION_KEY, "")
    sound = (user.get_session_auth_hash(), *user.get_session_auth_fallback_hash())
    return user if any(constant_time_compare(given, one) for one in sound) else AnonymousUser()
