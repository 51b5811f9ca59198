"""Every route of the site, found by walking the URL resolver: what the table of access must cover."""

from collections.abc import Iterator

from django.urls import URLPattern, URLResolver, get_resolver

# Doors of Django's admin and of django-allauth: theirs to test, but each must be known by name.
FOREIGN = ("admin:", "account_")


def routes(resolver: URLResolver | None = None, space: str = "") -> Iterator[tuple[str, URLPattern]]:
    """(full name, pattern) of every leaf; a route without a name goes by its pattern."""
    for found in (resolver or get_resolver()).url_patterns:
        if isinstance(found, URLResolver):
            inner = f"{space}{found.namespace}:" if found.namespace else space
            yield from routes(found, inner)
        else:
            yield f"{space}{found.name or found.pattern}", found


def ours() -> set[str]:
    """Names of all routes that are not the admin's or allauth's."""
    return {name for name, _ in routes() if not name.startswith(FOREIGN)}
