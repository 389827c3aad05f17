"""Names of people in running text, without a model: by title, by word, by list. Pure.

Five languages write them in five ways. A name is known by what stands before it (*Mr*,
*nazywam się*, *anh*), by a given name from Faker's lists, also declined, or by the
form that only people's names have (a Russian patronymic, a Vietnamese surname before
more words in capitals).
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Final

# Whose lists of names are read; Vietnamese ones are closed and stand below.
_LOCALES: Final = ("en_GB", "en_US", "pl_PL", "ro_RO", "ru_RU")


def words(text: str) -> frozenset[str]:
    """Return the words of a list that is written in lines."""
    return frozenset(re.findall(r"[^\W\d_]+", text))


# Common given names that those lists lack.
_MORE_GIVEN: Final = words(
    "agata agnieszka aleksandra alicja aneta anita anna barbara beata bożena dagmara "
    "danuta dominika dorota edyta elżbieta emilia ewa ewelina gabriela grażyna halina "
    "hanna helena irena iwona izabela jadwiga janina joanna jolanta julia justyna "
    "kamila karolina katarzyna kinga klaudia krystyna lidia łucja magdalena małgorzata "
    "maria marta martyna michalina milena monika natalia oliwia patrycja paulina renata "
    "sylwia teresa urszula wanda weronika wiesława wioletta zofia zuzanna adam adrian "
    "andrzej antoni artur bartłomiej bartosz bogdan cezary dariusz dawid dominik "
    "filip grzegorz henryk hubert jacek jakub jan janusz jarosław jerzy józef kamil "
    "karol kazimierz konrad krzysztof leszek łukasz maciej marcin marek mariusz mateusz "
    "michał mieczysław mirosław paweł piotr przemysław rafał robert ryszard sebastian "
    "sławomir stanisław stefan szymon tadeusz tomasz wiesław witold wojciech zbigniew "
    "анна мария елена ольга наталья татьяна ирина светлана екатерина юлия анастасия "
    "дарья галина людмила марина александр дмитрий сергей андрей алексей владимир иван "
    "михаил николай павел пётр петр олег игорь виктор юрий"
)
# Given names that are words, places or months as well: alone they say nothing.
_WORDS: Final = words(
    "amber america angel april art asia august austin autumn bay bill bradford brook "
    "brooklyn candy carol carolina chance charity chase chelsea cherry cheyenne "
    "christian christmas clay cliff cody colt cory crystal daisy dakota dale dallas dan "
    "dawn dean denver destiny diamond dolly drew dom earl eden ernest eve faith fern "
    "florence forest frank gene genesis georgia ginger glen grace grant guy harmony "
    "harry heath heather heaven helena holly hope houston hunter india iris israel ivory "
    "ivy jack jade jasmine jersey jewel jordan joy june justice kenya king lance laurel "
    "lily lincoln lisbon logan london lot lance madison major mark marina marketa marvel "
    "mason max may melody mercedes mercy mia miles milan miracle misty montana morgan "
    "nick norma nova olive page paige paris pat patience pearl penny piper poppy precious "
    "princess prince ray reed rich rita river rob robin rocky rod roman rose rosemary ruby "
    "russia sage salvador sandy santiago savannah sean serenity shelby sherry sierra sky "
    "skylar stone storm sue summer sydney terry tiffany tony trinity tucker valentine "
    "van vera victor victoria violet virginia warren wade ward wayne will willow winter "
    "wren young zion roma luna lux era iga tola nela pola mira lena mina "
    "dana mihai anul toma avram florin iris lia ion "
    "вера любовь надежда роза слава мир лев рада роман май "
    "carmen monica pro stan"
)
# What the cases of Polish, Romanian and Russian put in place of a last vowel.
_ENDINGS: Final = words(
    "a ą e ę i y u o em ie iem owi owie ą ii ją ę ei ului ul "
    "а у ом е ы и ой ою ю я ем ей ё"
)
_VOWELS: Final = "aeiouyăâîąęаеёиоуыэюяйь"
_LEAST_STEM: Final = 4
_SHORT: Final = words(
    "jana janowi janem anny annie annę anną ewy ewie ewę ewą olgi oldze olgę olgą "
    "adama adamowi anei анны анне анну анной ивана ивану олега олегу"
)

_SURNAMES_VI: Final = "|".join(
    words(
        "Nguyễn Nguyen Trần Phạm Pham Huỳnh Huynh Phan Hoàng Vũ Võ Đặng Bùi Đỗ Ngô Dương "
        "Lê Đinh Trịnh Trương Phùng Vương Tạ Lương Quách Doãn Nghiêm Khuất"
    )
)
_UNSURE_VI: Final = "|".join(
    words(
        "Hồ Lý Mai Tô Hà Đoàn Cao Thái Lâm Châu Tôn Kiều Đào La Chu Bạch Tran Le Hoang Dang "
        "Bui Do Ngo Duong Dinh Ho Ly Vu Vo"
    )
)
_MIDDLE_VI: Final = "|".join(
    words(
        "Văn Thị Hữu Đức Minh Ngọc Thanh Quang Xuân Thu Quốc Công Đình Bá Gia Bảo Kim Thùy "
        "Phương Van Thi Huu Duc Ngoc Quoc Dinh"
    )
)
_UPPER: Final = "".join(
    chr(code)
    for first, last in ((0x41, 0x24F), (0x400, 0x52F), (0x1E00, 0x1EFF))
    for code in range(first, last + 1)
    if chr(code).isupper()
)
_CAP: Final = rf"(?:[{_UPPER}][^\W\d_]*(?:['’-][^\W\d_]+)*)"
_INITIAL: Final = rf"(?:[{_UPPER}]\.)"
_PART: Final = rf"(?:{_INITIAL}|{_CAP})"
_VIETNAMESE = re.compile(
    rf"(?<!\w)(?:(?:{_SURNAMES_VI})(?: {_CAP}){{1,3}}"
    rf"|(?:{_UNSURE_VI}) (?:{_MIDDLE_VI})(?: {_CAP}){{1,2}})(?!\w)"
)
_STREETS = re.compile(
    r"(?:đường|phố|quận|phường|huyện|ngõ|chợ|trường|cầu|tỉnh|thành phố|công viên) $",
    re.IGNORECASE,
)
_CITY: Final = "Hồ Chí Minh"

_TITLED = re.compile(
    r"(?<!\w)(?i:mr|mrs|ms|miss|mx|dr|prof|sir|madam|pan|pani|panu|pana|panem|panią|mgr"
    r"|inż|dl|d-l|dna|d-na|domnul|domnului|doamna|doamnei|domnișoara|domnule"
    r"|господин\w{0,2}|госпож\w{1,2}|г-н\w?|г-ж\w{1,2}|гражданин\w{0,2}|гражданк\w{1,2}"
    r"|ông|bà|anh|chị|cô|chú|bác|em|bạn)"
    rf"\.?[ \u00a0](?P<name>{_PART}(?:[ \u00a0]{_PART}){{0,3}})"
)
# After these anybody's own words follow, in capitals or not.
_SAID = re.compile(
    r"(?<!\w)(?i:my (?:full )?name is|my name's|i am called|full name:?|customer name:?"
    r"|account holder:?|nazywam się|mam na imię|imię i nazwisko:?|m[ăa] numesc"
    r"|m[ăa] cheam[ăa]|numele meu (?:este|e)|nume și prenume:?|меня зовут|мо[её] имя"
    r"|фио:?|ф\.и\.о\.:?|tôi tên(?: là)?|tên (?:của )?(?:tôi|em|mình) là|tên là"
    r"|họ (?:và )?tên:?)"
    r"\s+(?P<name>[^\W\d_]+\.?(?:[ '’-][^\W\d_]+){0,3})"
)
# Where a name in small letters ends at the latest.
_ENDS = re.compile(
    r"[ ](?:and|i|a|și|si|и|và|from|z|ze|din|из|at|in|w|o|oraz|but|dar|ale|но|mój|my|мой"
    r"|tôi|muốn|want|chcę|vreau|хочу|ở|tại|số)(?!\w).*",
    re.IGNORECASE,
)
_PATRONYMIC = re.compile(
    r"(?<!\w)(?:[А-ЯЁ][а-яё]+ ){0,2}[А-ЯЁ][а-яё]+(?:ович|евич|ьич|овн|евн|иничн|ичн)"
    r"(?:а|у|ем|ом|е|ы|ой)?(?: [А-ЯЁ][а-яё]+)?(?!\w)"
)
_WITH_INITIALS = re.compile(
    rf"(?<!\w)(?:(?:{_INITIAL} ?){{1,2}}(?P<after>{_CAP})"
    rf"|(?P<before>{_CAP}) {_INITIAL}(?: ?{_INITIAL})?)(?!\w)"
)
_SURNAME_FORM = re.compile(
    r"(?:[sc]k(?:i|a|iego|iemu|im|iej|ą)|wicz\w{0,3}|escu(?:lui)?|eanu|(?:ов|ев|ёв|ин|ын)"
    r"(?:а|у|ым|е|ой)?|ский|ская|ского|ской|енко)$"
)
_RUN = re.compile(rf"(?<!\w){_CAP}(?:[ \u00a0]{_PART}){{0,3}}(?!\w)")
# Any two words, be the first the second of the two before.
_PAIR = re.compile(r"(?<!\w)(?=([^\W\d_]{3,}) ([^\W\d_]{4,})(?!\w))")


def placed_names(text: str) -> Iterator[tuple[int, int]]:
    """Yield where names of people stand; places may overlap, the surer come first."""
    for found in _SAID.finditer(text):
        name = _ENDS.sub("", found["name"]).strip()
        if name:
            yield found.start("name"), found.start("name") + len(name)
    for found in _TITLED.finditer(text):
        yield found.span("name")
    for found in _PATRONYMIC.finditer(text):
        yield found.span()
    yield from _vietnamese(text)
    yield from _with_initials(text)
    for run in _RUN.finditer(text):
        yield from _given_in(run)
    for pair in _PAIR.finditer(text):
        if _folded(pair[1]) in _given() - _WORDS and _is_surname(pair[2]):
            yield pair.start(1), pair.end(2)


def _vietnamese(text: str) -> Iterator[tuple[int, int]]:
    """Yield Vietnamese names; not streets, schools and places that bear one."""
    for found in _VIETNAMESE.finditer(text):
        if found[0] != _CITY and not _STREETS.search(text[: found.start()][-12:]):
            yield found.span()


def _with_initials(text: str) -> Iterator[tuple[int, int]]:
    """Yield surnames with initials."""
    for found in _WITH_INITIALS.finditer(text):
        if _is_surname(found["after"] or found["before"]):
            yield found.span()


def _given_in(run: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield the name that a run of words in capitals holds, known by its given name.

    The surname may stand before it. A given name that is a word as well needs a surname
    of the lists behind it.
    """
    parts = list(re.finditer(r"[^\s\u00a0]+", run[0]))
    names = [part[0] for part in parts]
    for index, name in enumerate(names):
        surname = names[index + 1] if index + 1 < len(names) else ""
        if not _is_given(name) or (
            _folded(name) in _WORDS and not (surname and _is_surname(surname))
        ):
            continue
        first = index - 1 if index and _is_surname(names[index - 1]) else index
        last = index + bool(surname)
        if last + 1 < len(names) and (
            _is_given(surname) or _is_surname(names[last + 1])
        ):
            last += 1
        yield run.start() + parts[first].start(), run.start() + parts[last].end()
        return


def _is_given(word: str) -> bool:
    """Tell whether a word is a given name, in any of its cases."""
    folded = _folded(word)
    if folded in _given() or folded in _SHORT:
        return True
    return any(
        folded.endswith(ending)
        and len(folded) - len(ending) >= _LEAST_STEM
        and folded.removesuffix(ending) in _stems()
        for ending in _ENDINGS
    )


def _is_surname(word: str) -> bool:
    """Tell whether a word is a surname of the lists, or has the form of one."""
    return _folded(word) in _surnames() or (
        word[:1].isupper() and _SURNAME_FORM.search(word) is not None
    )


def _folded(word: str) -> str:
    """Return a word as the lists hold it."""
    return unicodedata.normalize("NFC", word).casefold()


@cache
def _given() -> frozenset[str]:
    """Return the given names of all languages."""
    return _MORE_GIVEN | _listed(
        "first_names", "first_names_female", "first_names_male"
    )


@cache
def _stems() -> frozenset[str]:
    """Return the given names without the vowel that a case changes."""
    return frozenset(
        name[:-1] if name[-1] in _VOWELS else name for name in _given() - _WORDS
    )


@cache
def _surnames() -> frozenset[str]:
    """Return the surnames of all languages but Vietnamese."""
    return _listed(
        "last_names",
        "last_names_female",
        "last_names_male",
        "male_last_names",
        "unisex_last_names",
    )


def _listed(*lists: str) -> frozenset[str]:
    """Return the words of Faker's lists of some names; a language may lack a list."""
    return frozenset(
        _folded(name)
        for locale in _LOCALES
        for provider in [import_module(f"faker.providers.person.{locale}").Provider]
        for each in lists
        for name in getattr(provider, each, ())
        if len(name) > 2
    )
