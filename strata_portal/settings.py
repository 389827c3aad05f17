"""Every setting of Strata Portal, read from the environment; nonsense is refused.

Django's own settings come first, then the product's, each with what it does.
docs/settings.md lists them for operators.
"""

import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import django_stubs_ext
from django.core.exceptions import ImproperlyConfigured
from psycopg.conninfo import conninfo_to_dict

# Lets classes such as ModelAdmin name their model in brackets, as the types do.
django_stubs_ext.monkeypatch()

BASE_DIR = Path(__file__).resolve().parent.parent
VERSION = "0.1.0"


def env_text(name: str, default: str = "") -> str:
    """Return the variable `name`, or `default` where it is unset or empty."""
    return os.environ.get(name, "").strip() or default


def env_bool(name: str, *, default: bool) -> bool:
    """Return a yes/no variable; any word but true or false is refused."""
    value = env_text(name).lower()
    if not value:
        return default
    if value in {"true", "1", "yes", "on"}:
        return True
    if value in {"false", "0", "no", "off"}:
        return False
    raise ImproperlyConfigured(f"{name} must be true or false, not {value!r}.")


def env_number(name: str, default: float, *, least: float, most: float) -> float:
    """Return a number within its bounds, or refuse to start."""
    value = env_text(name)
    if not value:
        return default
    try:
        number = float(value)
    except ValueError as error:
        raise ImproperlyConfigured(
            f"{name} must be a number, not {value!r}."
        ) from error
    if not least <= number <= most:
        raise ImproperlyConfigured(
            f"{name} must lie between {least:g} and {most:g}, not at {number:g}."
        )
    return number


def env_int(name: str, default: int, *, least: int, most: int) -> int:
    """Return a whole number within its bounds, or refuse to start."""
    number = env_number(name, default, least=least, most=most)
    if number != int(number):
        raise ImproperlyConfigured(f"{name} must be a whole number, not {number:g}.")
    return int(number)


def env_choice(name: str, default: str, choices: set[str]) -> str:
    """Return one of some words, or refuse to start."""
    value = env_text(name, default).lower()
    if value not in choices:
        known = ", ".join(sorted(choices))
        raise ImproperlyConfigured(f"{name} must be one of {known}, not {value!r}.")
    return value


def env_list(name: str, default: list[str] | None = None) -> list[str]:
    """Return a comma-separated variable as a list."""
    value = env_text(name)
    if not value:
        return list(default or [])
    return [part.strip() for part in value.split(",") if part.strip()]


def env_key(name: str) -> str:
    """Return a key that is sent in a header; one that no header can hold is refused.

    The refusal does not repeat it: it may be a real key with a slip in it.
    """
    value = env_text(name)
    if not (value.isascii() and value.isprintable()):
        raise ImproperlyConfigured(f"{name} holds characters that no key has.")
    return value


def env_url(name: str, default: str = "", *, ending: str = "") -> str:
    """Return an http(s) address without a slash at its end, or refuse to start."""
    value = env_text(name, default).rstrip("/")
    if not value:
        return ""
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ImproperlyConfigured(f"{name} must begin with http:// or https://.")
    # Addresses are named in logs and on pages.
    if parts.username is not None or parts.query or parts.fragment:
        raise ImproperlyConfigured(f"{name} must hold an address alone, and no key.")
    if not value.endswith(ending):
        raise ImproperlyConfigured(f"{name} must end in {ending}.")
    return value


# Token vectors are compared in products too small to share among threads, which would
# only wait for each other; numpy asks when it is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

VAR_DIR = Path(env_text("STRATA_VAR_DIR", str(BASE_DIR / "var"))).resolve()


def secret_key() -> str:
    """Return the signing key; an absent, short or example one is refused.

    Whoever holds it can sign the queue's pickles, so it is never defaulted:
    `make run` writes a random one to var/secret_key.
    """
    key = env_text("SECRET_KEY")
    if not key and (VAR_DIR / "secret_key").is_file():
        key = (VAR_DIR / "secret_key").read_text(encoding="ascii").strip()
    if not key:
        raise ImproperlyConfigured(
            "SECRET_KEY is not set. Give it at least 50 random characters, or run "
            "`make run`, which writes one to var/secret_key."
        )
    if len(key) < 50 or len(set(key)) < 10 or key.startswith("django-insecure"):
        raise ImproperlyConfigured(
            "SECRET_KEY is too weak: it needs at least 50 random characters."
        )
    return key


SECRET_KEY = secret_key()
DEBUG = env_bool("DEBUG", default=False)
BASE_URL = env_text(
    "BASE_URL", f"http://127.0.0.1:{env_text('STRATA_WEB_PORT', '8600')}"
)
ALLOWED_HOSTS = env_list("ALLOWED_HOSTS", ["127.0.0.1", "localhost", "[::1]"])
CSRF_TRUSTED_ORIGINS = [BASE_URL] if BASE_URL.startswith("https://") else []

INSTALLED_APPS = [
    "strata_portal.apps.PortalConfig",
    "strata_portal.apps.PortalAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django.contrib.humanize",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "guardian",
    "django_q",
    "knowledge.apps.KnowledgeConfig",
    "retrieval.apps.RetrievalConfig",
    "approvals.apps.ApprovalsConfig",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "strata_portal.middleware.clean_request_middleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "strata_portal.middleware.ViewingMiddleware",
    "strata_portal.middleware.reader_middleware",
]

ROOT_URLCONF = "strata_portal.urls"
ASGI_APPLICATION = "strata_portal.asgi.application"

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "approvals.context.news",
            ],
        },
    },
]


def databases() -> dict[str, dict[str, Any]]:
    """Return DATABASES from DATABASE_URL, or the embedded PostgreSQL's."""
    url = env_text("DATABASE_URL")
    if not url:
        from strata_portal.embedded import database_url

        url = database_url()
    try:
        parts = conninfo_to_dict(url)
    except Exception as error:
        raise ImproperlyConfigured(
            "DATABASE_URL is not a PostgreSQL address. It looks like "
            "postgresql://user:password@host:5432/name."
        ) from error
    timeout = env_int("STRATA_STATEMENT_TIMEOUT_MS", 0, least=0, most=3_600_000)
    options: dict[str, Any] = {
        "options": (
            f"-c statement_timeout={timeout} -c lock_timeout=15000 "
            "-c idle_in_transaction_session_timeout=600000"
        ),
    }
    for name in ("sslmode", "sslrootcert", "connect_timeout"):
        if name in parts:
            options[name] = parts[name]
    pooled = env_bool("STRATA_DATABASE_POOL", default=False)
    if pooled:
        options["pool"] = {
            "min_size": 1,
            "max_size": env_int("STRATA_DATABASE_POOL_SIZE", 12, least=2, most=200),
            "timeout": 5,
        }
    return {
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": parts.get("dbname", "strata"),
            "USER": parts.get("user", ""),
            "PASSWORD": parts.get("password", ""),
            "HOST": parts.get("host", ""),
            "PORT": str(parts.get("port", "")),
            "OPTIONS": options,
            "CONN_HEALTH_CHECKS": not pooled,
            "CONN_MAX_AGE": 0 if pooled else 60,
        }
    }


DATABASES = databases()
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "knowledge.User"
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    # D29: answers about a knowledge base come from our resolver. guardian's own
    # backend ignores denies and is left out on purpose.
    "knowledge.permissions.KnowledgeBaseBackend",
]
ANONYMOUS_USER_NAME = None
GUARDIAN_MONKEY_PATCH_USER = False
GUARDIAN_MONKEY_PATCH_GROUP = False
SILENCED_SYSTEM_CHECKS = ["guardian.W001"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "portal:search"
LOGOUT_REDIRECT_URL = "login"

LANGUAGE_CODE = "en"
LANGUAGES = [
    ("en", "English"),
    ("vi", "Tiếng Việt"),
    ("pl", "Polski"),
    ("ro", "Română"),
    ("ru", "Русский"),
]
LOCALE_PATHS = [BASE_DIR / "strata_portal" / "locale"]
TIME_ZONE = env_text("TIME_ZONE", "UTC")
USE_I18N = True
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = VAR_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
MEDIA_ROOT = VAR_DIR / "media"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}
FILE_UPLOAD_PERMISSIONS = 0o640
FILE_UPLOAD_DIRECTORY_PERMISSIONS = 0o750
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024

secure = BASE_URL.startswith("https://")
SESSION_COOKIE_SECURE = secure
SESSION_COOKIE_HTTPONLY = True
CSRF_COOKIE_SECURE = secure
SECURE_HSTS_SECONDS = 31_536_000 if secure else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = secure
SECURE_HSTS_PRELOAD = secure
SECURE_SSL_REDIRECT = secure
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if secure else None
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "SAMEORIGIN"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'self'"],
        "form-action": ["'self'"],
    }
}

# django-q2 only carries ids (D20). The limits below must keep their order, see
# strata_portal/checks.py: a task that outlives `retry` would be started twice.
Q_CLUSTER: dict[str, Any] = {
    "name": "strata",
    "orm": "default",
    "workers": env_int("STRATA_WORKERS", 2, least=1, most=32),
    "queue_limit": env_int("STRATA_WORKERS", 2, least=1, most=32),
    "timeout": 4 * 3600,
    "retry": 13 * 3600,
    "max_attempts": 1,
    "ack_failures": True,
    "catch_up": False,
    "poll": 0.5,
    "save_limit": 200,
    "recycle": 50,
    # Its table of schedules would be a shell for whoever can write to it.
    "scheduler": False,
}

REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "retrieval.api.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["retrieval.api.permissions.IsActiveReader"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["retrieval.api.parsers.BoundedJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_THROTTLE_CLASSES": ["retrieval.api.throttling.ReaderThrottle"],
    "EXCEPTION_HANDLER": "retrieval.api.errors.handle_error",
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "Strata Portal",
    "DESCRIPTION": "Search the knowledge you may see, and cite it.",
    "VERSION": VERSION,
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["retrieval.api.permissions.IsActiveReader"],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
}

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "strata_portal.logs.OneLineFormatter",
            "format": "{asctime} {levelname} {name}: {message}",
            "style": "{",
        }
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": env_text("LOG_LEVEL", "INFO")},
    # Its lines on each task say nothing that the run's own row does not.
    "loggers": {
        "django-q": {"level": "WARNING"},
        # It tells of every call to the model server, two for each search.
        "httpx": {"level": "WARNING"},
        # uvicorn's own handler would write addresses as they come, tokens included.
        "uvicorn": {"handlers": ["console"], "propagate": False},
        "uvicorn.access": {"handlers": ["console"], "propagate": False},
    },
}

# --- Models (docs/models.md) -------------------------------------------------

# Where the model server answers: ours, or any OpenAI-compatible one.
STRATA_MODEL_PORT = env_int("STRATA_MODEL_PORT", 8601, least=1, most=65535)
STRATA_MODEL_URL = env_text("STRATA_MODEL_URL", f"http://127.0.0.1:{STRATA_MODEL_PORT}")
STRATA_MODEL_KEY = env_text("STRATA_MODEL_KEY")
# What our model server loads: "bundled", a folder, or a hub name; for a foreign
# server, the model name that is sent to it.
STRATA_EMBEDDING_MODEL = env_text("STRATA_EMBEDDING_MODEL", "bundled")
STRATA_MODELS_DIR = Path(env_text("STRATA_MODELS_DIR", str(VAR_DIR / "models")))
# How long a search waits for its query's vector before it answers without (s).
STRATA_QUERY_EMBED_TIMEOUT = env_number(
    "STRATA_QUERY_EMBED_TIMEOUT", 1.5, least=0.1, most=30
)
# False: the server never turns text into vectors; callers send query_vector.
PORTAL_EMBEDS = env_bool("PORTAL_EMBEDS", default=True)

# --- Search (R1, R3, D21) ----------------------------------------------------

STRATA_CANDIDATES = env_int("STRATA_CANDIDATES", 50, least=5, most=500)
STRATA_RRF_K = env_int("STRATA_RRF_K", 60, least=1, most=1000)
STRATA_WEIGHT_MEANING = env_number("STRATA_WEIGHT_MEANING", 0.7, least=0, most=10)
STRATA_WEIGHT_KEYWORDS = env_number("STRATA_WEIGHT_KEYWORDS", 0.3, least=0, most=10)
STRATA_WEIGHT_CODES = env_number("STRATA_WEIGHT_CODES", 1.0, least=0, most=10)
# The weight of keyword hits that only the relaxed (OR) pass found (R15), for a hit that
# holds nearly all of the query; by the square of what it holds it falls to nothing.
STRATA_WEIGHT_RELAXED = env_number("STRATA_WEIGHT_RELAXED", 0.3, least=0, most=10)
HYBRID_KEYWORD_SLOTS = env_int("HYBRID_KEYWORD_SLOTS", 1, least=0, most=10)
# Hits of the meaning branch below this cosine are dropped before fusion (R2);
# -1 is off.
STRATA_SIMILARITY_FLOOR = env_number("STRATA_SIMILARITY_FLOOR", -1, least=-1, most=1)
# Which branches run: hybrid, semantic or lexical (S2-HYB-05), and how their rankings
# become one: rrf or weighted_sum (R1).
STRATA_SEARCH_TYPE = env_choice(
    "STRATA_SEARCH_TYPE", "hybrid", {"hybrid", "semantic", "lexical"}
)
STRATA_FUSION = env_choice("STRATA_FUSION", "rrf", {"rrf", "weighted_sum"})
# Reranking (R10, D11): the bundled model's late interaction, or any CrossEncoder of
# sentence-transformers that RERANKING_MODEL names.
RERANKING_ENABLED = env_bool("RERANKING_ENABLED", default=True)
RERANKING_MODEL = env_text("RERANKING_MODEL")
# Where it is served: our model server, or any with the common form of /v1/rerank.
STRATA_RERANKING_URL = env_text("STRATA_RERANKING_URL", STRATA_MODEL_URL)
STRATA_RERANKING_TIMEOUT = env_number(
    "STRATA_RERANKING_TIMEOUT", 10, least=0.1, most=300
)
STRATA_RERANK_DEPTH = env_int("STRATA_RERANK_DEPTH", 20, least=1, most=200)
# How many tokens of text an answer holds, and so the named sections of a search (S1-ASK-03).
ANSWER_TOKEN_BUDGET = env_int("ANSWER_TOKEN_BUDGET", 1500, least=100, most=100_000)
# What a turn of an agent client may put into its model's context: tokens in all, and
# characters of each passage (R4).
STRATA_TURN_BUDGET = env_int("STRATA_TURN_BUDGET", 6000, least=200, most=1_000_000)
STRATA_TURN_PASSAGE = env_int("STRATA_TURN_PASSAGE", 1600, least=200, most=100_000)
# Up to so many visible passages the meaning branch compares each one (D21).
STRATA_EXACT_LIMIT = env_int("STRATA_EXACT_LIMIT", 50_000, least=0, most=10_000_000)
# A knowledge base with so many passages gets a vector index of its own (D21).
STRATA_INDEX_FROM = env_int("STRATA_INDEX_FROM", 20_000, least=1, most=10_000_000)
# What those indexes are: hnsw finds more of the nearest, ivfflat is built sooner and in
# less memory (R8). Changed, the indexes are made anew by the worker.
STRATA_VECTOR_INDEX = env_choice("STRATA_VECTOR_INDEX", "hnsw", {"hnsw", "ivfflat"})
STRATA_QUERY_MAX_CHARACTERS = env_int(
    "STRATA_QUERY_MAX_CHARACTERS", 1000, least=10, most=100_000
)

# --- Language model (S1-QRW, docs/data-flow.md) --------------------------------

# Rewords a question into several searches; none is asked before this is set up. With
# "anthropic" the key alone does that, with "openai_compatible" address and model do.
QUERY_REWRITE_PROVIDER = env_choice(
    "QUERY_REWRITE_PROVIDER", "anthropic", {"anthropic", "openai_compatible"}
)
ANTHROPIC_API_KEY = env_key("ANTHROPIC_API_KEY")
ANTHROPIC_BASE_URL = env_url("ANTHROPIC_BASE_URL", "https://api.anthropic.com")
# Any endpoint that speaks the OpenAI chat API. OPENAI_API_KEY is not read anywhere, so
# that it cannot be sent there.
QUERY_REWRITE_BASE_URL = env_url("QUERY_REWRITE_BASE_URL", ending="/v1")
QUERY_REWRITE_MODEL = env_text("QUERY_REWRITE_MODEL")
QUERY_REWRITE_API_KEY = env_key("QUERY_REWRITE_API_KEY")
# How long a question waits to be reworded before it is searched as written (s).
QUERY_REWRITE_TIMEOUT = env_number("QUERY_REWRITE_TIMEOUT", 5, least=0.1, most=120)
if QUERY_REWRITE_PROVIDER == "openai_compatible" and not (
    QUERY_REWRITE_BASE_URL and QUERY_REWRITE_MODEL
):
    raise ImproperlyConfigured(
        "QUERY_REWRITE_PROVIDER=openai_compatible needs QUERY_REWRITE_BASE_URL and "
        "QUERY_REWRITE_MODEL."
    )
# True: the same provider also words answers in the portal. It then gets the passages
# that are to answer, which rewording never sends.
STRATA_DRAFTING = env_bool("STRATA_DRAFTING", default=False)
# The model that words them, where it is another one.
STRATA_DRAFTING_MODEL = env_text("STRATA_DRAFTING_MODEL", QUERY_REWRITE_MODEL)
if STRATA_DRAFTING and not (
    ANTHROPIC_API_KEY or QUERY_REWRITE_PROVIDER == "openai_compatible"
):
    raise ImproperlyConfigured(
        "STRATA_DRAFTING needs a provider: set ANTHROPIC_API_KEY, or "
        "QUERY_REWRITE_PROVIDER=openai_compatible with its address and model."
    )
# How long one draft may take (s); after a flag a second one is asked for.
STRATA_DRAFTING_TIMEOUT = env_number("STRATA_DRAFTING_TIMEOUT", 60, least=1, most=600)

# --- Limits (reliability.md section 3) ---------------------------------------

STRATA_MAX_UPLOAD_BYTES = env_int(
    "STRATA_MAX_UPLOAD_BYTES", 50 * 1024 * 1024, least=1, most=2_000_000_000
)
STRATA_MAX_UNPACKED_BYTES = env_int(
    "STRATA_MAX_UNPACKED_BYTES", 200 * 1024 * 1024, least=1, most=8_000_000_000
)
STRATA_MAX_TEXT_BYTES = env_int(
    "STRATA_MAX_TEXT_BYTES", 20_000_000, least=1, most=500_000_000
)
STRATA_MAX_PAGES = env_int("STRATA_MAX_PAGES", 5000, least=1, most=100_000)
STRATA_MAX_PASSAGES = env_int("STRATA_MAX_PASSAGES", 20_000, least=1, most=1_000_000)
STRATA_PARSE_SECONDS = env_int("STRATA_PARSE_SECONDS", 60, least=1, most=3600)
STRATA_PARSE_MEMORY_BYTES = env_int(
    "STRATA_PARSE_MEMORY_BYTES", 1024**3, least=64 * 1024**2, most=64 * 1024**3
)
# Requests a minute for each reader of the API; 0 switches the limit off.
STRATA_API_RATE = env_int("STRATA_API_RATE", 240, least=0, most=1_000_000)
# Days that a replaced revision is kept for refs which searches gave out (D2).
STRATA_KEEP_REVISION_DAYS = env_int(
    "STRATA_KEEP_REVISION_DAYS", 30, least=30, most=36500
)

# After so long, who sees the portal as another person sees it as themselves again (min).
STRATA_VIEW_AS_MINUTES = env_int("STRATA_VIEW_AS_MINUTES", 30, least=1, most=480)

# --- What is kept of searches (R16) -------------------------------------------

# False: nothing is learned from searches, and nothing that was learned is applied.
LEARNING_ENABLED = env_bool("LEARNING_ENABLED", default=True)
# True: questions are kept as typed, bank details included.
LEARNING_STORE_RAW_QUERIES = env_bool("LEARNING_STORE_RAW_QUERIES", default=False)
# Days that the log of searches is kept; then only daily counts are.
STRATA_KEEP_LOG_DAYS = env_int("STRATA_KEEP_LOG_DAYS", 180, least=1, most=36500)

# --- The gate (docs/approvals.md) ------------------------------------------------

# True: whoever writes an answer cannot approve it.
STRATA_FOUR_EYES = env_bool("STRATA_FOUR_EYES", default=False)

# --- Notices of pending questions (docs/notifications.md, docs/data-flow.md) -------

# The mail server; empty, no mail is sent.
EMAIL_HOST = env_text("EMAIL_HOST")
EMAIL_PORT = env_int("EMAIL_PORT", 587, least=1, most=65535)
EMAIL_HOST_USER = env_text("EMAIL_HOST_USER")
EMAIL_HOST_PASSWORD = env_text("EMAIL_HOST_PASSWORD")
# "starttls" and "tls" encrypt; "none" is for a server on this machine.
STRATA_EMAIL_SECURITY = env_choice(
    "STRATA_EMAIL_SECURITY", "starttls", {"starttls", "tls", "none"}
)
DEFAULT_FROM_EMAIL = env_text("DEFAULT_FROM_EMAIL", "strata@localhost")
# Where replies go: a mailbox whose server hands them to /hooks/mail. Each mail adds its
# own sign to it, behind a plus. Empty: mails are not replied to.
STRATA_REPLY_ADDRESS = env_text("STRATA_REPLY_ADDRESS")
# Signs what that server hands over; while it changes, the new and the old one.
STRATA_MAIL_HOOK_SECRETS = env_list("STRATA_MAIL_HOOK_SECRETS")
if not all(
    re.fullmatch(r"whsec_[A-Za-z0-9+/]{32,}={0,2}", each)
    for each in STRATA_MAIL_HOOK_SECRETS
):
    raise ImproperlyConfigured(
        "STRATA_MAIL_HOOK_SECRETS holds what is no secret: each is whsec_ and then at "
        "least 24 random bytes in base64."
    )
# Hosts that signed messages may go to, as host or host:port; empty, none is sent.
STRATA_WEBHOOK_HOSTS = env_list("STRATA_WEBHOOK_HOSTS")
if not all(
    re.fullmatch(r"(?:[\w.-]+|\[[0-9a-fA-F:]+\])(?::[0-9]{1,5})?", each, re.ASCII)
    for each in STRATA_WEBHOOK_HOSTS
):
    raise ImproperlyConfigured(
        "STRATA_WEBHOOK_HOSTS names hosts, each as chat.example.org or "
        "chat.example.org:8443, and no address."
    )
# A question that nobody answered is reminded of after so many days, and again; after
# so many it is told to those who take what grows old.
STRATA_REMIND_DAYS = env_int("STRATA_REMIND_DAYS", 3, least=1, most=365)
STRATA_ESCALATE_DAYS = env_int("STRATA_ESCALATE_DAYS", 7, least=1, most=365)
# How long a message can be replied to (days).
STRATA_REPLY_DAYS = env_int("STRATA_REPLY_DAYS", 30, least=1, most=365)

# --- Worker (D20) ------------------------------------------------------------

# A run whose worker has not reported for so long is taken up by another (s).
STRATA_LEASE_SECONDS = env_int("STRATA_LEASE_SECONDS", 30, least=5, most=3600)
STRATA_INGEST_ATTEMPTS = env_int("STRATA_INGEST_ATTEMPTS", 3, least=1, most=20)
# The worker counts as stuck when its heartbeat is older than this (s).
STRATA_HEARTBEAT_SECONDS = env_int("STRATA_HEARTBEAT_SECONDS", 24, least=5, most=3600)

# --- Privacy (S1-PRV-02, docs/data-flow.md) ------------------------------------

# True: nothing starts while a setting would send content to another machine.
STRATA_LOCAL_ONLY = env_bool("STRATA_LOCAL_ONLY", default=False)
if STRATA_LOCAL_ONLY:
    from retrieval.dataflow import sending_settings

    if sending := sending_settings(globals()):
        raise ImproperlyConfigured(
            "STRATA_LOCAL_ONLY is true, but content would leave this machine by "
            f"{', '.join(sending)}. Point each to this machine (127.0.0.1 or "
            "localhost), or leave it out; see docs/data-flow.md."
        )
