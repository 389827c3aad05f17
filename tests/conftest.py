"""What tests ask for by name.

- `corpus`: three knowledge bases with real passages and vectors, see
  `tests.stored_corpus`; brings `model` and `db` along. In a test of transactions
  (`transactional_db`, `live_server`) ask for it too: the rows are committed.
- `model`: the settings point to a running model server with the bundled model.
  Without it no model answers, and searches are keyword-only.
- `cast`: the actors of `tests.cast` around the knowledge bases of `corpus`, or around
  three empty ones of the same names where a test does not ask for `corpus`; then no
  model is needed.

Ids of restored rows are below those that a test draws itself; `reset_sequences` would
break that.
"""

from collections.abc import Iterator

import pytest
from django.db import connection
from django.test import override_settings
from pytest_django.fixtures import Settings
from pytest_django.plugin import DjangoDbBlocker

from knowledge.models import KnowledgeBase, Layer
from retrieval import anchor
from retrieval.cache import forget_all
from retrieval.sizes import forget_sizes
from tests.cast import Cast, gather
from tests.stored_corpus import (
    NAMES,
    Corpus,
    StoredCorpus,
    find_corpus,
    store_corpus,
)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests first that may take the longest.

    Begun last, one of them would keep one process busy while the other has nothing left.
    """

    def may_take(item: pytest.Item) -> float:
        marker = item.get_closest_marker("timeout")
        return 0.0 if marker is None else float(marker.args[0])

    items.sort(key=may_take, reverse=True)


@pytest.fixture(autouse=True)
def nothing_kept() -> None:
    """No test is answered from another one's searches: ids and versions come again.

    Nor does it know of another one's receipts.
    """
    forget_all()
    forget_sizes()
    anchor.path().unlink(missing_ok=True)


@pytest.fixture(scope="session")
def django_db_setup(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[None]:
    """The test database, which is dropped at the end whoever is still connected.

    A thread of a server that a test ran may hold a connection a moment longer.
    """
    yield
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


@pytest.fixture
def model(settings: Settings, model_server_url: str) -> str:
    """The address of a model server, set for this test."""
    settings.STRATA_MODEL_URL = model_server_url
    settings.STRATA_QUERY_EMBED_TIMEOUT = 30.0
    return model_server_url


@pytest.fixture(scope="session")
def stored_corpus(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, model_server_url: str
) -> StoredCorpus:
    """The ingested corpus, as rows to copy."""
    with (
        django_db_blocker.unblock(),
        override_settings(STRATA_MODEL_URL=model_server_url),
    ):
        return store_corpus()


@pytest.fixture
def corpus(db: None, model: str, stored_corpus: StoredCorpus) -> Corpus:
    """The corpus, in this test's database."""
    stored_corpus.restore()
    return find_corpus()


@pytest.fixture
def shelves(request: pytest.FixtureRequest, db: None) -> Corpus:
    """The three knowledge bases: the corpus's if the test asks for it, else empty."""
    if "corpus" in request.fixturenames:
        found: Corpus = request.getfixturevalue("corpus")
        return found
    for slug, name in NAMES.items():
        Layer.objects.create(
            knowledge_base=KnowledgeBase.objects.create(name=name, slug=slug),
            name="main",
        )
    return find_corpus()


@pytest.fixture
def cast(shelves: Corpus) -> Cast:
    """Everybody who may knock at a door."""
    return gather(shelves)
