"""Checking a draft against passages: quotes, facts, citations. Pure, without a model.

`check_draft` reads like the rules of S1-VER: quotes are found, then citations outside
them, then sentences, then facts; each is looked for in the passages that it cites.
"""

from retrieval.verification.check import check_draft, sentences_of
from retrieval.verification.facts import Fact, FactKind, facts_in
from retrieval.verification.verdict import (
    Flag,
    FlagKind,
    Found,
    Outcome,
    Read,
    Verdict,
)

__all__ = [
    "Fact",
    "FactKind",
    "Flag",
    "FlagKind",
    "Found",
    "Outcome",
    "Read",
    "Verdict",
    "check_draft",
    "facts_in",
    "sentences_of",
]
