"""The product's settings, in a folder of this test run's own.

Nothing of an installation in the same clone is read or changed, but for the bundled
model, which takes a while to make and is the same for all.
"""

import os
import secrets
import tempfile
from pathlib import Path

# A process that a test starts inherits the run's folder; of several processes that
# share the tests, each has its own.
if os.environ.get("STRATA_TEST_SHARE") != os.environ.get("PYTEST_XDIST_WORKER", ""):
    os.environ["STRATA_TEST_SHARE"] = os.environ.get("PYTEST_XDIST_WORKER", "")
    models = Path(os.environ.get("STRATA_VAR_DIR", "var")).resolve() / "models"
    os.environ.setdefault("STRATA_MODELS_DIR", str(models))
    run = Path(tempfile.mkdtemp(prefix=f"strata-test-{os.getpid()}-"))
    # As root, PostgreSQL runs as another user, who must pass through.
    run.chmod(0o711)
    os.environ["STRATA_TEST_RUN"] = os.environ["STRATA_VAR_DIR"] = str(run)
    os.environ["STRATA_POSTGRES_DURABLE"] = "false"
    os.environ["SECRET_KEY"] = secrets.token_urlsafe(48)
    for name in (
        "STRATA_POSTGRES_DIR",
        "STRATA_MODEL_URL",
        "BASE_URL",
        "ALLOWED_HOSTS",
        "DEBUG",
        # No test asks a real language model.
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
        "QUERY_REWRITE_PROVIDER",
        "QUERY_REWRITE_BASE_URL",
        "QUERY_REWRITE_MODEL",
        "QUERY_REWRITE_API_KEY",
        "STRATA_DRAFTING",
        # No test sends to a real mailbox or a real chat.
        "EMAIL_HOST",
        "STRATA_REPLY_ADDRESS",
        "STRATA_MAIL_HOOK_SECRETS",
        "STRATA_WEBHOOK_HOSTS",
        "STRATA_LOCAL_ONLY",
    ):
        os.environ.pop(name, None)

from strata_portal.settings import *  # noqa: F403
from strata_portal.settings import DATABASES, STORAGES

# Tests of transactions empty every table after them, those of receipts too.
DATABASES["default"]["OPTIONS"]["options"] += " -c strata.may_empty=on"
# Files straight from their folders: a test run collects none.
STORAGES["staticfiles"] = {
    "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
}
WHITENOISE_AUTOREFRESH = True
WHITENOISE_USE_FINDERS = True
# The sign-in of a test need not be slow.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# Where no model server runs for a test, none must answer: not a developer's either. A
# process that a test starts is told the test's own.
STRATA_MODEL_URL = os.environ.get("STRATA_MODEL_URL", "http://127.0.0.1:9")
