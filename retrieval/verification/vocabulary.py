"""The words of months, units and currencies in the five languages. Pure.

Tables of our own: what a library offers is the form in which it would write a word,
and documents write all the others (`dniach`, `zilelor`, `месяцев`). The tests hold the
tables against the forms of CLDR (Babel). All forms are in small
letters and NFC; `stem*` stands for the stem with up to five letters more.
"""

from __future__ import annotations

from collections.abc import Mapping

_LONGEST_ENDING = 5


def all_of(forms: str) -> frozenset[str]:
    """Return the words that spaces part."""
    return frozenset(forms.split())


class Words:
    """Which of some names a word is a form of."""

    def __init__(self, forms: Mapping[str, str]) -> None:
        self._whole: dict[str, str] = {}
        self._stems: dict[str, str] = {}
        for name, written in forms.items():
            for form in written.split():
                if form.endswith("*"):
                    self._stems[form[:-1]] = name
                else:
                    self._whole[form.replace("_", " ")] = name

    def name_of(self, word: str) -> str:
        """Return the name that a word in small letters stands for, or ""."""
        found = self._whole.get(word, "")
        for cut in range(_LONGEST_ENDING + 1 if self._stems and not found else 0):
            found = found or self._stems.get(word[: len(word) - cut], "")
        return found


# --- Months and what stands in dates --------------------------------------------

MONTHS = Words(
    {
        "1": (
            "january jan stycze* styczni* ianuarie ian января январь январе январю янв"
        ),
        "2": "february feb lut* februarie feb феврал* фев февр",
        "3": "march mar marzec marca marcu marcem martie март марта марте марту мар",
        "4": "april apr kwiecień kwietni* aprilie апрел* апр",
        "5": "may maj maja maju majem mai май мая мае маю",
        "6": "june jun czerwiec czerwc* cze iunie iun июн*",
        "7": "july jul lipiec lipc* lip iulie iul июл*",
        "8": "august aug augusta sierpień sierpni* sie август* авг",
        "9": (
            "september sept sep wrzesień wrzesien wrześni* wrzesni* wrz septembrie"
            " сентябр* сент сен"
        ),
        "10": ("october oct październik* pazdziernik* paź octombrie oct октябр* окт"),
        "11": "november nov listopad* lis noiembrie noi нояб* ноя",
        "12": "december dec grudzień grudzien grudni* gru decembrie декабр* дек",
    }
)
# These are other words too, and are months beside a day or a year alone.
LONELY_NO_MONTHS = all_of(
    "may mar march jan ian feb apr jun jul aug sep sept oct nov dec noi lip lis sie cze"
    " gru wrz paź mai lut luty lutni мая мае мар апр янв фев авг сен окт ноя дек"
)
# What may stand after a year.
YEAR_WORDS = all_of("r roku rok г год года году годом гг an anul anului năm")

# --- Units ----------------------------------------------------------------------

UNITS = Words(
    {
        "second": (
            "second seconds sec secs giây sekund* secundă secunda secunde secundei"
            " secundelor секунд* сек"
        ),
        "minute": ("minute minutes min mins phút minut* minutelor минут* мин"),
        "hour": (
            "hour hours hr hrs giờ tiếng godzin* godz oră ora ore orei orelor"
            " час часа часов часу часам часами часах часовой часового часовом часовая"
        ),
        "day": (
            "day days ngày dzień dzien dnia dni dniu dniach dniom dniami dniem dniow*"
            " doba doby dób dobę dobie zi zile ziua zilei zilele zilelor день дня дней"
            " дню дням днями днях днем"
            " днём дневн* сутки суток сутках суткам сутками"
        ),
        "week": (
            "week weeks wk wks tuần tydzień tydzien tygodni* tyg săptămân*"
            " saptaman* недел*"
        ),
        "month": (
            "month months mth mths tháng miesiąc* miesiac* miesięc* miesiec* mies"
            " lună luna luni lunii lunile lunilor месяц* месячн* мес"
        ),
        "quarter": "quarter quarters quý kwarta* trimestr* квартал*",
        "year": (
            "year years yr yrs năm rok roku rokiem lata lat latach latom latami"
            " letni* letnia roczn* ani anul anului anilor год года году годом годов"
            " годы"
            " годам годах лет летн* годичн* an"
        ),
        "decade": "decade decades thập_kỷ dekad* deceni* десятилет*",
        "century": (
            "century centuries thế_kỷ wiek wieku wieki wieków secol* век века веков"
        ),
        "km": (
            "km kilometer kilometers kilometre kilometres kilometr* kilometri ki-lô-"
            " mét kilômét км километр*"
        ),
        "m": (
            "meter meters metre metres mét metr metry metra metrów metrach metru metri"
            " метр*"
        ),
        "cm": (
            "cm centimeter* centimetre* centymetr* centimetri xentimét xăng-ti-mét см"
            " сантиметр*"
        ),
        "mm": "mm millimeter* millimetre* milimetr* milimetri мм миллиметр*",
        "mile": "mile miles mi mila mil mili dặm миль мили милях миля",
        "foot": "foot feet ft stóp stopy picioare фут*",
        "inch": "inch inches cal cale cali inci дюйм*",
        "kg": "kg kilogramme* ki-lô-gam kilôgam kilogram* кг килограмм*",
        "g": "gram grams gramme grammes gramów gramy grame gam грамм*",
        "mg": "mg milligram* miligram* мг миллиграмм*",
        "tonne": "tonne tonnes ton tons tony tona tone tấn тонн*",
        "pound weight": "lb lbs",
        "ounce": "oz ounce ounces uncji uncii унци*",
        "litre": "litre litres liter liters lít litr litry litra litrów litri литр*",
        "ml": "ml millilitre* milliliter* mililitr* mililitri мл миллилитр*",
        "hectare": "ha hectare hectares hecta hektar* гектар* га",
        "m²": "m² m2 sqm м² м2",
        "km²": "km² km2 км² км2",
        "m³": "m³ m3 м³ м3",
        "acre": "acre acres akr akra akrów akry acri акр*",
        "bit": "bit bits bitow* bitów bity biți bitu бит бита битов битн*",
        "byte": "byte bytes bajt* octeți byți байт*",
        "kB": "kb kilobyte* kilobajt* килобайт* кб",
        "MB": "mb megabyte* megabajt* megaoct* мегабайт* мб",
        "GB": "gb gigabyte* gigabajt* gigaoct* гигабайт* гб",
        "TB": "tb terabyte* terabajt* teraoct* терабайт* тб",
        "KiB": "kib",
        "MiB": "mib",
        "GiB": "gib",
        "ms": "ms millisecond* milisekund* milisecund* мс миллисекунд*",
        "Hz": "hz hertz герц",
        "kHz": "khz кгц",
        "MHz": "mhz мгц",
        "GHz": "ghz ггц",
        "W": "watt watts wat watów ватт*",
        "kW": "kw kilowatt* kilowat* квт киловатт*",
        "MW": "mw megawatt* megawat* мвт мегаватт*",
        "kWh": "kwh",
        "V": "volt volts wolt woltów volți вольт*",
        "km/h": "km/h kph км/ч",
        "mph": "mph",
        "°C": "°c celsius celsjusza độ_c",
        "°F": "°f fahrenheit",
        "degree": "° degree degrees stopni stopnie grade độ градус*",
        "px": "px pixel pixels piksel* pixeli пиксел*",
    }
)
# Units of one letter stand in their own case, on the number's own line, and without a
# full stop: "5 m.in." and "30 w dniu" hold none.
LETTER_UNITS: Mapping[str, str] = {
    "s": "second",
    "h": "hour",
    "m": "m",
    "g": "g",
    "t": "tonne",
    "l": "litre",
    "W": "W",
    "V": "V",
    "м": "m",
    "т": "tonne",
    "л": "litre",
    "г": "g",
    "ч": "hour",
}
# Short words that are units after digits alone.
AFTER_DIGITS_ALONE = all_of("mi ha min sec hr cal mil an")
# "30 consecutive days" are 30 days.
PLAIN_ADJECTIVES = Words(
    {
        "plain": (
            "calendar consecutive full whole complete successive more further"
            " additional"
            " kalendarzow* kolejn* pełn* peln* następn* nastepn* dalsz*"
            " dodatkow* полн* календарн* последовательн* дополнительн* следующ*"
            " us american british russian polish romanian vietnamese canadian"
            " australian"
            " swiss американск* российск* румынск* польск* вьетнамск* британск*"
            " швейцарск*"
        ),
        "working": (
            "business working banking trading robocz* bankow* рабоч* банковск*"
        ),
    }
)
WORKING_AFTER = Words(
    {
        "working": "robocz* lucrătoare lucratoare bancare рабоч* làm_việc bankow*",
    }
)

# --- Percentages ----------------------------------------------------------------

PERCENT = Words(
    {
        "%": "% percent pct per_cent procent* процент* phần_trăm la_sută la_suta",
        "‰": "‰ permille per_mille promil* промилле phần_nghìn",
        "bp": "bp bps basis_point basis_points",
        "pp": (
            "pp p.p percentage_point percentage_points điểm_phần_trăm punkt_procentowy"
            " punkty_procentowe punktów_procentowych punktu_procentowego"
            " puncte_procentuale punct_procentual процентный_пункт процентных_пункта"
            " процентных_пунктов процентного_пункта п.п"
        ),
    }
)

# --- Money ----------------------------------------------------------------------

CURRENCY_SIGNS: Mapping[str, str] = {
    "€": "EUR",
    "$": "USD",
    "US$": "USD",
    "£": "GBP",
    "¥": "JPY",
    "₫": "VND",
    "₽": "RUB",
    "₴": "UAH",
    "₹": "INR",
    "₩": "KRW",
}
CURRENCY_CODES = all_of(
    "EUR USD GBP CHF JPY CNY PLN RON RUB VND CZK HUF UAH BGN SEK NOK DKK ISK TRY INR"
    " KRW"
    " AUD CAD NZD SGD HKD THB MYR IDR PHP BRL MXN ZAR ILS AED SAR KZT BYN MDL GEL RSD"
    " XOF XAF EGP MAD TND CLP COP ARS PEN TWD"
)
CURRENCY_WORDS = Words(
    {
        "EUR": "euro euros eur евро ơ-rô",
        "USD": "dollar dollars usd dolar* dolari dolarului доллар* đô_la đô đô_la_mỹ",
        "GBP": "pound pounds sterling gbp funt* lire фунт* bảng",
        "CHF": "franc francs chf frank franki franków franka franci франк*",
        "JPY": "yen jpy jen* yeni иен* yên",
        "CNY": "yuan cny juan* yuani юан* nhân_dân_tệ",
        "PLN": (
            "zloty zlotys złoty złote złotych złotego złotym złotymi zł pln zlotych"
            " zlote злот* zloți"
        ),
        "RON": "leu lei leul leului leilor ron lej* лей лея леев",
        "RUB": "ruble rubles rouble roubles rubl* rubel rub rúp рубл* руб р",
        "VND": "dong dongs donga dongi dongów dongach đồng vnd vnđ đ донг*",
        "UAH": "hryvnia hryvnias uah hrywien hrywna hrywny гривен гривн*",
        "CZK": "koruna czk koron крон*",
        "cent": "cent cents cenți eurocent* eurocenți цент*",
        "grosz": "grosz* gr грош*",
        "ban": "bani bănuți",
        "kopeck": "kopeck* kopiej* копе* коп",
        "xu": "xu",
        "pence": "pence penny pensów пенс*",
    }
)
