"""Settings common to every way of running the site. `embedded`, `cluster` and `testing` complete them.

Whoever adds a setting gives it a safe value here or reads it in `cluster` without a default: a missing value must
stop the boot, by name, not surface as an error page.
"""

from pathlib import Path

from django.utils.translation import gettext_lazy as _

from portal.settings import env

ROOT = Path(__file__).resolve().parents[2]
# How many proxies of ours write X-Forwarded-For; without one that header is nothing but the client's word, and limits
# by address would be anybody's to step around.
PROXIES = env.integer("PROXIES", 0)
ALLAUTH_TRUSTED_PROXY_COUNT = PROXIES

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "allauth",
    "allauth.account",
    "csp",
    "rest_framework",
    "drf_spectacular",
    "channels",
    "portal.core",
    "portal.accounts",
    "portal.catalog",
    "portal.nodes",
    "runs",
    "portal.submissions",
    "portal.leaderboard",
    "portal.curation",
    "portal.pages",
    "portal.api",
    "portal.apps.PortalConfig",
]
MIDDLEWARE = [
    "portal.core.hosts.host_known",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "csp.middleware.CSPMiddleware",
    "portal.core.bodies.forms_readable",
]
ROOT_URLCONF = "portal.urls"
ASGI_APPLICATION = "portal.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [ROOT / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.debug",
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "django.template.context_processors.i18n",
            ],
        },
    }
]

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
ACCOUNT_LOGIN_METHODS = {"username", "email"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "email*", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_USERNAME_MIN_LENGTH = 3
ACCOUNT_ADAPTER = "portal.accounts.adapter.AccountAdapter"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "home"
LOGIN_URL = "account_login"

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("zh-hans", _("Simplified Chinese"))]
LOCALE_PATHS = [ROOT / "portal" / "locale"]
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"

STATIC_URL = "/static/"
STATICFILES_DIRS = [
    ROOT / "static",
    # Front-end packages as npm installed them, below a prefix of their own; nothing of them is committed.
    *(
        [
            (f"vendor/{name}", str(ROOT / "node_modules" / name))
            for name in (
                "htmx.org/dist",
                "@fontsource/ibm-plex-sans/files",
                "@fontsource/ibm-plex-mono/files",
            )
            if (ROOT / "node_modules" / name).is_dir()
        ]
    ),
]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}

# Static files are served from where they lie, found once at the start: no collect step before the first page.
WHITENOISE_USE_FINDERS = True

SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SAMESITE = "Lax"
X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    }
}
DATA_UPLOAD_MAX_MEMORY_SIZE = 4 * 1024 * 1024

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "portal.api.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticatedOrReadOnly"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["portal.api.parsing.PlainJSONParser"],
    "DEFAULT_THROTTLE_CLASSES": [
        "rest_framework.throttling.AnonRateThrottle",
        "rest_framework.throttling.UserRateThrottle",
    ],
    "DEFAULT_THROTTLE_RATES": {"anon": "600/min", "user": "1200/min"},
    "NUM_PROXIES": PROXIES,
    "EXCEPTION_HANDLER": "portal.api.errors.exception_handler",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "InnovatorBench Portal",
    "VERSION": "1",
    "OAS_VERSION": "3.1.1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1",
}

CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_DEFAULT_QUEUE = "runs"
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# Nothing relies on it: a job that is delivered again finds its run claimed and does nothing.
CELERY_BROKER_TRANSPORT_OPTIONS = {"visibility_timeout": env.integer("BROKER_VISIBILITY_S", 3600)}
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TIMEZONE = "UTC"
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_BEAT_SCHEDULE = {
    "tick": {"task": "runs.jobs.tick_job", "schedule": 0.25, "options": {"expires": 2.0}},
    "outbox": {"task": "runs.jobs.outbox_job", "schedule": 0.5, "options": {"expires": 2.0}},
    "forget": {"task": "runs.jobs.forget_job", "schedule": 3600, "options": {"expires": 3600}},
}

# The engine: how long one slice holds a worker thread, and how long a claim lasts without a heartbeat, in seconds.
SLICE_SECONDS = env.integer("SLICE_SECONDS", 60)
CLAIM_SECONDS = env.integer("CLAIM_SECONDS", 10)
# Submissions a team may queue in any 24 hours.
TEAM_RUNS_PER_DAY = env.integer("TEAM_RUNS_PER_DAY", 40)
# host:port pairs that model clients may reach besides public addresses (the lab's own server, the scripted model).
MODEL_ALLOWED_HOSTS = set(env.names("MODEL_ALLOWED_HOSTS"))
SCRIPTED_URL = env.text("SCRIPTED_URL", "http://127.0.0.1:8099/v1")

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        "celery.beat": {"level": "WARNING"},
        "celery.app.trace": {"level": "WARNING"},
        "celery.worker.strategy": {"level": "WARNING"},
        "httpx": {"level": "WARNING"},
        "httpx2": {"level": "WARNING"},
        "paramiko": {"level": "WARNING"},
        "asyncssh": {"level": "WARNING"},
    },
}
