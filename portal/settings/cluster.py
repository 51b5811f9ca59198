"""Settings of an installation on several machines. No defaults: a missing value stops the boot and is named."""

from pathlib import Path

from portal.settings import env
from portal.settings.base import *  # noqa: F403  a settings module is its names

DEBUG = False
INSTANCE = Path(env.text("INSTANCE"))
SECRET_KEY = env.text("SECRET_KEY")
ALLOWED_HOSTS = [name.strip() for name in env.text("ALLOWED_HOSTS").split(",")]
CSRF_TRUSTED_ORIGINS = [f"https://{name}" for name in ALLOWED_HOSTS]
DATABASES = {"default": env.database(env.text("DATABASE_URL"))}
REDIS_URL = env.text("REDIS_URL")
CELERY_BROKER_URL = REDIS_URL
CACHES = {"default": {"BACKEND": "portal.core.cache.OutlivingCache", "LOCATION": REDIS_URL}}
globals().update(env.mail(env.text("MAIL_URL")))
DEFAULT_FROM_EMAIL = env.text("MAIL_FROM")
BLOBS_URL = env.text("BLOBS_URL")
TASK_ENV = Path(env.text("TASK_ENV"))
PACKAGES = Path(env.text("PACKAGES"))
SITE_KEY_PATH = Path(env.text("SITE_KEY_PATH"))
EVALUATOR_PUBLIC_KEY_PATH = Path(env.text("EVALUATOR_PUBLIC_KEY_PATH"))
EVALUATOR_RECIPIENT = env.text("EVALUATOR_RECIPIENT")
VAULT_RECIPIENT = env.text("VAULT_RECIPIENT")
VAULT_IDENTITY_PATH = Path(env.text("VAULT_IDENTITY_PATH")) if env.flag("OPENS_VAULT") else None
SHARED_OS_USER = False
SECURE_SSL_REDIRECT = True
env.integer("PROXIES")  # read in `base`; a cluster has to say it
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_HSTS_SECONDS = 31_536_000
SESSION_COOKIE_SECURE = True
CSRF_COOKIE_SECURE = True
