"""The staff's list of receipts: within their scope, and without a word of them."""

import pytest
from django.urls import reverse

from knowledge.models import KnowledgeBase
from knowledge.permissions import Access, Reader, grant
from knowledge.purging import purge_source
from retrieval.models import Receipt
from tests.cast import Cast
from tests.factories import UserFactory
from tests.retrieval.receipts import issued, unguarded
from tests.retrieval.shelf import put
from tests.stored_corpus import Corpus

pytestmark = pytest.mark.django_db
LIST = "admin:retrieval_receipt_changelist"
PAGE = "admin:retrieval_receipt_change"


def receipt_of(*bases: KnowledgeBase) -> Receipt:
    """Return a receipt of a passage in each of some knowledge bases."""
    passages = [
        put(base.layers.get(), f"The harbour of {base.slug} opens at six.")
        for base in bases
    ]
    person = UserFactory()
    for base in bases:
        grant(base, [Access.SEARCH], to=person, actor=None)
    return issued(Reader(person.pk), *passages, draft="It opens at six [S1].")


def test_staff_see_receipts_that_read_only_what_they_work_on(
    shelves: Corpus, cast: Cast
) -> None:
    own = receipt_of(shelves.handbook)
    foreign = receipt_of(shelves.branches)
    both = receipt_of(shelves.handbook, shelves.branches)
    editor = cast.editor.client()
    listed = editor.get(reverse(LIST)).content.decode()
    assert own.public_id in listed
    assert foreign.public_id not in listed
    assert both.public_id not in listed
    assert editor.get(reverse(PAGE, args=[both.pk])).status_code == 404
    grant(
        shelves.branches, [Access.LIST, Access.SEARCH], to=cast.editor.user, actor=None
    )
    assert editor.get(reverse(PAGE, args=[both.pk])).status_code == 200
    found = editor.get(reverse(LIST), {"q": both.public_id}).content.decode()
    assert both.public_id in found
    assert own.public_id not in found


@pytest.mark.req("D27")
def test_the_page_says_that_it_holds_but_no_word_of_it(
    shelves: Corpus, cast: Cast
) -> None:
    receipt = receipt_of(shelves.handbook)
    address = reverse(PAGE, args=[receipt.pk])
    page = cast.superuser.client().get(address).content.decode()
    assert "as it was issued" in page
    assert "harbour" not in page
    assert "opens at six" not in page
    assert "you may not search all" in page
    assert f"/receipts/{receipt.public_id}/" not in page
    page = cast.editor.client().get(address).content.decode()
    assert f"/receipts/{receipt.public_id}/" in page
    assert 'name="_save"' not in page
    source = receipt.reads.get().source
    assert source is not None
    purge_source(source, actor=None)
    assert "as it was issued" in cast.editor.client().get(address).content.decode()
    with unguarded():
        Receipt.objects.filter(pk=receipt.pk).update(signature="0" * 128)
    page = cast.editor.client().get(address).content.decode()
    assert "changed after it was issued" in page


def test_a_receipt_of_a_knowledge_base_that_is_gone_is_the_superusers(
    shelves: Corpus, cast: Cast
) -> None:
    receipt = receipt_of(shelves.handbook)
    shelves.handbook.delete()
    address = reverse(PAGE, args=[receipt.pk])
    assert cast.editor.client().get(address).status_code == 404
    page = cast.superuser.client().get(address)
    assert page.status_code == 200
    assert "gone" in page.content.decode()
