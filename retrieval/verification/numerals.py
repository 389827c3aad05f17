"""The words of numbers in the five languages, in the cases that documents use. Pure.

num2words writes numbers in one form each; the tests hold these tables against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from retrieval.verification.vocabulary import all_of


@dataclass(frozen=True, slots=True)
class NumberWord:
    """What a word adds to a number.

    `value` counts itself; a `scale` multiplies what stands before it. `is_bound` words
    count only within a longer number or before a unit, since they are ordinary words
    too (`one`, `nouă`, Vietnamese words of one syllable).
    """

    value: int
    scale: bool = False
    is_bound: bool = False


def _small(forms: str, first: int, step: int = 1) -> dict[str, int]:
    """Return the values of groups of forms that `|` parts, counted from `first`."""
    return {
        form: first + step * index
        for index, group in enumerate(forms.split("|"))
        for form in group.split()
    }


_VALUES: dict[str, int] = {
    # English.
    **_small("two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen", 2),
    **_small("fourteen|fifteen|sixteen|seventeen|eighteen|nineteen", 14),
    **_small("twenty|thirty|forty fourty|fifty|sixty|seventy|eighty|ninety", 20, 10),
    "zero": 0,
    # Polish, with the cases that documents use.
    **_small(
        "dwa dwie dwóch dwu dwoma dwom dwiema dwaj|trzy trzech trzem trzema trzej"
        "|cztery czterech czterem czterema czterej|pięć pięciu pięcioma"
        "|sześć sześciu sześcioma|siedem siedmiu siedmioma|osiem ośmiu ośmioma"
        "|dziewięć dziewięciu dziewięcioma|dziesięć dziesięciu dziesięcioma"
        "|jedenaście jedenastu|dwanaście dwunastu|trzynaście trzynastu"
        "|czternaście czternastu|piętnaście piętnastu|szesnaście szesnastu"
        "|siedemnaście siedemnastu|osiemnaście osiemnastu|dziewiętnaście dziewiętnastu",
        2,
    ),
    **_small(
        "dwadzieścia dwudziestu|trzydzieści trzydziestu|czterdzieści czterdziestu"
        "|pięćdziesiąt pięćdziesięciu|sześćdziesiąt sześćdziesięciu"
        "|siedemdziesiąt siedemdziesięciu|osiemdziesiąt osiemdziesięciu"
        "|dziewięćdziesiąt dziewięćdziesięciu",
        20,
        10,
    ),
    **_small(
        "sto stu|dwieście dwustu|trzysta trzystu|czterysta czterystu|pięćset pięciuset"
        "|sześćset sześciuset|siedemset siedmiuset|osiemset ośmiuset"
        "|dziewięćset dziewięciuset",
        100,
        100,
    ),
    # Romanian, with both ways of writing its letters.
    **_small(
        "doi două doua|trei|patru|cinci|șase şase sase|șapte şapte sapte|opt|nouă|zece"
        "|unsprezece|doisprezece douăsprezece|treisprezece|paisprezece|cincisprezece"
        "|șaisprezece şaisprezece|șaptesprezece şaptesprezece|optsprezece|nouăsprezece",
        2,
    ),
    **_small(
        "douăzeci douazeci|treizeci|patruzeci|cincizeci|șaizeci şaizeci saizeci"
        "|șaptezeci şaptezeci saptezeci|optzeci|nouăzeci nouazeci",
        20,
        10,
    ),
    # Russian.
    **_small(
        "два две двух двум двумя|три трёх трех трём трем тремя|четыре четырёх четырех"
        " четырем четырьмя|пять пяти пятью|шесть шести шестью|семь семи семью"
        "|восемь восьми восемью|девять девяти девятью|десять десяти десятью"
        "|одиннадцать одиннадцати|двенадцать двенадцати|тринадцать тринадцати"
        "|четырнадцать четырнадцати|пятнадцать пятнадцати|шестнадцать шестнадцати"
        "|семнадцать семнадцати|восемнадцать восемнадцати|девятнадцать девятнадцати",
        2,
    ),
    **_small(
        "двадцать двадцати двадцатью|тридцать тридцати тридцатью|сорок сорока"
        "|пятьдесят пятидесяти|шестьдесят шестидесяти|семьдесят семидесяти"
        "|восемьдесят восьмидесяти|девяносто девяноста",
        20,
        10,
    ),
    **_small(
        "сто ста|двести двухсот|триста трёхсот трехсот|четыреста четырёхсот четырехсот"
        "|пятьсот пятисот|шестьсот шестисот|семьсот семисот|восемьсот восьмисот"
        "|девятьсот девятисот",
        100,
        100,
    ),
}
_BOUND: dict[str, int] = {
    "one": 1,
    **dict.fromkeys(
        all_of(
            "jeden jedna jedno jednego jednej jednym jedną jednemu unu una unei unui"
            " один одна"
            " одно одного одной одному одним одну một mốt"
        ),
        1,
    ),
    "nouă": 9,
    **_small("hai|ba|bốn tư|năm lăm nhăm|sáu|bảy bẩy|tám|chín|mười", 2),
    # Of Polish it is "this".
    "ten": 10,
    "không": 0,
    "семью": 7,
    "нуль": 0,
}
_SCALES: dict[str, int] = {
    **dict.fromkeys(["hundred", "sută", "suta", "sute", "trăm"], 100),
    **dict.fromkeys(("mươi", "chục"), 10),
    **dict.fromkeys(
        all_of(
            "thousand thousands nghìn ngàn tysiąc tysiące tysięcy tysiąca tys mie mii"
            " тысяча"
            " тысячи тысяч тысячу тысячам тыс"
        ),
        1000,
    ),
    **dict.fromkeys(
        all_of(
            "million millions triệu milion miliony milionów miliona mln milioane"
            " milionul миллион"
            " миллиона миллионов млн mn mio"
        ),
        10**6,
    ),
    **dict.fromkeys(
        all_of(
            "billion billions bn tỷ tỉ miliard miliardy miliardów miliarda mld"
            " miliarde миллиард"
            " миллиарда миллиардов млрд"
        ),
        10**9,
    ),
    **dict.fromkeys(
        all_of(
            "trillion trillions bilion biliony bilionów trilioane триллион триллиона"
            " триллионов"
            " трлн"
        ),
        10**12,
    ),
}

NUMBER_WORDS: Mapping[str, NumberWord] = {
    **{form: NumberWord(value) for form, value in _VALUES.items()},
    **{form: NumberWord(value, is_bound=True) for form, value in _BOUND.items()},
    **{
        form: NumberWord(value, scale=True, is_bound=len(form) < 4)
        for form, value in _SCALES.items()
    },
}
# Between the words of one number: "one hundred and five", "douăzeci de mii o sută".
NUMBER_JOINERS = all_of("and și şi si linh lẻ de o un")
# Scales after digits: "1.5 million", "5 tys.", "10 triệu".
SCALES: Mapping[str, int] = {
    form: value for form, value in _SCALES.items() if value >= 100
}
