"""The whole site on one machine with nothing installed but Python: `manage.py up` sets the rest. The default.

Values that `up` chose (ports) reach the processes through the environment; files lie in the instance folder.
"""

import os
import secrets
from pathlib import Path

from portal.settings import env
from portal.settings.base import *  # noqa: F403  a settings module is its names
from portal.settings.base import ROOT
from portal.settings.instance import instance_of

INSTANCE_PATHS = instance_of(ROOT)
INSTANCE = INSTANCE_PATHS.home
DEBUG = False


def _kept(path: Path, make: str | None = None) -> str:
    """Text of a key file; made once when `make` is given. Ends the program in a sentence when that can't be."""
    try:
        if not path.exists() and make is not None:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o711)
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(make)
        return path.read_text().strip() if path.exists() else ""
    except OSError as error:
        fault = f"{path} can't be read or made: {error.strerror}. IB_HOME names the folder of this instance."
        raise SystemExit(fault) from error


SECRET_KEY = _kept(INSTANCE_PATHS.keys / "django_secret", make=secrets.token_urlsafe(50))
ALLOWED_HOSTS = env.names("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
DATABASES = {"default": env.database(env.text("DATABASE_URL", INSTANCE_PATHS.database_url))}
REDIS_URL = env.text("REDIS_URL", INSTANCE_PATHS.redis_url)
CELERY_BROKER_URL = REDIS_URL.replace("unix://", "redis+socket://", 1) if REDIS_URL.startswith("unix://") else REDIS_URL
CACHES = {"default": {"BACKEND": "portal.core.cache.OutlivingCache", "LOCATION": REDIS_URL}}
globals().update(env.mail(env.text("MAIL_URL", f"file://{INSTANCE_PATHS.mail}")))
DEFAULT_FROM_EMAIL = env.text("MAIL_FROM", "innovatorbench@localhost")
BLOBS_URL = env.text("BLOBS_URL", f"file://{INSTANCE_PATHS.blobs}")
TASK_ENV = Path(env.text("TASK_ENV", str(INSTANCE_PATHS.task_env)))
PACKAGES = INSTANCE_PATHS.packages

SITE_KEY_PATH = INSTANCE_PATHS.keys / "site_ed25519.pem"
EVALUATOR_PUBLIC_KEY_PATH = INSTANCE_PATHS.keys / "evaluator_ed25519.pub"
EVALUATOR_RECIPIENT = _kept(INSTANCE_PATHS.keys / "evaluator_age.pub")
VAULT_RECIPIENT = _kept(INSTANCE_PATHS.keys / "vault_age.pub")
# The web process can only seal: `up` gives the identity's path to workers and collector alone.
VAULT_IDENTITY_PATH = Path(os.environ["VAULT_IDENTITY_PATH"]) if os.environ.get("VAULT_IDENTITY_PATH") else None
SHARED_OS_USER = env.flag("SHARED_OS_USER", default=os.geteuid() != 0)
