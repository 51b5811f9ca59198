"""Room: portal.api. Who is asking: `Authorization: Bearer ib_...`; sessions are REST framework's own."""

from typing import Any

from django.utils.translation import gettext_lazy as _
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from portal.accounts.models import ApiToken, User
from portal.accounts.tokens import token_find

_SCHEME = b"bearer"


class TokenAuthentication(BaseAuthentication):
    """A personal API token. A dead or malformed one is an error, never a silent visitor."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        """(user, token) of a living token; None when the request names no token."""
        parts = get_authorization_header(request).split()
        if not parts or parts[0].lower() != _SCHEME:
            return None
        if len(parts) != 2:
            raise AuthenticationFailed(_("The Authorization header must read: Bearer ib_..."))
        token = token_find(parts[1].decode("latin-1"))
        if token is None:
            raise AuthenticationFailed(_("This API token is not valid: unknown, expired or revoked."))
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        """Makes refusals 401 and not 403."""
        return "Bearer"


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # registers itself when made
    """How the OpenAPI description names it."""

    target_class = TokenAuthentication
    name = "tokenAuth"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        """A bearer token, as OpenAPI says it."""
        return {"type": "http", "scheme": "bearer", "description": "An API token (ib_...) of the account page."}
