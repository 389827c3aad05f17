"""The search lab: the engine of every door under other settings, and no trace of it."""

import pytest
from django.test import Client
from django.urls import reverse
from django_q.models import OrmQ

from knowledge.models import AuditEntry, User
from knowledge.permissions import Access, grant
from retrieval.models import TuningProposal
from retrieval.search import search
from retrieval.trying import try_search
from retrieval.tuning import Tuning, current, values_of, with_values
from tests.cast import Cast
from tests.factories import StaffFactory, UserFactory
from tests.retrieval.shelf import layer_of, put
from tests.stored_corpus import CANARY, Corpus

pytestmark = pytest.mark.django_db
PAGE = "admin:retrieval_searchlab_changelist"
QUERY = "lost card overdraft"


def sliders(**changes: object) -> dict[str, object]:
    """Return the form as a browser sends it, with these changes."""
    values = {**values_of(current()), **changes}
    return {name: value for name, value in values.items() if value is not False}


@pytest.mark.req("R19", "S1-HYB-02")
def test_the_lab_finds_what_every_door_finds_and_leaves_no_trace(
    corpus: Corpus, cast: Cast
) -> None:
    reader = cast.editor.reader
    tuning = Tuning(reranking=False)
    entries = AuditEntry.objects.count()
    trial = try_search(reader, QUERY, tuning, count=5)
    door = search(reader, QUERY, top_k=5, tuning=tuning)
    assert [hit.ref for hit in trial.result.hits] == [hit.ref for hit in door.hits]
    assert [hit.score for hit in trial.result.hits] == [hit.score for hit in door.hits]
    page = cast.editor.client().get(reverse(PAGE), {"q": QUERY})
    assert page.status_code == 200
    assert (AuditEntry.objects.count(), OrmQ.objects.count()) == (entries, 0)


@pytest.mark.req("R1", "S1-HYB-04")
def test_every_list_stands_beside_the_others_with_ranks_and_scores(
    corpus: Corpus, cast: Cast
) -> None:
    page = cast.editor.client().get(reverse(PAGE), {"q": QUERY}).content.decode()
    for name in ("Meaning", "Words", "Fused", "Reread"):
        assert f'<section class="lab-list" aria-label="{name}">' in page
    assert '<svg class="bumps"' in page
    assert "as before" in page
    part = cast.editor.client().get(reverse(PAGE), {"q": QUERY, "part": "result"})
    assert "<html" not in part.content.decode()
    assert '<svg class="bumps"' in part.content.decode()


def test_a_turned_slider_tells_what_moved(db: None, settings) -> None:
    settings.PORTAL_EMBEDS = False
    layer = layer_of("leases")
    put(layer, "The rent of form QT-07 is due.", path="code.md")
    put(layer, "The rent is due, the rent is high, the rent is rent.", path="words.md")
    person = StaffFactory(groups=["Editor"])
    grant(layer.knowledge_base, [Access.SEARCH], to=person, actor=None)
    client = Client()
    client.force_login(person)
    sent = {"q": "rent QT-07", **sliders(weight_codes="0", weight_relaxed="2")}
    page = client.get(reverse(PAGE), sent).content.decode()
    assert "Weight of codes 1 → 0" in page
    assert "down 1" in page or "as before" in page
    same = client.get(reverse(PAGE), {"q": "rent", **sliders()}).content.decode()
    assert "Against the settings that hold" not in same


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"rrf_k": "0"}, "greater than or equal to 1"),
        (
            {"weight_meaning": "0", "weight_keywords": "0", "weight_codes": "0"},
            "weigh nothing",
        ),
    ],
)
def test_sliders_that_contradict_each_other_are_refused(
    cast: Cast, changes: dict[str, object], says: str
) -> None:
    sent = {"q": "rent", **sliders(**changes)}
    page = cast.editor.client().get(reverse(PAGE), sent).content.decode()
    assert says in page
    assert '<svg class="bumps"' not in page


@pytest.mark.req("REL-A7")
def test_another_persons_view_needs_the_right_and_stays_within_ones_own(
    corpus: Corpus, cast: Cast
) -> None:
    assert isinstance(cast.editor.user, User)
    sent = {"q": "merger", "reader": "insider", **sliders()}
    page = cast.editor.client().get(reverse(PAGE), sent).content.decode()
    assert CANARY not in page.lower()
    assert "Seen as" not in page
    boss = cast.superuser.client()
    own = boss.get(reverse(PAGE), {"q": "merger", **sliders()}).content.decode()
    assert "Nothing was found." in own, "a superuser searches by grants (D27)"
    seen = boss.get(reverse(PAGE), sent).content.decode()
    assert CANARY in seen.lower()
    odd = boss.get(reverse(PAGE), {**sent, "reader": "nobody"}).content.decode()
    assert "no active person" in odd


@pytest.mark.req("R3", "R22")
def test_one_click_takes_the_sliders_to_the_check_of_the_settings(cast: Cast) -> None:
    boss = cast.superuser.client()
    answer = boss.post(reverse(PAGE), sliders(weight_keywords="0.45"))
    proposal = TuningProposal.objects.get()
    assert answer.headers["Location"] == reverse(
        "admin:retrieval_tuningrecord_proposal", args=[proposal.pk]
    )
    assert with_values(current(), proposal.values).weights.keywords == 0.45
    assert current().version == 0
    same = boss.post(reverse(PAGE), sliders())
    assert "hold already" in same.content.decode()
    refused = cast.editor.client().post(reverse(PAGE), sliders(rrf_k="30"))
    assert refused.status_code == 403
    viewer = Client()
    viewer.force_login(StaffFactory(groups=["Viewer"]))
    assert viewer.get(reverse(PAGE)).status_code == 403
    reader = Client()
    reader.force_login(UserFactory())
    assert reader.get(reverse(PAGE)).status_code == 302
