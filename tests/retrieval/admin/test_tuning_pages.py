"""The settings page: who may, what it refuses, its history and the check before."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import Settings

from knowledge.models import AuditEntry, User
from knowledge.permissions import Access, grant
from retrieval.exchange import Line
from retrieval.measuring import carry_out, import_lines
from retrieval.models import QuestionSet, SetRun, TuningProposal, TuningRecord
from retrieval.results import Basis
from retrieval.search import search
from retrieval.tuning import current, values_of
from tests.cast import Cast
from tests.factories import StaffFactory
from tests.retrieval.shelf import MODEL, layer_of, open_space, put, reader_of

pytestmark = pytest.mark.django_db
PAGE = "admin:retrieval_tuningrecord_changelist"
RENT = "The rent is due on the third of May."
EAST = (1.0, 0.0, 0.0, 0.0)


@pytest.fixture
def boss() -> User:
    """An administrator, who may change the settings."""
    person: User = StaffFactory(username="boss", groups=["Administrator"])
    return person


@pytest.fixture
def client(boss: User) -> Client:
    """The administrator's browser."""
    client = Client()
    client.force_login(boss)
    return client


def entered(**changes: object) -> dict[str, object]:
    """Return the form as a browser sends it, with these changes."""
    values: dict[str, Any] = {**values_of(current()), **changes}
    return {name: value for name, value in values.items() if value is not False}


def propose(client: Client, **changes: object) -> TuningProposal:
    answer = client.post(reverse(PAGE), entered(**changes))
    assert answer.status_code == 302
    return TuningProposal.objects.latest("pk")


def question_set_of(boss: User) -> QuestionSet:
    """Return a set of one question that only words find; no model answers."""
    layer = layer_of("leases")
    put(layer, RENT, path="a/rent.md")
    grant(layer.knowledge_base, [Access.SEARCH], to=boss, actor=None)
    made = QuestionSet.objects.create(name="Leases")
    made.knowledge_bases.add(layer.knowledge_base)
    line = Line("rent due", "1", "en", places=({"file": "a/rent.md"},))
    import_lines(made, [line], actor=boss)
    return made


@pytest.mark.req("R3", "S3-HYB-08", "S2-HYB-02")
def test_the_page_says_each_setting_in_words_with_its_default_and_bounds(
    client: Client, settings: Settings
) -> None:
    settings.STRATA_RRF_K = 42
    page = client.get(reverse(PAGE)).content.decode()
    assert "Weight of meaning" in page
    assert "Environment: 42. 1 to 1,000." in page
    assert "Environment: 0.7. 0 to 10." in page
    assert "Least similarity" in page


@pytest.mark.req("S2-HYB-04")
def test_a_weighted_sum_is_called_what_it_is(client: Client) -> None:
    """And without a reranker confidence says that it rests on similarity (R10)."""
    assert "by score: a weighted sum" in client.get(reverse(PAGE)).content.decode()
    layer = layer_of("leases")
    open_space()
    put(layer, RENT, EAST)
    found = search(
        reader_of("leases"), "rent due", query_vector=EAST, query_model=MODEL
    )
    assert found.confidence is not None
    assert found.confidence.basis is Basis.SIMILARITY


@pytest.mark.req("S2-HYB-05")
def test_a_small_corpus_is_told_of_the_search_by_words(client: Client) -> None:
    hint = "searching by words alone often finds as much"
    assert hint not in client.get(reverse(PAGE)).content.decode()
    put(layer_of("leases"), RENT)
    assert hint in client.get(reverse(PAGE)).content.decode()


@pytest.mark.req("R1", "R3")
def test_a_change_is_checked_saved_and_stands_in_the_history(
    client: Client, boss: User
) -> None:
    proposal = propose(client, weight_keywords="0.5", note="More words.")
    assert current().version == 0, "not before it is saved"
    check = reverse("admin:retrieval_tuningrecord_proposal", args=[proposal.pk])
    page = client.get(check).content.decode()
    assert "You keep no question set" in page
    client.post(check)
    assert (current().weights.keywords, current().version) == (0.5, 1)
    page = client.get(reverse(PAGE)).content.decode()
    assert "More words." in page
    assert "set here" in page
    entry = AuditEntry.objects.filter(target_type="tuningrecord").get()
    assert (entry.actor, entry.verb) == (boss, "changed")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"weight_meaning": "0", "weight_keywords": "0", "weight_codes": "0"},
            "weigh nothing",
        ),
        ({"rrf_k": "0"}, "greater than or equal to 1"),
        ({"search_type": "psychic"}, "not one of the available choices"),
        ({"search_count": "many"}, "whole number"),
        ({"weight_meaning": "nan"}, "number"),
        ({}, "hold already"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(
    client: Client, changes: dict[str, object], says: str
) -> None:
    answer = client.post(reverse(PAGE), entered(**changes))
    assert answer.status_code == 200
    assert says in answer.content.decode()
    assert not TuningProposal.objects.exists()


@pytest.mark.req("R3", "S2-LOG-03")
def test_a_change_that_lowers_a_set_is_flagged_and_must_be_confirmed(
    client: Client, boss: User, settings: Settings
) -> None:
    settings.PORTAL_EMBEDS = False
    question_set_of(boss)
    proposal = propose(client, search_type="semantic")
    check = reverse("admin:retrieval_tuningrecord_proposal", args=[proposal.pk])
    # The runs wait for the worker: saving now must be confirmed too.
    assert "not been asked to its end" in client.get(check).content.decode()
    assert client.post(check).status_code == 200
    for run in SetRun.objects.all():
        carry_out(run.pk)
    page = client.get(check).content.decode()
    assert "lower the figures of 1 question set" in page
    assert "0 better, 1 worse, 0 the same" in page
    assert "Confirm it, or go back" in client.post(check).content.decode()
    assert not TuningRecord.objects.exists()
    client.post(check, {"confirmed": "on"})
    assert TuningRecord.objects.get().values == {"search_type": "semantic"}
    entry = AuditEntry.objects.filter(target_type="tuningrecord").get()
    assert entry.detail["lowers"] == ["Leases"]


@pytest.mark.req("R3")
def test_going_back_leads_through_the_same_check(client: Client, boss: User) -> None:
    client.post(
        reverse(
            "admin:retrieval_tuningrecord_proposal",
            args=[propose(client, ask_count="12").pk],
        )
    )
    answer = client.post(reverse("admin:retrieval_tuningrecord_return", args=[0]))
    proposal = TuningProposal.objects.latest("pk")
    assert answer.headers["Location"].endswith(f"/proposal/{proposal.pk}/")
    client.post(answer.headers["Location"])
    assert current().ask_count == 10
    entry = AuditEntry.objects.filter(target_type="tuningrecord").latest("at")
    assert entry.verb == "reverted"
    missing = client.post(
        reverse("admin:retrieval_tuningrecord_return", args=[99]), follow=True
    )
    assert "There is no such version." in missing.content.decode()


@pytest.mark.req("R22")
def test_only_who_has_the_right_changes_the_settings(cast: Cast) -> None:
    editor = cast.editor.client()
    page = editor.get(reverse(PAGE))
    assert page.status_code == 200
    assert "does not change them" in page.content.decode()
    assert editor.post(reverse(PAGE), entered(ask_count="12")).status_code == 403
    back = reverse("admin:retrieval_tuningrecord_return", args=[0])
    assert editor.post(back).status_code == 403
    viewer = Client()
    viewer.force_login(StaffFactory(groups=["Viewer"]))
    assert viewer.get(reverse(PAGE)).status_code == 403
    assert not TuningProposal.objects.exists()


def test_a_proposal_is_its_makers_alone(client: Client) -> None:
    proposal = propose(client, ask_count="12")
    other = Client()
    other.force_login(StaffFactory(groups=["Administrator"]))
    check = reverse("admin:retrieval_tuningrecord_proposal", args=[proposal.pk])
    assert other.get(check).status_code == 404
    assert other.post(check).status_code == 404
