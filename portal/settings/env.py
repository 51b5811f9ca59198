"""Reading settings from the environment: typed, loud, naming the variable. No Django here."""

import os
from urllib.parse import unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

_MAIL_PORTS = {"smtp": 25, "smtp+tls": 587, "smtps": 465}


def text(name: str, default: str | None = None) -> str:
    """Value of variable `name`; without a default a missing or empty one stops the boot and is named."""
    value = os.environ.get(name, "")
    if value:
        return value
    if default is None:
        raise ImproperlyConfigured(
            f"the environment variable {name} is missing; this settings module has no default for it"
        )
    return default


def integer(name: str, default: int | None = None) -> int:
    """Like `text`, as a whole number."""
    raw = text(name, None if default is None else str(default))
    try:
        return int(raw)
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a whole number, not {raw!r}") from None


def flag(name: str, *, default: bool = False) -> bool:
    """`1`, `true`, `yes`, `on` or `0`, `false`, `no`, `off`; anything else stops the boot."""
    raw = os.environ.get(name, "").strip().lower()
    if not raw:
        return default
    if raw in {"1", "true", "yes", "on"}:
        return True
    if raw in {"0", "false", "no", "off"}:
        return False
    raise ImproperlyConfigured(f"{name} must be true or false, not {raw!r}")


def names(name: str, default: str = "") -> list[str]:
    """Comma-separated list, blanks dropped."""
    return [part.strip() for part in os.environ.get(name, default).split(",") if part.strip()]


def mail(url: str) -> dict[str, object]:
    """Django's settings for mail from `smtp://user:password@host:port`, `smtp+tls://` (STARTTLS), `smtps://` (TLS from
    the first byte), or `file:///folder`: each mail becomes a file there, for an installation without a mail server.
    """
    parts = urlsplit(url)
    if parts.scheme == "file":
        backend = "django.core.mail.backends.filebased.EmailBackend"
        return {"EMAIL_BACKEND": backend, "EMAIL_FILE_PATH": unquote(parts.path)}
    if parts.scheme not in _MAIL_PORTS or not parts.hostname:
        raise ImproperlyConfigured(
            f"MAIL_URL must be smtp://, smtp+tls://, smtps:// and a host, or file:///, not {parts.scheme}://"
        )
    return {
        "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend",
        "EMAIL_HOST": parts.hostname,
        "EMAIL_PORT": parts.port or _MAIL_PORTS[parts.scheme],
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_TLS": parts.scheme == "smtp+tls",
        "EMAIL_USE_SSL": parts.scheme == "smtps",
        "EMAIL_TIMEOUT": 10,
    }


def database(url: str) -> dict[str, object]:
    """Django's DATABASES entry from a `postgresql://user:password@host:port/name?host=/socket/dir` address.

    Connections come from psycopg's pool: Celery closes Django's own connection after every job, whatever
    CONN_MAX_AGE says, and a reconnect per job keeps PostgreSQL busy with nothing else. While PostgreSQL is away the
    pool tries again after 1, 2, 4 ... seconds; `reconnect_timeout` keeps that from growing to minutes.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"postgresql", "postgres"}:
        raise ImproperlyConfigured(f"DATABASE_URL must begin with postgresql://, not {parts.scheme}://")
    query = dict(pair.split("=", 1) for pair in parts.query.split("&") if "=" in pair)
    return {
        "ENGINE": "portal.core.postgres",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(query.get("host", parts.hostname or "")),
        "PORT": query.get("port", str(parts.port or "")),
        "CONN_MAX_AGE": 0,
        "OPTIONS": {
            "pool": {"min_size": 0, "max_size": integer("DATABASE_POOL", 40), "timeout": 30, "reconnect_timeout": 10}
        },
    }
