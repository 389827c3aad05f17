"""The words for the units of a document, in five languages, on folded text."""

from __future__ import annotations

import re

from knowledge.structure.numbers import Unit

# Words on folded text; the longer of two that begin alike wins by the word's end.
WORDS: tuple[tuple[Unit, str], ...] = (
    (
        Unit.ANNEX,
        (
            r"annex(?:es)?|appendi(?:x|ces)|schedules?|exhibits?|attachments?"
            r"|zalaczni\w{1,5}|anex(?:a|e|ei|ele|elor)|приложени\w{1,3}|phu luc"
        ),
    ),
    (Unit.PART, r"parts?|czesc(?:i|ia)?|partea|partii|част(?:ь|и|ью|ях)|ч|phan"),
    (Unit.TITLE, r"titles?|titlul(?:ui)?|tytul\w{0,2}|dzial\w{0,2}|cartea|ksieg\w"),
    (
        Unit.CHAPTER,
        r"chapters?|rozdzial\w{0,3}|rozdz|capitol\w{0,5}|cap|глав\w{1,3}|гл|chuong",
    ),
    (
        Unit.SECTION,
        (
            r"sections?|sect|sec|sectiun\w{1,4}|sekcj\w{1,3}|oddzial\w{0,3}|раздел\w{0,3}"
            r"|muc"
        ),
    ),
    (
        Unit.SUBSECTION,
        r"subsections?|subsectiun\w{1,4}|podrozdzial\w{0,3}|подраздел\w{0,3}|tieu muc",
    ),
    (
        Unit.ARTICLE,
        r"articles?|articol\w{0,5}|artykul\w{0,4}|arts?|стат(?:ь\w{1,3}|еи)|ст|dieu",
    ),
    (Unit.CLAUSE, r"clauses?|clauz\w{1,4}|klauzul\w{0,3}"),
    (Unit.RULE, r"rules?"),
    (Unit.SIGN, r"§{1,2}|paragraf(?:u|ie|em|ow|y|ach)?"),
    (
        Unit.REQUIREMENT,
        (
            r"requirements?|req|controls?|wymagani\w{1,4}|cerint\w{1,4}|требовани\w{1,3}"
            r"|yeu cau"
        ),
    ),
    (Unit.RECITAL, r"recitals?|motyw\w{0,3}|considerent\w{0,4}"),
    (
        Unit.PARAGRAPH,
        (
            r"paragraphs?|paras?|paragraf(?:ul|ului|ele|elor)|alineat\w{0,4}|alin"
            r"|ustep\w{0,3}|ustp?|пункт\w{0,3}|п|khoan"
        ),
    ),
    (
        Unit.POINT,
        (
            r"points?|liter\w{1,2}|lit|pkt|punkt\w{0,3}|punct\w{0,4}|pct|подпункт\w{0,3}"
            r"|пп|diem"
        ),
    ),
)
UNIT_PATTERNS = [(unit, re.compile(words)) for unit, words in WORDS]
RANKS = {unit: index for index, (unit, _words) in enumerate(WORDS)}
CONTAINERS = frozenset(list(RANKS)[: RANKS[Unit.ARTICLE]])
INNER = frozenset({Unit.PARAGRAPH, Unit.POINT})

# What stands between the items of a list, and between references beside one another.
AND = r"and|or|&|i|oraz|lub|si|sau|и|или|va|hoac"
BESIDE = re.compile(rf"\s*(?:,|{AND}|, (?:{AND}))\s*")
