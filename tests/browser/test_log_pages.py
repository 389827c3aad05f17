"""The pages of the search log and of the ledger, filled, at two widths and in both themes."""

import random
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from knowledge.ledger import charge_person
from knowledge.models import Department, Passage, User
from knowledge.models.ledger import Kind
from knowledge.permissions import Access, grant
from retrieval.models import SearchLog
from tests.browser.conftest import Visit
from tests.browser.looking import WIDTHS, look_at
from tests.cast import Cast
from tests.factories import ready_source
from tests.stored_corpus import Corpus


def fill(shelves: Corpus, cast: Cast) -> SearchLog:
    """Log searches of half a year, charge them, and return one with all on its page."""
    draw = random.Random(7)
    granted, viewer = cast.granted.user, cast.superuser.user
    assert granted is not None
    assert viewer is not None
    # Of the two knowledge bases, the viewer may read one.
    grant(shelves.handbook, [Access.SEARCH], to=viewer, actor=None)
    layers = [base.layers.get() for base in (shelves.handbook, shelves.branches)]
    passages = [
        passage
        for number in range(6)
        for passage in Passage.objects.filter(
            source=ready_source(
                f"The rent of house {number} is due in May, with the fee for the lift.",
                layer=layers[number % 2],
                title=f"House rules, part {number}",
            )
        )
    ]
    rows = []
    for number in range(120):
        shown = draw.sample(passages, draw.randint(0, 5))
        status = "not_found"
        if shown:
            status = draw.choice(["found", "found", "partly_found"])
        rows.append(
            SearchLog.objects.create(
                person=granted,
                door=draw.choice(["portal", "api", "turn"]),
                query=f"When is the rent of house {number} due, and who pays the lift?",
                count=5,
                knowledge_bases=[shelves.handbook.pk, shelves.vault.pk],
                layer=shown[0].layer if shown else None,
                fused=[passage.pk for passage in passages],
                rankings={
                    "meaning": [
                        [passage.pk, 0.9 - place / 50, 0]
                        for place, passage in enumerate(passages)
                    ],
                    "keywords": [[passage.pk, 0.4, 1] for passage in passages[:3]],
                },
                reranked={str(passage.pk): 0.7 for passage in shown},
                hits=[
                    {
                        "passage": passage.pk,
                        "ref": passage.document.ref(passage.start, passage.end),
                        "match": "ranked",
                        "score": 0.02,
                        "similarity": 0.86,
                        "rerank_score": 0.7,
                    }
                    for passage in shown
                ],
                returned=len(shown),
                status=status,
                level="high" if status == "found" else "medium",
                basis="rerank",
                confidence=0.81,
                labels=["relaxed"],
                stage_ms={"embed": 11.2, "meaning": 3.1, "keywords": 1.4},
                total_ms=draw.lognormvariate(3.2, 0.6),
                model="intfloat/multilingual-e5-small",
            )
        )
    for row in rows:
        SearchLog.objects.filter(pk=row.pk).update(
            at=timezone.now() - timedelta(days=draw.randint(0, 170))
        )
    for name, price in (("Clinic", "0.02"), ("Economic analysis and research", None)):
        department = Department.objects.create(name=name, token_price=price)
        User.objects.filter(pk=granted.pk).update(department=department)
        charge_person(
            granted.pk, {Kind.SEARCH: 1, Kind.EMBEDDING: 17, Kind.RERANK: 1234567}
        )
    return max(rows, key=lambda row: row.returned)


def addresses(row: SearchLog) -> Iterator[tuple[str, str]]:
    """Yield the pages by name."""
    for name in ("changelist", "charts"):
        yield f"log-{name}", reverse(f"admin:retrieval_searchlog_{name}")
    page = reverse("admin:retrieval_searchlog_change", args=[row.pk])
    yield "log-search", f"{page}?expected={row.hits[0]['ref']}"
    yield "log-replay", reverse("admin:retrieval_searchlog_replay", args=[row.pk])
    yield "ledger", reverse("admin:knowledge_ledgerentry_changelist")
    yield "departments", reverse("admin:knowledge_department_changelist")
    yield "department-add", reverse("admin:knowledge_department_add")


@pytest.mark.req("S2-LOG-01", "R24")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("width", WIDTHS)
def test_the_pages_fit_read_well_and_keep_the_policy(
    visit: Visit, shelves: Corpus, cast: Cast, width: int
) -> None:
    row = fill(shelves, cast)
    page = visit.window(width)
    visit.sign_in(page, cast.superuser.user)
    wrong = [
        flaw
        for name, address in addresses(row)
        for flaw in look_at(page, address, f"admin-{name}", full_page=True)
    ]
    assert not wrong, "\n".join(wrong)
