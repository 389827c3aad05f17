"""The language of a text, guessed from its letters and small words."""

import unicodedata

import pytest

from knowledge.language import language_of
from knowledge.models.knowledge_base import Language

ALL = list(Language.values)
TEXTS = {
    "en": "A member may close the account at any time. The branch pays the rest.",
    "vi": "Thành viên nộp đơn theo mẫu BM-21 kèm bản sao giấy tờ tùy thân.",
    "pl": "Członek może w każdej chwili zamknąć rachunek w dowolnym oddziale.",
    "ro": "Membrul poate închide contul oricând, fără să plătească o taxă în plus.",
    "ru": "Вкладчик может закрыть счёт в любое время и в любом отделении.",
}


@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_prose_tells_its_language(language: str, form: str) -> None:
    assert language_of(unicodedata.normalize(form, TEXTS[language]), ALL) == language


@pytest.mark.parametrize("text", ["", "12 | 300 | 4", "QT-07", "Wer das liest."])
def test_what_tells_nothing_stays_open(text: str) -> None:
    assert language_of(text, ALL) == ""


def test_a_layer_is_believed() -> None:
    assert language_of("QT-07", ["vi"]) == "vi"
    assert language_of(TEXTS["pl"], ["en", "ru"]) == ""
