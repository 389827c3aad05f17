"""The branches, each by itself, on the real PostgreSQL."""

import random
import unicodedata
from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from knowledge.codes import code_keys
from knowledge.models import Passage, Source
from knowledge.permissions import Reader
from knowledge.terms import content_words, index_terms, read_query, words
from retrieval.branches import by_codes, by_keywords, by_meaning, cosines
from retrieval.fusion import Candidate
from retrieval.reach import Reach
from retrieval.standing import held, look_up
from tests.factories import ready_source
from tests.retrieval.shelf import layer_of, open_space, put, reader_of

pytestmark = pytest.mark.django_db

ALPHABETS = (
    "abcdefghijklmnopqrstuvwxyz",
    "aăâbcdđeêghiklmnoôơpqrstuưvxyáàảãạấầẩẫậắằẳẵặéèẻẽẹếềểễệ",
    "aąbcćdeęfghijklłmnńoóprsśtuwyzźż",
    "aăâbcdefghiîjklmnopqrsștțuvxz",
    "абвгдеёжзийклмнопрстуфхцчшщъыьэюя",
    "0123456789",
    "abc0123456789",
)
SEPARATORS = (" ", " ", " ", "-", "/", ".", ",", "\n", "_", "'", ":", "&", "<", "+")


def found_by(reader: Reader, query: str) -> list[Candidate]:
    """Return what the keyword branch finds."""
    reach = Reach.of(reader, None, {})
    return by_keywords(reach, read_query(query), count=50).candidates


def ids(candidates: list[Candidate]) -> list[int]:
    """Return the passages of a ranking."""
    return [row.passage_id for row in candidates]


# --- Keywords ------------------------------------------------------------------


@pytest.mark.req("S3-HYB-03", "R15")
def test_every_content_word_is_demanded_and_only_else_some() -> None:
    """Grammatical words are not; without a full match the others are marked."""
    layer = layer_of("rules")
    both = put(layer, "The notice period for members is thirty days.")
    one = put(layer, "A notice hangs at the door.")
    reader = reader_of("rules")

    exact = found_by(reader, "what is the notice period")
    assert ids(exact) == [both.pk]
    assert not exact[0].relaxed

    relaxed = found_by(reader, "notice of dismissal")
    assert set(ids(relaxed)) == {both.pk, one.pk}
    assert all(row.relaxed and 0 < row.share < 1 for row in relaxed)


@pytest.mark.parametrize("query", ["notice of dismissal", "notice", "statute moon"])
def test_a_word_is_found_alike_alone_and_with_its_knowledge_base(query: str) -> None:
    """How large the installation is chooses a way, never a result."""
    for slug in ("rules", "elsewhere"):
        layer = layer_of(slug)
        for number in range(6):
            put(layer, f"The statute on notice, paragraph {number} of {slug}.")
        put(layer, "A dismissal has no effect without a notice in writing.")
    reader = reader_of("rules")
    found = []
    for passages in (-1, 0, 1, 7, 1_000_000):
        token = held.set(look_up()._replace(passages=passages))
        found.append(found_by(reader, query))
        held.reset(token)
    assert found[0]
    assert all(each == found[0] for each in found)


def test_relaxed_pass_puts_rare_words_before_frequent_ones() -> None:
    """One word that a single passage holds tells more than one that all hold."""
    layer = layer_of("rules")
    for number in range(8):
        put(layer, f"The statute and its paragraph {number}.")
    rare = put(layer, "A lighthouse stands at the harbour.")
    found = found_by(reader_of("rules"), "statute lighthouse elsewhere")
    assert found[0].passage_id == rare.pk
    assert found[0].share > found[1].share


@pytest.mark.req("S3-HYB-04", "R14")
def test_tone_marks_tell_words_apart() -> None:
    """`đăng` and `dang` are different words."""
    layer = layer_of("forms")
    marked = put(layer, "Phòng đăng ký mở cửa lúc tám giờ.")
    plain = put(layer, "Tau dang cap ben.")
    reader = reader_of("forms")
    assert ids(found_by(reader, "đăng")) == [marked.pk]
    assert ids(found_by(reader, "dang")) == [plain.pk]


@pytest.mark.req("REL-X2", "D23")
def test_composed_and_decomposed_letters_find_the_same() -> None:
    """NFC and NFD of query and text meet; the stored text keeps its form."""
    layer = layer_of("forms")
    text = "Đơn đăng ký thẻ thành viên"
    composed = put(layer, unicodedata.normalize("NFC", text))
    decomposed = put(layer, unicodedata.normalize("NFD", text))
    reader = reader_of("forms")
    for form in ("NFC", "NFD"):
        found = found_by(reader, unicodedata.normalize(form, "đăng ký thẻ"))
        assert set(ids(found)) == {composed.pk, decomposed.pk}
    assert decomposed.text == unicodedata.normalize("NFD", text)


def test_what_ingest_indexes_is_found_by_each_of_its_words() -> None:
    """PostgreSQL's own parser leaves the words of five languages and numbers whole."""
    random_ = random.Random(20261130)

    def word() -> str:
        letters = random_.choice(ALPHABETS)
        made = "".join(random_.choices(letters, k=random_.randint(1, 12)))
        made = random_.choice((str, str.upper, str.title))(made)
        return unicodedata.normalize(random_.choice(("NFC", "NFD")), made)

    indexed, demanded = [], []
    for _number in range(3000):
        parts = [word() for _part in range(random_.randint(1, 6))]
        text = "".join(part + random_.choice(SEPARATORS) for part in parts)
        indexed.append(index_terms("", text))
        demanded.append(" ".join(words(text)))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT i, d FROM unnest(%s::text[], %s::text[]) t (i, d) "
            "WHERE NOT to_tsvector('simple', i) @@ plainto_tsquery('simple', d)"
            "   OR to_tsvector('simple', i) = ''",
            [indexed, demanded],
        )
        assert cursor.fetchall() == []


@pytest.mark.req("REL-X5")
def test_query_syntax_means_nothing() -> None:
    """20,000 strings of metacharacters are words or nothing, never an error."""
    put(layer_of("rules"), "Reserve 100% of the fee for member_one.")
    reader = reader_of("rules")
    random_ = random.Random(5)
    pieces = [*"&|!():*<>'\"\\%_-,;${}[]?/~^@#", "fee", "a", "đ", "QT-07", " ", " OR "]
    queries = [
        "".join(random_.choices(pieces, k=random_.randint(1, 12)))
        for _number in range(20_000)
    ]
    texts = [" ".join(content_words(query, ())) for query in queries]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(plainto_tsquery('simple', t)) FROM unnest(%s::text[]) t",
            [texts],
        )
        assert cursor.fetchone() == (20_000,)
    for query in (*queries[:150], "'" * 1000, "%", "_", "\\", "the and of"):
        found_by(reader, query)
    assert found_by(reader, "%") == []
    assert found_by(reader, "the and of") == []


def test_words_that_very_many_passages_hold_are_still_counted() -> None:
    """A word past the limit of look-ups is judged on the candidates of rarer ones."""
    layer = layer_of("large")
    source = ready_source("common words here", layer=layer)
    model = source.passages.get()
    Passage.objects.bulk_create(
        [
            Passage(
                knowledge_base_id=model.knowledge_base_id,
                layer_id=model.layer_id,
                source=source,
                document=model.document,
                ordinal=number,
                start=0,
                end=5,
                text="common",
                line_start=1,
                line_end=1,
                terms="common" if number % 100 else "common lantern",
                embedded_sha256="0" * 64,
            )
            for number in range(1, 1301)
        ]
    )
    alone = put(layer, "A lantern.")
    found = found_by(reader_of("large"), "common lantern zeppelin")
    assert found[13].passage_id == alone.pk
    assert found[12].share > found[13].share > found[14].share > 0


@pytest.mark.req("REL-A4")
def test_hidden_passages_change_no_keyword_score() -> None:
    """Rarity is counted over the reader's own passages."""
    layer = layer_of("mine")
    for text in ("apple pear", "apple plum", "quince"):
        put(layer, text)
    reader = reader_of("mine")
    before = found_by(reader, "apple quince melon")
    other = layer_of("theirs")
    for number in range(30):
        put(other, f"quince melon {number}")
    off = put(layer, "melon melon quince", enabled=False)
    assert found_by(reader, "apple quince melon") == before
    assert off.pk not in ids(before)


@pytest.mark.req("S2-LNG-01")
@pytest.mark.parametrize(
    ("exact", "other", "query"),
    [
        ("The fee is due today.", "The fees are due.", "fee due"),
        ("Wniosek o pożyczki składa członek.", "Każda pożyczka to umowa.", "pożyczki"),
        ("Contractul se semnează.", "Două contracte au fost.", "contractul"),
        ("Условия договора ясны.", "Этот договор подписан.", "договора"),
    ],
)
def test_other_forms_of_a_word_are_found_after_the_word(
    exact: str, other: str, query: str
) -> None:
    """A stem is a full match, ranked below the exact form."""
    layer = layer_of("forms")
    second, first = put(layer, other), put(layer, exact)
    found = found_by(reader_of("forms"), query)
    assert ids(found) == [first.pk, second.pk]
    assert not any(row.relaxed for row in found)


@pytest.mark.req("S3-LNG-01", "S3-HYB-04")
def test_syllables_that_make_a_word_count_together() -> None:
    """`đăng ký` (register) is not `đăng` (post) and `ký` (sign) apart."""
    layer = layer_of("forms")
    apart = put(layer, "Báo đăng tin rồi giám đốc ký giấy ở quầy ba.")
    together = put(layer, "Khách hàng đăng ký thẻ ở quầy ba cùng giám đốc.")
    assert ids(found_by(reader_of("forms"), "đăng ký ở đâu")) == [together.pk, apart.pk]


@pytest.mark.req("R15")
def test_a_passage_may_hold_nothing_but_syllables_side_by_side() -> None:
    """`về việc` is two function words, and as neighbours something of the query."""
    layer = layer_of("forms")
    words = [put(layer, "Tài khoản đã mở."), put(layer, "Người đó phải trả.")]
    pair = put(layer, "Trang này nói về việc khác.")
    found = found_by(reader_of("forms"), "về việc tài người")
    shares = {row.passage_id: row.share for row in found}
    assert shares[pair.pk] == 0
    assert all(0 < shares[each.pk] < 1 for each in words)


@pytest.mark.req("D8")
def test_a_title_is_found_and_a_text_that_says_it_too_comes_first() -> None:
    """The context counts as words of the passage, once each."""
    layer = layer_of("forms")
    title = put(layer, "It is paid monthly in advance.", title="Locker rent")
    both = put(layer, "The locker rent is due.", title="Locker rent")
    assert ids(found_by(reader_of("forms"), "locker rent")) == [both.pk, title.pk]


@pytest.mark.req("R14", "S3-HYB-04")
def test_a_layer_may_match_without_accents_and_says_so() -> None:
    """Only its own passages are found that way, below and marked."""
    polish = layer_of("forms", "polish")
    polish.languages, polish.matches_without_accents = ["pl"], True
    polish.save()
    other = layer_of("forms", "other")
    marked = put(polish, "Każda pożyczka to umowa.")
    exact = put(other, "Kazda pozyczka to umowa.")
    put(other, "Inna pożyczka to też umowa.")
    reader = reader_of("forms")
    found = found_by(reader, "pozyczka")
    assert [(row.passage_id, row.without_accents) for row in found] == [
        (exact.pk, False),
        (marked.pk, True),
    ]
    relaxed = found_by(reader, "pozyczka nieznana")
    assert {(row.passage_id, row.without_accents) for row in relaxed} == {
        (exact.pk, False),
        (marked.pk, True),
    }


@pytest.mark.req("R14")
def test_vietnamese_is_never_matched_without_its_marks() -> None:
    layer = layer_of("forms")
    layer.matches_without_accents = True
    with pytest.raises(ValidationError, match="Take Vietnamese out of its languages"):
        layer.validate_constraints()
    with pytest.raises(IntegrityError), transaction.atomic():
        layer.save()


# --- Codes ---------------------------------------------------------------------


@pytest.mark.req("S3-HYB-05")
def test_codes_are_found_literally_and_only_when_asked_for() -> None:
    """`QT-07` finds its passages, however it is written; a plain word fires nothing."""
    layer = layer_of("forms")
    one = put(layer, "Form QT-07 is handed in at the counter.")
    two = put(layer, "Forms QT-07 and QT-08 belong together.")
    put(layer, "Form QT-17 is another one.")
    reach = Reach.of(reader_of("forms"), None, {})

    def found(query: str) -> list[tuple[int, float]]:
        rows = by_codes(reach, code_keys(query), count=50)
        return [(row.passage_id, row.score) for row in rows]

    assert found("where is QT-07") == [(one.pk, 1), (two.pk, 1)]
    assert found("qt07 with QT-08") == [(two.pk, 2), (one.pk, 1)]
    assert found("form and counter") == []


@pytest.mark.req("S3-HYB-05")
def test_a_part_of_a_code_finds_the_few_that_have_it() -> None:
    """Where one bears the part as its whole code, the others stay out."""
    layer = layer_of("forms")
    longer = put(layer, "Message pacs.008.001.08 moves the money.")
    reach = Reach.of(reader_of("forms"), None, {})

    def found() -> list[tuple[int, float]]:
        rows = by_codes(reach, code_keys("what is pacs.008"), count=50)
        return [(row.passage_id, row.score) for row in rows]

    assert found() == [(longer.pk, 0.5)]
    whole = put(layer, "pacs008 is a credit transfer.")
    assert found() == [(whole.pk, 1)]
    for number in range(25):
        put(layer, f"Form AB-{number:02}/2026 is new.")
    assert by_codes(reach, code_keys("AB-03"), count=50)
    assert by_codes(reach, ["pacs008", "ab"], count=50)[0].passage_id == whole.pk


# --- Meaning -------------------------------------------------------------------


@pytest.mark.req("S1-EMB-01", "S1-HYB-04")
def test_nearest_come_first_with_their_cosine() -> None:
    """The score is the raw cosine; a passage without a vector is not compared."""
    space = open_space()
    layer = layer_of("rules")
    near = put(layer, "near", [1, 0, 0, 0])
    far = put(layer, "far", [0.6, 0.8, 0, 0])
    without = put(layer, "without a vector")
    reach = Reach.of(reader_of("rules"), None, {})
    found = by_meaning(reach, space, (1.0, 0.0, 0.0, 0.0), count=10)
    assert ids(found) == [near.pk, far.pk]
    assert [row.score for row in found] == pytest.approx([1.0, 0.6])
    assert cosines(space, [far.pk, without.pk], (1.0, 0.0, 0.0, 0.0)) == {
        far.pk: pytest.approx(0.6)
    }


# --- All of them ---------------------------------------------------------------


@pytest.mark.req("S2-ING-10", "S2-VIS-01", "R22")
@pytest.mark.parametrize(
    "hide",
    [
        {"enabled": False},
        {"expires_at": timezone.now() - timedelta(minutes=1)},
    ],
    ids=["off", "expired"],
)
def test_switch_and_expiry_are_part_of_each_query(hide: dict[str, object]) -> None:
    """A source that is off or expired is in no branch, from the next query on."""
    space = open_space()
    layer = layer_of("rules")
    seen = put(layer, "Fee QT-07", [1, 0, 0, 0])
    gone = put(layer, "Fee QT-07 again", [1, 0, 0, 0])
    reach = Reach.of(reader_of("rules"), None, {})

    def all_branches() -> list[set[int]]:
        return [
            set(ids(by_keywords(reach, read_query("fee"), count=50).candidates)),
            set(ids(by_codes(reach, ["qt07"], count=50))),
            set(ids(by_meaning(reach, space, (1.0, 0.0, 0.0, 0.0), count=50))),
        ]

    assert all_branches() == [{seen.pk, gone.pk}] * 3
    Source.objects.filter(pk=gone.source_id).update(**hide)
    assert all_branches() == [{seen.pk}] * 3


@pytest.mark.req("S1-ING-04", "S3-VIS-01")
def test_layers_and_metadata_are_part_of_each_query() -> None:
    """Values are compared as strings, and a filter costs no rows."""
    space = open_space()
    main, archive = layer_of("rules"), layer_of("rules", "archive")
    first = put(main, "Fee QT-07", [1, 0, 0, 0])
    second = put(archive, "Fee QT-07 of old", [1, 0, 0, 0])
    other = put(layer_of("other"), "Fee QT-07 elsewhere", [1, 0, 0, 0])
    Passage.objects.filter(pk__in=[first.pk, other.pk]).update(metadata={"page": "3"})
    Passage.objects.filter(pk=second.pk).update(metadata={"page": "30"})
    reader = reader_of("rules")
    cases = [
        (Reach.of(reader, None, {}), {first.pk, second.pk}),
        (Reach.of(reader, frozenset({archive.pk}), {}), {second.pk}),
        (Reach.of(reader, None, {"page": "3"}), {first.pk}),
        (Reach.of(reader, frozenset({archive.pk}), {"page": "3"}), set()),
        (Reach.of(reader, frozenset({other.layer_id}), {}), set()),
    ]
    for reach, expected in cases:
        assert (
            set(ids(by_keywords(reach, read_query("fee"), count=50).candidates))
            == expected
        )
        assert set(ids(by_codes(reach, ["qt07"], count=50))) == expected
        near = by_meaning(reach, space, (1.0, 0.0, 0.0, 0.0), count=50)
        assert set(ids(near)) == expected
