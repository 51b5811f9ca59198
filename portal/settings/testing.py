"""Settings of the test suite: everything private to one test process. tests/conftest.py starts the servers."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import pyrage
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from portal.settings import env
from portal.settings.base import *  # noqa: F403  a settings module is its names
from portal.settings.base import REST_FRAMEWORK, ROOT
from portal.settings.instance import instance_of

INSTANCE = Path(os.environ.get("IB_TEST_HOME") or Path(tempfile.gettempdir()) / f"ib-test-{os.getuid()}-{os.getpid()}")
DEBUG = False
SECRET_KEY = "only for tests, guards nothing"  # noqa: S105  a test value
ALLOWED_HOSTS = ["testserver", "localhost", "127.0.0.1"]
DATABASES = {"default": env.database(env.text("DATABASE_URL", f"postgresql://portal@/portal?host={INSTANCE / 'run'}"))}
REDIS_URL = env.text("REDIS_URL", f"unix://{INSTANCE / 'run' / 'valkey.sock'}")
CELERY_BROKER_URL = REDIS_URL.replace("unix://", "redis+socket://", 1) if REDIS_URL.startswith("unix://") else REDIS_URL
CACHES = {"default": {"BACKEND": "portal.core.cache.OutlivingCache", "LOCATION": REDIS_URL}}
BLOBS_URL = env.text("BLOBS_URL", f"file://{INSTANCE / 'blobs'}")
TASK_ENV = Path(env.text("TASK_ENV", str(instance_of(ROOT).task_env)))
PACKAGES = INSTANCE / "packages"
SHARED_OS_USER = True
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # speed of the suite, nothing real is hashed
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
REST_FRAMEWORK = {**REST_FRAMEWORK, "DEFAULT_THROTTLE_CLASSES": []}

_keys = INSTANCE / "keys"
_owner = os.getpid()


def _clean() -> None:
    """Leave nothing behind; a forked child leaves its parent's folder alone."""
    if os.getpid() == _owner and "IB_TEST_HOME" not in os.environ:
        shutil.rmtree(INSTANCE, ignore_errors=True)


atexit.register(_clean)


def _key_files() -> tuple[str, str]:
    """Throw-away keys of this process; returns the age recipients of evaluator and vault."""
    _keys.mkdir(parents=True, exist_ok=True, mode=0o700)
    recipients = []
    for name in ("evaluator_age", "vault_age"):
        identity = pyrage.x25519.Identity.generate()
        (_keys / name).write_text(str(identity))
        recipients.append(str(identity.to_public()))
    for name in ("site_ed25519", "evaluator_ed25519"):
        key = Ed25519PrivateKey.generate()
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        (_keys / f"{name}.pem").write_bytes(private)
        (_keys / f"{name}.pub").write_bytes(public)
    return recipients[0], recipients[1]


EVALUATOR_RECIPIENT, VAULT_RECIPIENT = _key_files()
SITE_KEY_PATH = _keys / "site_ed25519.pem"
EVALUATOR_PUBLIC_KEY_PATH = _keys / "evaluator_ed25519.pub"
EVALUATOR_KEY_PATH = _keys / "evaluator_ed25519.pem"
EVALUATOR_IDENTITY_PATH = _keys / "evaluator_age"
VAULT_IDENTITY_PATH = _keys / "vault_age"
