"""The web process's entry point."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "strata_portal.settings")
# Only the web process serves many requests at once, so only it pools its
# connections and ends a query that a reader has long given up on. A worker forks,
# and a pool's threads do not survive a fork.
os.environ.setdefault("STRATA_DATABASE_POOL", "true")
os.environ.setdefault("STRATA_STATEMENT_TIMEOUT_MS", "10000")

from django.core.asgi import get_asgi_application

from strata_portal.bodies import bounded

application = bounded(get_asgi_application())
