"""The staff's pages of what was learned and of what people say of answers."""

from uuid import uuid4

import pytest

from knowledge.actions import move_source
from knowledge.models import AuditEntry
from knowledge.models.token import TokenKind
from knowledge.permissions import grant
from retrieval.models import Feedback, LearnedItem, LearningSignal, SearchLog
from retrieval.models.learning import ItemState
from tests.cast import BOTH, Cast, with_token
from tests.factories import StaffFactory, ready_source
from tests.retrieval.api.test_turns import post
from tests.stored_corpus import Corpus

pytestmark = pytest.mark.django_db

LIST = "/admin/retrieval/learneditem/"


def learned(shelves: Corpus, term: str = "block") -> LearnedItem:
    """Return a synonym of the handbook with a signal of its own and one of more."""
    layer = shelves.handbook.layers.get()
    item = LearnedItem.objects.create(
        kind="synonym", key=term, term=term, value=["freeze"], layer=layer,
        knowledge_base_ids=[layer.knowledge_base_id], origin="reworded", seen=2,
        digest=term.ljust(64, "0"),
    )  # fmt: skip
    for bases, word in (
        ([shelves.handbook.pk], "plain"),
        ([shelves.handbook.pk, shelves.vault.pk], "hidden"),
    ):
        rows = [
            SearchLog.objects.create(
                door="portal", count=5, status="found", query=f"{word} {each}",
                knowledge_bases=bases, interaction_id=uuid4(),
            )
            for each in ("block", "freeze")
        ]  # fmt: skip
        item.evidence.add(
            LearningSignal.objects.create(
                kind="reworded", first=rows[0].interaction_id,
                second=rows[1].interaction_id, knowledge_base_ids=bases, at=rows[0].at,
            )
        )  # fmt: skip
    return item


@pytest.mark.req("S1-LRN-07", "S3-VIS-01")
def test_item_shows_its_evidence_as_far_as_one_works_on_it(
    shelves: Corpus, cast: Cast
) -> None:
    """Words that were asked over more are not shown; that they were is."""
    item = learned(shelves)
    client = cast.editor.client()
    assert "Questions with “block”" in client.get(LIST).content.decode()
    page = client.get(f"{LIST}{item.pk}/").content.decode()
    assert "plain block" in page
    assert "hidden block" not in page
    assert "Asked over other knowledge bases too" in page
    assert "block" not in cast.other_staff.client().get(LIST).content.decode()


@pytest.mark.req("S1-LRN-08")
def test_item_is_switched_off_pinned_and_removed(shelves: Corpus, cast: Cast) -> None:
    """Each act is audited; another act, or another's item, is refused."""
    item = learned(shelves)
    path = f"{LIST}{item.pk}/"
    client = cast.editor.client()
    for act, state, pinned in (
        ("off", ItemState.OFF, False),
        ("pin", ItemState.ON, True),
        ("unpin", ItemState.ON, False),
        ("remove", ItemState.REMOVED, False),
        ("on", ItemState.REMOVED, False),
        ("restore", ItemState.OFF, False),
        ("on", ItemState.ON, False),
    ):
        assert client.post(path, {"act": act}).status_code == 302
        item.refresh_from_db()
        assert (item.state, item.is_pinned) == (state, pinned)
        assert client.get(path).status_code == 200
    assert AuditEntry.objects.filter(target_type="learneditem").count() == 6
    assert client.post(path, {"act": "dance"}).status_code == 404
    assert cast.other_staff.client().post(path, {"act": "off"}).status_code == 404
    for show in ("synonym", "rewrite", "removed"):
        assert client.get(f"{LIST}?show={show}").status_code == 200
    assert client.get(f"{LIST}?show=all").status_code == 404


@pytest.mark.req("S1-LRN-08")
def test_reset_says_what_it_means_and_does_it(shelves: Corpus, cast: Cast) -> None:
    """A layer at a time, or all of it by a superuser who says so."""
    layer = shelves.handbook.layers.get()
    learned(shelves)
    assert (
        cast.editor.client().post(f"{LIST}reset/", {"layer": layer.pk}).status_code
        == 403
    )
    client = cast.superuser.client()
    page = client.get(LIST).content.decode()
    assert "keeps the history" in page
    assert "stored without a layer are not reached" in page
    assert "nothing seen before comes back" in page
    assert client.post(f"{LIST}reset/", {"layer": "0"}).status_code == 404
    client.post(f"{LIST}reset/", {"layer": layer.pk})
    assert not LearnedItem.objects.exists()
    assert LearningSignal.objects.count() == 2
    learned(shelves, "lost")
    client.post(f"{LIST}reset/", {"layer": "all"})
    assert LearnedItem.objects.exists()
    client.post(f"{LIST}reset/", {"layer": "all", "sure": "yes"})
    assert not LearningSignal.objects.exists()
    assert AuditEntry.objects.filter(verb="reset learning").count() == 2


@pytest.mark.req("S1-LRN-08")
def test_a_program_resets_what_its_person_may(shelves: Corpus, cast: Cast) -> None:
    """Within the token's scope, a layer at a time; everything without one."""
    manager = StaffFactory(groups=["Administrator"])
    grant(shelves.handbook, BOTH, to=manager, actor=None)
    grant(shelves.branches, BOTH, to=manager, actor=None)
    own = with_token("own", manager, bases=[shelves.handbook])
    agent = with_token("agent", manager, kind=TokenKind.AGENT_CLIENT)
    boss, every = cast.superuser.user, {"everything": True}
    learned(shelves)
    for actor, body, status in (
        (own, {"layer": "branches/main"}, 400),
        (own, {"layer": "vault/main"}, 400),
        (own, {"layer": "main"}, 400),
        (own, {}, 400),
        (own, {"layer": "handbook/main", **every}, 400),
        (own, every, 403),
        (agent, {"layer": "handbook/main"}, 403),
        (with_token("some", boss, bases=[shelves.handbook]), every, 403),
        (cast.editor, {"layer": "handbook/main"}, 403),
    ):
        answer = post(actor.client(), "/api/v1/learning/reset", body)
        assert answer.status_code == status, (actor.name, body)
        assert LearnedItem.objects.exists()
    answer = post(own.client(), "/api/v1/learning/reset", {"layer": "handbook/main"})
    assert answer.json() == {"status": "ok", "removed": 1}
    assert LearningSignal.objects.count() == 2
    post(with_token("all", boss).client(), "/api/v1/learning/reset", every)
    assert not LearningSignal.objects.exists()
    entry = AuditEntry.objects.filter(verb="reset learning").earliest("pk")
    assert entry.actor == manager


@pytest.mark.req("S1-FBK-02", "S3-VIS-01")
def test_ratings_are_counted_by_passage_and_source(shelves: Corpus, cast: Cast) -> None:
    """For who works on them; words of answers that rest on more are not shown."""
    source = ready_source("The berth is five.", layer=shelves.handbook.layers.get())
    passage = source.passages.get()
    for worth, bases in (
        ("wrong", [shelves.handbook.pk]),
        ("useful", [shelves.handbook.pk, shelves.vault.pk]),
    ):
        row = Feedback.objects.create(
            interaction_id=uuid4(), is_helpful=False, comment=f"It is {worth}.",
            reasons=["wrong"], knowledge_base_ids=bases,
        )  # fmt: skip
        row.passages.create(
            worth=worth, source=source,
            ref=passage.document.ref(passage.start, passage.end),
            revision=passage.document.number,
        )  # fmt: skip
    path = "/admin/retrieval/feedback/"
    client = cast.editor.client()
    for by in ("", "sources"):
        page = client.get(path, {"by": by}).content.decode()
        assert page.count('<td class="number">1</td>') == 2
    assert "The berth is five." in client.get(path).content.decode()
    answers = client.get(path, {"by": "answers"}).content.decode()
    assert "It is wrong." in answers
    assert "It is useful." not in answers
    # Asked over more than the answer rests on: the question is not theirs to read.
    key = Feedback.objects.get(comment="It is wrong.").interaction_id
    log = SearchLog.objects.create(
        door="portal", count=5, status="found", query="What of the berth?",
        knowledge_bases=[shelves.handbook.pk, shelves.vault.pk], interaction_id=key,
    )  # fmt: skip
    by = {"by": "answers"}
    assert "What of the berth?" not in client.get(path, by).content.decode()
    SearchLog.objects.filter(pk=log.pk).update(knowledge_bases=[shelves.handbook.pk])
    assert "What of the berth?" in client.get(path, by).content.decode()
    assert client.get(path, {"by": "moons"}).status_code == 404
    empty = cast.other_staff.client().get(path).content.decode()
    assert "Nothing was rated yet" in empty
    # A rating goes where its source goes.
    move_source(source, layer=shelves.vault.layers.get(), actor=None)
    for by in ("", "sources"):
        assert "Nothing was rated yet" in client.get(path, {"by": by}).content.decode()
        page = cast.superuser.client().get(path, {"by": by}).content.decode()
        assert "vault/main" in page
