"""Room: runs.agent. What an address of a model may look like, and what of a redirect's may be shown. Pure."""

from urllib.parse import quote, urljoin, urlsplit

from portal.core.keyrules import place_of

MOST_PATH = 200


def address_fault(url: str) -> str | None:
    """Why a text is no address that a model could have; None where it is one."""
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        return f"`{url[:80]}` holds a character that no address has; write it like https://host.example/v1"
    try:
        parts, _port = urlsplit(url), urlsplit(url).port
    except ValueError:
        return f"`{url[:80]}` is no address; write it like https://host.example/v1"
    if parts.username is not None or parts.password is not None:
        return "an address must hold no user name or password; keep the key as a secret and name it in `api_key`"
    try:
        place_of(url)
    except ValueError:
        return f"`{url[:80]}` is no http or https address; write it like https://host.example/v1"
    if parts.query or parts.fragment:
        return "an address must end with its path, without `?` and `#`; put further values into `extra_body`"
    return None


def redirect_goal(url: str, location: str) -> str:
    """Where a redirect of `url` leads, as far as everybody may read it: scheme, host and port, the path only where
    nothing else is new; never a user, a password or a query. Empty where it leads to no web address.
    """
    try:
        goal = urljoin(url, location.strip())
        origins = [f"{urlsplit(each).scheme}://{place_of(each)}" for each in (goal, url)]
        path = quote(urlsplit(goal).path, safe="/%:@+,;=~")[:MOST_PATH]
    except ValueError:
        return ""
    return origins[0] + path if origins[0] == origins[1] else origins[0]
