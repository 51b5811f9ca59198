"""Room: portal.api. One's own account: who am I, tokens, the vault's names."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.accounts.selectors import secrets_for, team_of, teams_of, tokens_of
from portal.accounts.tokens import token_create, token_revoke
from portal.accounts.vault import secret_delete, secret_put
from portal.api.answers import answers
from portal.api.run_answers import (
    AccountAnswer,
    NodesAnswer,
    SecretLine,
    SecretsAnswer,
    TokenMade,
    TokensAnswer,
)
from portal.api.scopes import ADMIN, ScopeRequired, user_of
from portal.api.shapes import SecretWish, TokenWish
from portal.core.errors import Missing
from portal.core.secrets import Secret
from portal.nodes.selectors import nodes_list_for
from portal.submissions.quota import quota_of


class Account(APIView):
    """Who is asking."""

    permission_classes = (ScopeRequired,)
    private = True

    @extend_schema(responses=answers(AccountAnswer, 401), operation_id="account")
    def get(self, request: Request) -> Response:
        """Name, teams, and what is left of the quota."""
        quota = quota_of(team_of(user_of(request)))
        teams = [{"slug": team.slug, "name": team.shown_name} for team in teams_of(user_of(request))]
        left = {"limit": quota.limit, "left": quota.left, "next_at": quota.next_at}
        return Response({"username": user_of(request).get_username(), "teams": teams, "quota": left})


class TokenList(APIView):
    """API tokens."""

    permission_classes = (ScopeRequired,)
    private, reads, acts = True, ADMIN, ADMIN

    @extend_schema(responses=answers(TokensAnswer, 401, 403), operation_id="tokens")
    def get(self, request: Request) -> Response:
        """Names, scopes and last use; never a value."""
        plain = ("id", "name", "scopes", "expires_at", "last_used_at")
        rows = [{name: getattr(row, name) for name in plain} for row in tokens_of(user_of(request))]
        return Response({"tokens": rows})

    @extend_schema(
        request=TokenWish, responses=answers(TokenMade, 400, 401, 403, status=201), operation_id="token_create"
    )
    def post(self, request: Request) -> Response:
        """A new token; its value is in this answer and nowhere else."""
        shape = TokenWish(data=request.data)
        shape.is_valid(raise_exception=True)
        made = token_create(user=user_of(request), **shape.validated_data)
        shown = {name: getattr(made.token, name) for name in ("id", "name", "expires_at")}
        return Response({**shown, "value": made.value.reveal()}, status=201)


class TokenDetail(APIView):
    """One API token."""

    permission_classes = (ScopeRequired,)
    private, acts = True, ADMIN

    @extend_schema(responses=answers(None, 401, 403, 404, status=204), operation_id="token_revoke")
    def delete(self, request: Request, token_id: int) -> Response:
        """End it."""
        token_revoke(user=user_of(request), token_id=token_id)
        return Response(status=204)


class SecretList(APIView):
    """The vault of one's personal team."""

    permission_classes = (ScopeRequired,)
    private, reads, acts = True, ADMIN, ADMIN

    @extend_schema(responses=answers(SecretsAnswer, 401, 403), operation_id="secrets")
    def get(self, request: Request) -> Response:
        """Names, hosts and last use; never a value."""
        rows = secrets_for(request.user, team_of(user_of(request)))
        return Response(
            {"secrets": [{"name": row.name, "host": row.host, "last_used_at": row.last_used_at} for row in rows]}
        )


class SecretDetail(APIView):
    """One secret, write-only."""

    permission_classes = (ScopeRequired,)
    private, reads, acts = True, ADMIN, ADMIN

    @extend_schema(responses=answers(SecretLine, 401, 403, 404), operation_id="secret")
    def get(self, request: Request, name: str) -> Response:
        """Its host and last use; never its value."""
        for row in secrets_for(request.user, team_of(user_of(request))):
            if row.name == name:
                return Response({"name": row.name, "host": row.host, "last_used_at": row.last_used_at})
        raise Missing(thing="secret", name=name)

    @extend_schema(request=SecretWish, responses=answers(None, 400, 401, 403, status=204), operation_id="secret_put")
    def put(self, request: Request, name: str) -> Response:
        """Store or replace it."""
        shape = SecretWish(data=request.data)
        shape.is_valid(raise_exception=True)
        value = Secret(shape.validated_data["value"])
        host = shape.validated_data["host"]
        secret_put(team=team_of(user_of(request)), name=name, value=value, host=host, by=user_of(request))
        return Response(status=204)

    @extend_schema(responses=answers(None, 401, 403, 404, status=204), operation_id="secret_delete")
    def delete(self, request: Request, name: str) -> Response:
        """Forget it."""
        team = team_of(user_of(request))
        for row in secrets_for(request.user, team):
            if row.name == name:
                secret_delete(team=team, secret_id=row.id, by=user_of(request))
                return Response(status=204)
        raise Missing(thing="secret", name=name)


class NodeList(APIView):
    """Machines one may see."""

    permission_classes = (ScopeRequired,)
    private = True

    @extend_schema(responses=answers(NodesAnswer, 401), operation_id="nodes")
    def get(self, request: Request) -> Response:
        """Name, state, size; never an address or a key."""
        rows = [
            {"name": node.name, "state": node.state, "gpus": node.gpus, "cpus": node.cpus, "level": node.level or None}
            for node in nodes_list_for(request.user)
        ]
        return Response({"nodes": rows})
