"""What the source register keeps out: one check for every door that text comes in by.

The rules of a knowledge base are read once and compared in memory. A person's pattern
is never a regular expression, so that no rule can make a check slow: names are compared
as in a shell, phrases as plain text, each in time linear to the text.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from django.db import models
from django.utils.translation import gettext as _

from knowledge.extraction import Extracted
from knowledge.models import Document, NeverRule, RegisterEntry
from knowledge.models.register import Decision, RuleKind
from knowledge.sanitizing import strip_invisible

WHITE_SPACE = re.compile(r"\s+")


def fold(text: str) -> str:
    """Return a text without what makes no difference to a rule.

    Capitals, white space, invisible marks and ligatures: a phrase is found across line
    ends, and in a PDF that writes "ﬁ" as one character.
    """
    text = unicodedata.normalize("NFKC", strip_invisible(text)).casefold()
    return WHITE_SPACE.sub(" ", unicodedata.normalize("NFKC", text)).strip()


def fold_place(place: str) -> str:
    """Return a path, file name or address in the form that places are compared in."""
    return fold(place.replace("\\", "/")).strip("/ ")


def places_of(path: str) -> Iterator[str]:
    """Yield what may name a path: its file name, itself, and each folder above it."""
    place = fold_place(path)
    yield place.rpartition("/")[2]
    while place:
        yield place
        place = place.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class EntryRules:
    """What may not enter one knowledge base.

    `rejected` maps folded places to reasons; `names`, `formats` and `phrases` are
    (pattern, reason), names and phrases folded.
    """

    rejected: Mapping[str, str]
    names: tuple[tuple[str, str], ...]
    formats: tuple[tuple[str, str], ...]
    phrases: tuple[tuple[str, str], ...]

    def against(
        self, *, path: str = "", file_format: str = "", texts: Iterable[str] = ()
    ) -> str:
        """Return the reason why this may not enter, or "" where nothing is said."""
        return (
            (self.against_path(path) if path else "")
            or next((why for each, why in self.formats if each == file_format), "")
            or (self.against_texts(texts) if self.phrases else "")
        )

    def against_path(self, path: str) -> str:
        """Return the reason against a path or its file name."""
        for place in places_of(path):
            if place in self.rejected:
                return self.rejected[place]
        whole = fold_place(path)
        name = whole.rpartition("/")[2]
        for pattern, reason in self.names:
            if fnmatchcase(whole, pattern) or fnmatchcase(name, pattern):
                return reason
        return ""

    def against_texts(self, texts: Iterable[str]) -> str:
        """Return the reason against the first text that holds a phrase."""
        for text in texts:
            folded = fold(text)
            for phrase, reason in self.phrases:
                if phrase in folded:
                    return reason
        return ""


def rules_for(knowledge_base_id: int) -> EntryRules:
    """Return what may not enter a knowledge base: its own rules and those for all."""
    rejected = RegisterEntry.objects.filter(
        knowledge_base_id=knowledge_base_id, decision=Decision.REJECTED
    ).exclude(location="")
    rules: dict[str, list[tuple[str, str]]] = {kind: [] for kind in RuleKind.values}
    rows = NeverRule.objects.filter(
        models.Q(knowledge_base_id=knowledge_base_id)
        | models.Q(knowledge_base__isnull=True)
    ).order_by("pk")
    for kind, pattern, reason in rows.values_list("kind", "pattern", "reason"):
        folded = fold_place(pattern) if kind == RuleKind.NAME else fold(pattern)
        # An empty phrase would be found in everything.
        if folded:
            rules[kind].append((folded, as_sentence(reason)))
    return EntryRules(
        rejected={
            place: as_sentence(reason)
            for location, reason in rejected.values_list("location", "reason")
            if (place := fold_place(location))
        },
        names=tuple(rules[RuleKind.NAME]),
        formats=tuple(rules[RuleKind.FORMAT]),
        phrases=tuple(rules[RuleKind.CONTENT]),
    )


def as_sentence(reason: str) -> str:
    """Return a person's reason with an end, so that a sentence can follow it."""
    reason = reason.strip()
    return reason if reason[-1:] in {".", "!", "?", "…"} else f"{reason}."


def texts_of(read: Extracted | Document) -> Iterator[str]:
    """Yield all that would become readable of a document."""
    yield read.text
    yield read.title
    for value in read.front_matter.values():
        yield from (value if isinstance(value, list) else [str(value)])
    yield from (str(value) for value in read.properties.values())


def refusal_of(path: str, reason: str) -> str:
    """Return the sentence that says what is kept out and why."""
    return _("%(path)s may not enter: %(reason)s") % {"path": path, "reason": reason}
