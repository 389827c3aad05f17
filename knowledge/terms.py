"""The words of the keyword branch: what ingest indexes and what a query demands.

Both sides use the tokens of `words()`, joined by single spaces. They hold letters
and digits only, so PostgreSQL's parser, which splits `QT-07`, paths and dotted
names in ways of its own, leaves each of them whole under the `simple`
configuration. Marks that belong to a letter are kept: `đăng` is not `dang`.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise

from snowballstemmer.english_stemmer import EnglishStemmer
from snowballstemmer.polish_stemmer import PolishStemmer
from snowballstemmer.romanian_stemmer import RomanianStemmer
from snowballstemmer.russian_stemmer import RussianStemmer

from knowledge.language import language_of
from knowledge.sanitizing import strip_invisible

# Raised whenever `index_terms` gives other terms for the same text; passages of an
# older version are written anew in the background.
TERMS_VERSION = 1
# PostgreSQL refuses lexemes of more than 2 kB.
MAX_WORD_LENGTH = 64
LANGUAGES = ("en", "vi", "pl", "ro", "ru")

# Folding case turns this letter into "ss", so no word of any text holds it, and yet
# PostgreSQL takes it for a letter: what begins with it is a lexeme of another kind.
STEM = "ß"
UNMARKED = "ßß"
BARE = "ßßß"

_STEMMERS = {
    "en": EnglishStemmer(),
    "pl": PolishStemmer(),
    "ro": RomanianStemmer(),
    "ru": RussianStemmer(),
}
_STEMMING = threading.Lock()
# Letters that Unicode does not take apart.
_PLAIN = {"đ": "d", "ł": "l", "ø": "o", "ß": "ss"}
_LETTERS_OF_THEIR_OWN = frozenset("й")

_WORD = re.compile(r"[^\W_]+")
_SPOKEN_WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*")

_ENGLISH = """
a about above after again all also am an and any are as at be because been before
being below between both but by can could did do does doing down during each either
else few for from further had has have having he her here hers herself him himself his
how i if in into is it its itself just may me might more most must my myself neither
no nor not of off on once only or other our ours ourselves out over own per same shall
she should so some such than that the their theirs them themselves then there these
they this those through to too under until up upon us very was we were what when where
whether which while who whom whose why will with within without would you your yours
yourself yourselves s t re ve ll d m don doesn didn isn aren wasn weren
"""
_VIETNAMESE = """
ai à ấy bao bằng bị bởi các cái càng chỉ chiếc cho chứ chưa có còn cùng cũng cả của cứ
do dù dưới đã đang đâu để đến đều đi đó được gì giữa hay hãy hoặc hơn không khi kia là
lại lên loại luôn mà mấy mỗi mọi một nào này nên nếu ngay nhau nhưng nhiêu những như ơi
ở phải qua quá ra rằng rất rồi sao sau sẽ sự ta tại theo thế thì thôi trên trong trước
từ từng tuy và vào vẫn vậy về vì việc với vừa xuống nhé nhỉ ạ tôi bạn họ nó chúng mình
"""
_POLISH = """
a aby albo ale ani az aż bardzo bez bo był była było były być będzie będą bym by byś
choć ci cię co czy czyli czego czemu czym dla do dlaczego gdy gdyż gdzie go i ich ile
im inne inny innych ja jak jaka jaką jaki jakie jakich jakiej jakim jakimi jako jego
jej jest jestem jeszcze jeśli jeżeli już każda każde każdy kiedy kim kogo komu która
którą które którego której którym którymi których któremu który którzy kto lecz lub ma
mają może mogą można mnie mi mną mu my na nad nam nami nas nasz nasza nasze nie niech
nich nim nimi niej nią niego o od oraz on ona one oni ono po pod podczas ponieważ poza
przed przez przy są sam się sobie swoja swoje swój ta tak taki takie także tam te tego
tej temu ten też to tobie tu ty tylko tych tym tymi tę tą u w wam was we według wy z za
ze zaś że żeby
"""
_ROMANIAN = """
a acea aceasta această aceea acei aceia acel acela acelea acest acesta aceste acestea
acestei acestor acestui acești aceștia ai aia al ale alt altă alte alți am anume ar are
asta astfel ași asupra au avea avem aveți aș atunci că căci când care căror cărora
cărei cărui căruia cât câtă câte câți ce cea cei cel cele celor ceva chiar cine cu cui
cum că dacă dar de deci deși decât din dintre după e ea ei el ele era erau este eu
există fi fie fiecare fiind fost iar îi îl îmi în înainte între întru își îți la le li
lor lui mai mea mei mele meu mi ne nici nimic noastră noastre noi nostru noștri nu o
odată or ori orice oricare pe pentru peste poate pot prea prin printr puțin sa sale sau
să său săi se și sub sunt spre tot toată toate toți totuși trebuie tu un una unde unei
unele unii unor unui unul va voi vor voastră vostru vouă vă
"""
_RUSSIAN = """
а без бы был была были было быть в вам вами вас весь во вот все всё всего всей всем
всех вы где да для до его ее её ей ему если есть еще ещё же за и из или им ими их к как
какая какие какими каких каким какого какое какой какому какую ко когда кого кому
которая которого которое которой котором которому которую которые который которым
которыми которых кто куда ли либо между меня мне мной может могут мой можно мы на над
нам нами нас наш наша наше наши не него нее неё ней нем нём нему нет ни ними них но ну
о об обо однако он она они оно от очень перед по под почему при про с сам сама само
сами свой своя свои со та так также такая такие такой такого там те тем то тоже того
той только том тому ту тут ты у уже чего чей чем через что чтобы чья эта эти этим этих
это этого этой этом этому этот эту я является являются
"""
_LISTS = {
    "en": frozenset(_ENGLISH.split()),
    "vi": frozenset(_VIETNAMESE.split()),
    "pl": frozenset(_POLISH.split()),
    "ro": frozenset(_ROMANIAN.split()),
    "ru": frozenset(_RUSSIAN.split()),
}
FUNCTION_WORDS = frozenset().union(*_LISTS.values())
# The share of a question's words that have to speak for its language.
LEAST_SPOKEN = 0.1

_LETTERS = {
    "vi": re.compile("[ăâđêôơưạ-ỹ]"),
    "pl": re.compile("[ąćęłńśźż]"),
    "ro": re.compile("[ăâîșțşţ]"),
    "ru": re.compile("[а-яё]"),
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """A content word of a query, and the lexemes that stand in for it.

    `stems` are lexemes of its stem in each language that it may be of, `bare` the
    lexeme of its form without accents (R14).
    """

    word: str
    stems: tuple[str, ...] = ()
    bare: str = ""


@dataclass(frozen=True, slots=True)
class KeywordQuery:
    """What the keyword branch looks for.

    `words` are demanded of every match. `compounds` are lexemes of the Vietnamese words
    that two syllables may make, `neighbours` content words of other languages that
    stand side by side in the query; both only lift what holds them.
    """

    words: tuple[Wanted, ...]
    compounds: tuple[str, ...] = ()
    neighbours: tuple[tuple[str, str], ...] = ()


def words(text: str) -> list[str]:
    """Return the words of a text in order: compatibility-composed and casefolded."""
    text = unicodedata.normalize("NFKC", strip_invisible(text)).casefold()
    text = unicodedata.normalize("NFKC", text)
    if not text.isascii():
        # Marks without a composed form (Russian stress, a dot from a Turkish
        # capital) would split a word; composed letters are not touched.
        text = "".join(c for c in text if not unicodedata.category(c).startswith("M"))
    return [word[:MAX_WORD_LENGTH] for word in _WORD.findall(text)]


# --- What is stored ------------------------------------------------------------


def index_terms(
    context: str,
    text: str,
    *,
    languages: Collection[str] = LANGUAGES,
    document_language: str = "",
    without_accents: bool = False,
) -> str:
    """Return what is stored for the keyword branch.

    First the words of both texts in order, which alone are exact matches; then lexemes
    of other kinds, each as often as its word: stems; for Vietnamese two neighbouring
    syllables as one; the forms without accents, as whose spelling the marked words can
    be suggested; and, where a layer matches without accents, those that are matched.

    `languages` are those of the layer; `document_language` is believed where the text
    itself tells no language.
    """
    found = [*words(context), *words(text)]
    language = language_of(text, languages) or document_language
    if not language and "en" in languages and text.isascii():
        language = "en"
    made = list(found)
    if language in _STEMMERS:
        made += [
            stem_lexeme(language, word)
            for word in found
            if word not in _LISTS[language] and is_inflected(word)
        ]
    if language == "vi":
        made += [compound_lexeme(*pair) for pair in pairwise(found)]
    # Once each is enough for what is looked up and never ranked.
    distinct = dict.fromkeys(found)
    made += [UNMARKED + without_marks(word) for word in distinct if has_marks(word)]
    if without_accents:
        made += [BARE + without_marks(word) for word in found]
    return " ".join(made)


def is_inflected(word: str) -> bool:
    """Tell whether a word can have endings; numbers and codes have none."""
    return len(word) > 2 and word.isalpha()


def stem_lexeme(language: str, word: str) -> str:
    """Return the lexeme of a word's stem, which no word of any text is equal to."""
    return STEM + _stem(language, word)


def compound_lexeme(first: str, second: str) -> str:
    """Return the lexeme of two syllables that stand side by side."""
    return f"{STEM}{first}{STEM}{second}"


@lru_cache(maxsize=100_000)
def _stem(language: str, word: str) -> str:
    # A stemmer keeps the word it works on.
    with _STEMMING:
        stem: str = _STEMMERS[language].stemWord(word)
    return stem


@lru_cache(maxsize=100_000)
def without_marks(word: str) -> str:
    """Return a word in plain letters: `đăng` becomes `dang`; Cyrillic й stays."""
    letters = []
    for letter in word:
        plain = _PLAIN.get(letter)
        if plain is None:
            plain = letter
            if letter not in _LETTERS_OF_THEIR_OWN:
                plain = unicodedata.normalize("NFD", letter)[0]
        letters.append(plain)
    return "".join(letters)


def has_marks(word: str) -> bool:
    """Tell whether a word is another one in plain letters."""
    return not word.isascii() and without_marks(word) != word


# --- What a query looks for ----------------------------------------------------


def read_query(query: str) -> KeywordQuery:
    """Return what the keyword branch looks for."""
    found = words(query)
    spoken = _guess_languages(found, ())
    kept = dict.fromkeys(word for word in found if not _is_function_word(word, spoken))
    pairs = dict.fromkeys(pairwise(found))
    is_vietnamese = "vi" in spoken
    return KeywordQuery(
        words=tuple(
            Wanted(word, stems_of(word, spoken), BARE + without_marks(word))
            for word in kept
        ),
        compounds=tuple(compound_lexeme(*pair) for pair in pairs)
        if is_vietnamese
        else (),
        neighbours=()
        if is_vietnamese
        else tuple(pair for pair in pairs if kept.keys() >= set(pair)),
    )


def content_words(query: str, languages: Sequence[str]) -> list[str]:
    """Return the words that a match must hold, each once, in the query's order.

    Grammatical words are dropped: those with letters of their own always, those in
    plain ASCII only if the query seems to be in their language, since "care" is a
    noun in English and a pronoun in Romanian. `languages` (codes such as "vi")
    breaks ties. Words of any other language are kept.
    """
    found = words(query)
    spoken = _guess_languages(found, languages)
    kept = [word for word in found if not _is_function_word(word, spoken)]
    return list(dict.fromkeys(kept))


def stems_of(word: str, spoken: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """Return the lexemes of a word's stems in each language that it may be of.

    A question and the text that answers it may be of two languages with words in
    common, so the query's own language does not decide.
    """
    if not is_inflected(word) or spoken == {"vi"}:
        return ()
    own = [code for code in _STEMMERS if code != "en" and _LETTERS[code].search(word)]
    languages = own or (["en", "pl", "ro"] if word.isascii() else [])
    return tuple(dict.fromkeys(stem_lexeme(code, word) for code in languages))


def _is_function_word(word: str, spoken: frozenset[str]) -> bool:
    if not word.isascii():
        return word in FUNCTION_WORDS
    return any(word in _LISTS[language] for language in spoken)


def question_language(question: str) -> str:
    """Return the code of the language that a question seems to be in, or "".

    A question is too short for the letters that tell the language of a text: one in
    eight Romanian ones holds none of its own, and "are" is a word there, too. So its
    grammatical words vote, however they are typed, and its letters beside them. Where
    they do not decide, `language_of` does.
    """
    spoken = unicodedata.normalize("NFC", strip_invisible(question)).casefold()
    found = _SPOKEN_WORD.findall(spoken)
    votes = dict.fromkeys(_LISTS, 0.0)
    for word in found:
        lists = _LISTS
        if word.isascii() and word not in FUNCTION_WORDS:
            lists = _bare_lists()
        owners = [code for code, list_ in lists.items() if word in list_]
        for code in owners:
            votes[code] += 1 / len(owners)
        for code, letters in _LETTERS.items():
            votes[code] += letters.search(word) is not None
    leader, second = sorted(votes, key=lambda code: -votes[code])[:2]
    if votes[leader] > votes[second] and votes[leader] >= LEAST_SPOKEN * len(found):
        return leader
    return language_of(question, LANGUAGES)


def passage_language(text: str, context: str) -> str:
    """Return the code of the language that a passage seems to be in, or "".

    Where its own text is too short to tell, as an answer of one word is, the title and
    headings above it do, which are the first line of its context.
    """
    above = context.partition("\n")[0]
    return language_of(text, LANGUAGES) or question_language(above)


@cache
def _bare_lists() -> dict[str, frozenset[str]]:
    """Return the grammatical words as people type them without accents."""
    return {
        code: frozenset(without_marks(word) for word in list_)
        for code, list_ in _LISTS.items()
    }


def _guess_languages(found: Sequence[str], languages: Sequence[str]) -> frozenset[str]:
    """Return the language of the query, and others that it is clearly mixed with."""
    scores = dict.fromkeys(_LISTS, 0.0)
    for word in found:
        owners = [language for language in _LISTS if word in _LISTS[language]]
        for language in owners:
            scores[language] += 1 / len(owners)
        for language, letters in _LETTERS.items():
            if letters.search(word):
                scores[language] += 0.5
    best = max(scores.values())
    if best == 0:
        return frozenset()
    leader = max(scores, key=lambda code: (scores[code], code in languages))
    others = {
        code
        for code in _LISTS
        if sum(1 for w in found if w in _LISTS[code] and w not in _LISTS[leader]) > 1
    }
    return frozenset({leader, *others})
