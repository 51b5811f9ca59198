"""Room: portal.pages. The addresses of the API and the scopes of tokens, as the code has them, for the docs."""

from dataclasses import dataclass
from functools import cache

from django.utils.functional import Promise
from drf_spectacular.generators import SchemaGenerator

from portal.accounts.models import Scope

METHODS = ("get", "post", "put", "patch", "delete")


@dataclass(frozen=True)
class Address:
    """One thing to ask for: method, path, what it does, whether a visitor without a token may."""

    method: str
    path: str
    about: str
    public: bool


@dataclass(frozen=True)
class ScopeDoc:
    """What a token with this scope may do."""

    name: str
    about: str | Promise


@cache
def addresses() -> tuple[Address, ...]:
    """Every address of the API in its own order; made once a process, it depends on the code alone."""
    made = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    paths = made["paths"]
    return tuple(
        Address(
            method=method.upper(),
            path=path,
            about=" ".join(str(asked.get("description", "")).split()),
            public="401" not in asked["responses"],
        )
        for path, by_method in paths.items()
        for method, asked in by_method.items()
        if method in METHODS
    )


def scopes() -> tuple[ScopeDoc, ...]:
    """The scopes that a token may have."""
    return tuple(ScopeDoc(str(value), label) for value, label in Scope.choices)
