"""Did you mean: only what passages within reach say."""

import pytest

from knowledge.models import Source
from knowledge.terms import read_query
from retrieval.branches import by_keywords
from retrieval.reach import Reach
from retrieval.spelling import is_near, suggest, with_marks
from tests.retrieval.shelf import layer_of, put, reader_of


def suggested(query: str, *slugs: str) -> str:
    """Return what a reader of some knowledge bases is asked."""
    reach = Reach.of(reader_of(*slugs), None, {})
    unknown = by_keywords(reach, read_query(query), count=5).unknown
    return suggest(reach, query, unknown=unknown)


@pytest.mark.django_db
@pytest.mark.req("R14", "S3-HYB-04")
def test_words_without_marks_get_those_of_the_corpus() -> None:
    layer = layer_of("forms")
    put(layer, "Thành viên đăng ký thẻ tại quầy, bảng tin đang treo ở cửa.")
    put(layer, "Każda pożyczka to umowa.")
    assert suggested("Dang ky the", "forms") == "Đăng ký thẻ"
    assert suggested("pozyczka dla członka", "forms") == "pożyczka dla członka"
    # Both are words that stand there so.
    assert suggested("umowa", "forms") == ""


@pytest.mark.django_db
@pytest.mark.req("R14")
def test_plain_words_that_stand_there_so_are_left() -> None:
    layer = layer_of("forms")
    put(layer, "Đăng ký thẻ ở quầy.")
    put(layer, "The dang ky of the ship.")
    assert suggested("dang ky", "forms") == ""


@pytest.mark.django_db
@pytest.mark.req("R14")
def test_one_wrong_letter_is_corrected() -> None:
    put(layer_of("forms"), "The statute names the auditor.")
    assert suggested("Statuet of the auditor", "forms") == "Statute of the auditor"
    assert suggested("qtatute auditor", "forms") == "statute auditor"
    assert suggested("elephant", "forms") == ""


@pytest.mark.django_db
@pytest.mark.req("R14", "S2-VIS-01", "REL-A4")
def test_nothing_is_suggested_from_what_a_reader_may_not_see() -> None:
    """Not of another knowledge base, nor of a source that is off."""
    put(layer_of("forms"), "Plain words only.")
    put(layer_of("theirs"), "Każda pożyczka to umowa o zwrot.")
    hidden = put(layer_of("forms"), "Każda pożyczka to umowa o zwrot.", enabled=False)
    for query in ("pozyczka", "umova"):
        assert suggested(query, "forms") == ""
    Source.objects.filter(pk=hidden.source_id).update(enabled=True)
    assert suggested("pozyczka", "forms") == "pożyczka"
    assert suggested("umova", "forms") == "umowa"


@pytest.mark.parametrize(
    ("word", "other", "near"),
    [
        ("statuet", "statute", True),
        ("statte", "statute", True),
        ("statutes", "statute", True),
        ("stature", "statute", True),
        ("statute", "statute", False),
        ("statist", "statute", False),
    ],
)
def test_one_letter_is_near(word: str, other: str, near: bool) -> None:  # noqa: FBT001
    assert is_near(word, other) is near


@pytest.mark.django_db
@pytest.mark.req("R14")
def test_a_question_without_marks_is_read_with_those_of_the_passages() -> None:
    layer = layer_of("forms")
    put(layer, "Każda pożyczka to umowa o zwrot.")
    put(layer, "The café lends Zażółć books.")
    reach = Reach.of(reader_of("forms"), None, {})
    assert with_marks(reach, "Czym jest pozyczka?") == "Czym jest pożyczka?"
    # English needs none, and one who types marks typed them all.
    assert with_marks(reach, "What is a pozyczka in the cafe?") == ""
    assert with_marks(reach, "Czym jest pozyczka dla członka?") == ""
    assert with_marks(reach, "Czym jest umowa?") == ""
