"""Where each language's tokens lie in the space of packed token vectors (D11).

The tokens of one language lie a little apart from those of another, whatever they
mean. Late interaction between a question in one language and a passage in another
first moves the question's tokens over to the passage's language: on XQuAD dev that
lifts vi -> en from 0.925 to 0.932. The means are those of the product's own
``ordinary_texts.txt``, never of an installation's passages.

This module needs numpy alone, so web and worker may use it.
"""

import functools
from collections.abc import Mapping
from importlib import resources

import numpy as np

from knowledge.inference.identity import BUNDLED_MODEL_ID
from knowledge.inference.tokens import TOKEN_FORMAT, Floats

LANGUAGE_FILE = "bundled-language-means.f32"
LANGUAGES = ("en", "pl", "ro", "ru", "vi")


def is_bundled(model_id: str, token_format: str) -> bool:
    """Tell whether token vectors are those of the bundled model, in today's format."""
    return (model_id, token_format) == (BUNDLED_MODEL_ID, TOKEN_FORMAT)


def language_means(model_id: str, token_format: str) -> Mapping[str, Floats]:
    """Return {language: mean token vector}; empty for models without known means."""
    if not is_bundled(model_id, token_format):
        return {}
    return _bundled_means()


@functools.cache
def _bundled_means() -> Mapping[str, Floats]:
    content = (resources.files("knowledge.inference") / LANGUAGE_FILE).read_bytes()
    rows = np.frombuffer(content, "<f4").astype(np.float32).reshape(len(LANGUAGES), -1)
    return dict(zip(LANGUAGES, rows, strict=True))
