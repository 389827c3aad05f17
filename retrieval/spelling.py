"""Did you mean: the query in the spelling of passages that its reader may see (R14)."""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from knowledge.terms import (
    STEM,
    UNMARKED,
    is_inflected,
    question_language,
    read_query,
    without_marks,
    words,
)
from retrieval.branches import INDEX_ONLY, holding
from retrieval.reach import Reach, Sql, rows_of

# So many words of a query are looked up, and so many passages read for each.
MOST_WORDS = 12
PASSAGES_EACH = 8
# Words so short are another word with one letter changed.
LEAST_LETTERS = 5
MOST_UNKNOWN = 2
PASSAGES_ALIKE = 40
# A form beside the neighbour that it has in the query counts so often.
BESIDE = 10

WORD = re.compile(r"[^\W_]+")


def suggest(reach: Reach, text: str, *, unknown: Collection[str] = ()) -> str:
    """Return a query in the spelling of passages within reach, or "".

    `unknown` are its words that no passage within reach holds.

    Words typed without their marks get those that they have there, in the company of
    the query's other words; unknown words get one letter changed, if one that a passage
    holds comes of it. Only passages of the reach are asked.
    """
    query = unicodedata.normalize("NFC", text)
    found = words(query)[: 4 * MOST_WORDS]
    if reach.is_empty or not found:
        return ""
    better = marked_forms(reach, found)
    if not better:
        better = corrected(reach, query, unknown)
    return respelt(query, better) if better else ""


def with_marks(reach: Reach, question: str) -> str:
    """Return a question that was typed without marks as passages within reach spell it.

    "" where it has marks, is in English, or nothing is to be exchanged.
    """
    if not question.isascii() or question_language(question) == "en":
        return ""
    found = words(question)[: 4 * MOST_WORDS]
    if reach.is_empty or not found:
        return ""
    better = marked_forms(reach, found)
    return respelt(question, better) if better else ""


def respelt(query: str, better: Mapping[str, str]) -> str:
    """Return the query with some of its words exchanged, capitals kept."""

    def exchanged(match: re.Match[str]) -> str:
        given = match[0]
        word = better.get(given.casefold(), "")
        if not word:
            return given
        if given.isupper() and len(given) > 1:
            return word.upper()
        return word.capitalize() if given[0].isupper() else word

    changed = WORD.sub(exchanged, query)
    return changed if changed != query else ""


# --- Marks ---------------------------------------------------------------------


def marked_forms(reach: Reach, found: Sequence[str]) -> dict[str, str]:
    """Return the marked form of words that were typed without their marks.

    A form counts by how often it stands in passages, and much more beside a neighbour
    of the query's. Short words are many words without their marks, so company decides.
    """
    plain = [w for w in dict.fromkeys(found) if w.isascii() and w.isalpha()]
    plain = [w for w in plain if len(w) > 1][:MOST_WORDS]
    marked = passages(reach, [UNMARKED + w for w in plain], PASSAGES_EACH)
    if not marked:
        return {}
    texts = {**marked, **passages(reach, plain, PASSAGES_EACH)}
    bare = [without_marks(word) for word in found]
    votes: dict[str, Counter[str]] = {word: Counter() for word in plain}
    for terms in texts.values():
        count_forms(bare, own_words(terms), votes)
    better = {}
    for word, forms in votes.items():
        best = min(
            forms, key=lambda form: (-forms[form], form != word, form), default=word
        )
        is_sure = forms[best] > BESIDE if len(found) > 1 else False
        is_alone = word not in forms and (len(word) >= LEAST_LETTERS or len(found) == 1)
        if best != word and (is_sure or is_alone):
            better[word] = best
    return better


def count_forms(
    bare: Sequence[str], given: Sequence[str], votes: Mapping[str, Counter[str]]
) -> None:
    """Add the forms that the query's words have in one passage."""
    plain = [without_marks(word) for word in given]
    places: dict[str, list[int]] = {}
    for place, word in enumerate(bare):
        places.setdefault(word, []).append(place)
    for at, word in enumerate(plain):
        if word not in votes:
            continue
        company = max(
            (at > 0 and i > 0 and plain[at - 1] == bare[i - 1])
            + (plain[at + 1 : at + 2] == list(bare[i + 1 : i + 2]) != [])
            for i in places[word]
        )
        votes[word][given[at]] += 1 + BESIDE * company


def own_words(terms: str) -> list[str]:
    """Return the words of a passage's terms, which stand before all else."""
    return terms.partition(f" {STEM}")[0].split()


# --- Letters -------------------------------------------------------------------


def corrected(reach: Reach, query: str, unknown: Collection[str]) -> dict[str, str]:
    """Return words of passages for unknown ones, with one letter changed.

    They are taken from passages that hold all the query's other words, or, where it has
    no other, from some that hold a word of the same beginning.
    """
    asked = [wanted.word for wanted in read_query(query).words][:MOST_WORDS]
    odd = [
        word
        for word in asked
        if word in unknown and len(word) >= LEAST_LETTERS and is_inflected(word)
    ][:MOST_UNKNOWN]
    if not odd:
        return {}
    others = " & ".join(word for word in asked if word not in unknown)
    if not others and len(asked) > 1:
        return {}
    beginning = f"{odd[0][: (len(odd[0]) + 1) // 2]}:*"
    texts = passages(reach, [others or beginning], PASSAGES_ALIKE)
    stock = Counter(word for terms in texts.values() for word in own_words(terms))
    better = {}
    for word in odd:
        alike = [other for other in stock if is_near(word, other)]
        if alike:
            better[word] = min(alike, key=lambda other: (-stock[other], other))
    return better


def is_near(word: str, other: str) -> bool:
    """Tell whether one letter added, left out, changed or swapped makes the other."""
    if abs(len(word) - len(other)) > 1 or word == other:
        return False
    start = 0
    while start < min(len(word), len(other)) and word[start] == other[start]:
        start += 1
    rest, others = word[start:], other[start:]
    return (
        rest[1:] == others[1:]
        or rest[1:] == others
        or rest == others[1:]
        or (rest[:2] == others[1::-1] and rest[2:] == others[2:])
    )


# --- Looking up ----------------------------------------------------------------


def passages(reach: Reach, queries: Sequence[str], each: int) -> dict[int, str]:
    """Return the terms of passages that text searches find, by their ids."""
    matches = holding(reach, "id, terms", "wanted", "wanted")
    rows = rows_of(
        Sql(
            f"""
            SELECT DISTINCT ON (found.id) found.id, found.terms
            FROM unnest(%s::tsquery[]) AS given (wanted)
            CROSS JOIN LATERAL ({matches.text} LIMIT {int(each)}) found
            """,  # noqa: S608
            (list(queries), *matches.params),
        ),
        settings_before=INDEX_ONLY,
    )
    return dict(rows)
