"""Questions about what is not so, and sentences that can answer them. Pure.

"Which fees are not refunded?" has nearly the same words as "Fees are refunded within a
week", so no score over words or meanings tells that the sentence does not answer it. A
careful reader sees it at once: the sentence denies nothing.

Only open questions count. A plain sentence answers "Is it not allowed?" as well as "Is
it allowed?"; a condition ("if I do not pay") or a purpose is often put in other words
("late payment"), and so is what "why not" asks for.
"""

import re
import unicodedata
from collections.abc import Mapping
from typing import Final

from knowledge.language import language_of
from knowledge.sanitizing import strip_invisible
from knowledge.terms import LANGUAGES, question_language


def words_of(forms: str) -> re.Pattern[str]:
    """Return what finds some words; `*` stands for any ending, `_` for a space.

    One that follows a comma is written with it.
    """
    found = "|".join(
        re.escape(form).replace(r"\*", r"\w*").replace("_", r"\s+")
        for form in forms.split()
    )
    return re.compile(rf"(?:(?<!\w)|(?=,))(?:{found})(?!\w)")


OPEN: Final = {
    "en": words_of("who whom whose what which when where how"),
    "vi": words_of("ai gì nào đâu bao_nhiêu mấy bao_lâu bao_giờ thế_nào ra_sao"),
    "pl": words_of(
        "kto kogo komu kim czyj* co czego czemu czym jak jaki* jaka jaką jakie* któr*"
        " kiedy gdzie skąd dokąd ile ilu iloma"
    ),
    "ro": words_of(
        "cine cui ce care căre* când unde cum cât câtă câți câte câţi cand cat cati"
    ),
    "ru": words_of(
        "кто кого кому кем чей чья чьё что чего чему чем как како* каки* какая какую"
        " котор* когда где куда откуда сколько скольк*"
    ),
}
# What asks for a reason, leads a condition, a purpose or a time, or turns "not" into
# something else.
ELSE: Final = {
    "en": words_of(
        "why reason* if unless whether because although or_not not_only not_more"
        " not_less not_later not_yet so_that so_as in_order ,_when"
    ),
    "vi": words_of(
        "tại_sao vì_sao sao lý_do lí_do nếu khi_không hay_không không_chỉ không_quá"
        " để_không"
    ),
    "pl": words_of(
        "dlaczego powod* przyczyn* jeśli jeżeli gdy gdyby czy nie_tylko nie_więcej"
        " nie_mniej nie_później aby żeby by ,_kiedy"
    ),
    "ro": words_of(
        "de_ce motiv* cauz* dacă daca deși nu_numai nu_doar nu_mai_mult nu_mai_puțin"
        " nu_mai_târziu pentru_a_nu să_nu ,_când"
    ),
    "ru": words_of(
        "почему зачем отчего причин* если ли чтобы не_только не_более не_менее"
        " не_позднее ,_когда"
    ),
}
NOT: Final = {
    "en": re.compile(
        r"(?<!\w)(?:not|never|neither|nor|cannot|nobody|nothing)(?!\w)|\wn['’]t(?!\w)"
    ),
    # At the end it only makes a question of a sentence.
    "vi": re.compile(
        r"(?<!\w)(?:không(?!\s(?:gian|khí|quân|trung))|chưa|chẳng)(?!\w)(?!\s*(?:[?.!]|\Z))"
    ),
    "pl": words_of("nie nigdy nikt nikogo niczego"),
    "ro": re.compile(r"(?<!\w)(?:nu|niciodată|nimeni|nici|nimic)(?!\w)|(?<!\w)n-"),
    "ru": words_of("не никогда никто никого нельзя"),
}
DENYING: Final = {
    "en": re.compile(
        NOT["en"].pattern
        + r"|(?<!\w)(?:no|none|without|except\w*|exclu\w+|unless|lack\w*|fail\w*|refus\w+"
        r"|reject\w*|den(?:y|ied|ies|ial)|prevent\w*|avoid\w*|prohibit\w*|forbid\w*|ban"
        r"|banned|exempt\w*|rather|instead|only|few|little|hardly|rarely|seldom|free"
        r"|in(?:ability|capable|sufficient|compatible|valid|eligible|admissible)\w*"
        r"|im(?:possible|mun)\w*|il(?:legal|licit)\w*|non|non-?\w+|dis\w{4,}"
        r"|un(?!der|til|i|cle)\w{3,})(?!\w)"
    ),
    "vi": words_of(
        "không chưa chẳng chớ trừ ngoại_trừ ngoài thiếu cấm từ_chối loại_trừ chỉ vô bất"
        " miễn tránh"
    ),
    "pl": words_of(
        "nie* nigdy nikt nikogo niczego nic żad* bez oprócz poza brak* odm* odrzuc*"
        " wyklucz* wyłącz* zakaz* zabron* zamiast tylko jedynie wyjątk* zwolni*"
    ),
    "ro": re.compile(
        NOT["ro"].pattern
        + r"|(?<!\w)(?:niciun\w*|nicio|fără|excep\w+|lips\w+|refuz\w*|resping\w*|respin\w*"
        r"|interzi\w*|exclu\w*|doar|numai|decât|scuti\w*|imposibil\w*|ne\w{4,}"
        r"|inc?(?:apabil|ompatibil|suficient|valid|terzi)\w*)(?!\w)"
    ),
    "ru": words_of(
        "не* ни* без* кроме отказ* отсутств* запре* исключ* лиш* только освобожд* отриц*"
    ),
}


def asks_for_what_is_not(question: str) -> bool:
    """Tell whether an open question asks for what is not so."""
    language = question_language(question)
    if language not in NOT:
        return False
    text = folded(question)
    return (
        NOT[language].search(text) is not None
        and OPEN[language].search(text) is not None
        and ELSE[language].search(text) is None
    )


def denies(sentence: str, *, asked_in: str = "") -> bool:
    """Tell whether a sentence says that something is not so, or leaves something out.

    `asked_in` is believed where the sentence itself tells no language. A sentence in a
    language without a list may deny anything.
    """
    denying: Mapping[str, re.Pattern[str]] = DENYING
    language = language_of(sentence, LANGUAGES) or asked_in
    if language not in denying:
        return True
    return denying[language].search(folded(sentence)) is not None


def folded(text: str) -> str:
    """Return a text as the words are looked for in it."""
    return unicodedata.normalize("NFC", strip_invisible(text)).casefold()
