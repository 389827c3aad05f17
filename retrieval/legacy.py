"""What an older version left: its file of passages, receipts, pairs and interactions.

The format `v0` is described in docs/legacy.md. It is read line by line, so that a file
may be larger than memory, and may be read again: what is there already is left alone.
"""

import hashlib
import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Final

from django.db import transaction
from django.utils.translation import gettext as _

from knowledge.actions import ActionError, clean_path
from knowledge.inference.gateway import ModelInputError
from knowledge.language import language_of
from knowledge.legacy import OldFile, OldPassage, bring_in_old, is_there
from knowledge.models import Document, KnowledgeBase, Layer, Passage, User
from knowledge.models.audit import record
from knowledge.models.document import random_number
from knowledge.models.knowledge_base import AnswerMode
from knowledge.permissions import Reader
from retrieval.learning import imported_synonym
from retrieval.legacy_lines import Line, read_lines
from retrieval.models import FormerReceipt, Interaction, LearnedItem, Receipt
from retrieval.models.interaction import IMPORTED, OLD_SCALE
from retrieval.models.log import Status
from retrieval.opening import FORMER_ID
from retrieval.reach import reader_of
from retrieval.receipts import (
    Imported,
    ReadGoneError,
    ReadSpan,
    issue_receipt,
    kept,
)
from retrieval.results import Level

MOST_WORD: Final = 100
MOST_READ: Final = 50
# The ids of imported interactions are drawn from their lines, so that none comes twice.
NAMESPACE: Final = uuid.UUID("6d2b6f0c-6f0a-4c53-9a2b-1f0b5c3f6d70")


@dataclass(slots=True)
class Outcome:
    """How many of each kind were brought in, and were there already; what was not."""

    brought: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    refused: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Import:
    """One import into a knowledge base, as it goes on."""

    knowledge_base: KnowledgeBase
    actor: User | None
    layers: Mapping[str, Layer]
    outcome: Outcome = field(default_factory=Outcome)
    # The files whose passages have been checked, the newest last.
    files: dict[tuple[str, str], None] = field(default_factory=dict)

    def layer_of(self, line: Line) -> Layer:
        """Return the layer that a line names; raises LegacyError."""
        name = line.text("layer", most=MOST_WORD)
        if name not in self.layers:
            raise line.wrong(
                _("the knowledge base has no layer “%(name)s”; create it first")
                % {"name": name}
            )
        return self.layers[name]

    def refuse(self, line: Line, sentence: str) -> None:
        """Note that what begins on a line is not taken, and why."""
        self.outcome.refused.append(
            _("Line %(number)s: %(sentence)s")
            % {"number": line.number, "sentence": sentence}
        )


def bring_in(
    path: Path,
    knowledge_base: KnowledgeBase,
    *,
    actor: User | None,
) -> Outcome:
    """Bring a file's content into a knowledge base; returns what became of it.

    The whole file is checked first, so that a broken one changes nothing. Then each
    file of passages, receipt, pair and interaction is a transaction of its own: an
    import that is killed goes on where it was when it is run again. Raises LegacyError,
    and the model server's errors.
    """
    layers = {layer.name: layer for layer in knowledge_base.layers.all()}
    run = Import(knowledge_base, actor, layers)
    for line in read_lines(path, BRINGING):
        CHECKING[line.kind](run, line)
    # Passages first: receipts stand on them.
    for kind in BRINGING:
        for lines in batches(path, kind):
            BRINGING[kind](run, lines)
    record(
        actor,
        "imported v0 into",
        knowledge_base,
        file=path.name,
        brought=dict(run.outcome.brought),
        refused=len(run.outcome.refused),
    )
    return run.outcome


def batches(path: Path, kind: str) -> Iterator[list[Line]]:
    """Yield the lines of a kind: passages file by file, all else one by one.

    The passages of a file stand together, as docs/legacy.md says.
    """
    lines = (line for line in read_lines(path, BRINGING) if line.kind == kind)
    if kind != "passage":
        yield from ([line] for line in lines)
        return
    for _place, group in groupby(lines, key=place_of):
        yield list(group)


def place_of(line: Line) -> tuple[str, str]:
    """Return the layer and the path of a passage, as they are kept.

    Two spellings of one path are one file. Raises LegacyError.
    """
    path = clean_path(line.text("file", most=500))
    return line.text("layer", most=MOST_WORD), path


# --- Passages ------------------------------------------------------------------------


def check_passage(run: Import, line: Line) -> None:
    """Raise LegacyError where a passage is not one."""
    run.layer_of(line)
    line.text("title", most=300, needed=False)
    line.text("text")
    line.number_of("page", least=1)
    place = place_of(line)
    if place in run.files and place != next(reversed(run.files)):
        raise line.wrong(_("the passages of one file must stand together"))
    run.files[place] = None


def bring_passages(run: Import, lines: list[Line]) -> None:
    """Make a source of the passages of one file."""
    first = lines[0]
    layer, (_name, path) = run.layer_of(first), place_of(first)
    if is_there(layer, path):
        run.outcome.known["passage"] += len(lines)
        return
    passages = [
        OldPassage(line.text("text"), line.number_of("page", least=1)) for line in lines
    ]
    title = first.text("title", most=300, needed=False)
    try:
        bring_in_old(OldFile(path, title, passages), layer=layer, actor=run.actor)
    except (ActionError, ModelInputError) as error:
        run.refuse(first, str(error))
        return
    run.outcome.brought["passage"] += len(lines)


# --- Receipts ------------------------------------------------------------------------


def check_receipt(run: Import, line: Line) -> None:
    """Raise LegacyError where a receipt is not one."""
    former = line.text("id", most=80)
    if not FORMER_ID.fullmatch(former):
        raise line.wrong(_("“id” must be rcpt_ and letters, digits, - or _"))
    line.moment("issued_at")
    line.text("draft")
    if not isinstance(line.row.get("checked", True), bool):
        raise line.wrong(_("“checked” must be true or false"))
    read = line.row.get("read")
    if not isinstance(read, list) or not 0 < len(read) <= MOST_READ:
        raise line.wrong(
            _("“read” must be a list of 1 to %(most)s passages") % {"most": MOST_READ}
        )
    for each in read_by(line):
        run.layer_of(each)
        each.text("file", most=500)
        each.text("text")


def read_by(line: Line) -> list[Line]:
    """Return the passages that a receipt read, as lines of their own."""
    rows = line.row["read"]
    if not all(isinstance(row, dict) for row in rows):
        raise line.wrong(_("“read” must hold objects"))
    return [Line(line.number, row) for row in rows]


def bring_receipt(run: Import, lines: list[Line]) -> None:
    """Sign an old receipt anew, as one that was brought in."""
    (line,) = lines
    former = line.text("id", most=80)
    if FormerReceipt.objects.filter(former_id=former).exists():
        run.outcome.known["receipt"] += 1
        return
    issued_at = line.moment("issued_at")
    reader = reader_of(frozenset({run.knowledge_base.pk}), None)
    try:
        with transaction.atomic():
            public_id = issue_receipt(
                reader,
                kind="draft",
                read=[span_of(run, each, reader) for each in read_by(line)],
                draft=line.text("draft"),
                nothing_checked=not line.row.get("checked", True),
                imported=Imported(former, issued_at),
            )
            FormerReceipt.objects.create(
                former_id=former, receipt=Receipt.objects.get(public_id=public_id)
            )
    except ReadGoneError:
        # Deleted or moved while the receipt was written.
        run.refuse(line, _("what it read has just gone; run the import again"))
        return
    run.outcome.brought["receipt"] += 1


def span_of(run: Import, line: Line, reader: Reader) -> ReadSpan:
    """Return what an old receipt read, at the passage that holds it now.

    Where none does, the words stand for themselves, without a source.
    """
    text, path = line.text("text"), clean_path(line.text("file", most=500))
    passage = (
        Passage.objects.visible_to(reader)
        .filter(
            layer=run.layer_of(line),
            source__path=path,
            text__contains=text,
        )
        .select_related("document")
        .first()
    )
    if passage is None:
        number, start, source_id, title = random_number(), 0, None, ""
    else:
        document: Document = passage.document
        number, title = document.number, document.title
        start = passage.start + passage.text.index(text)
        source_id = passage.source_id
    return ReadSpan(
        ref=f"d{number}:{start}-{start + len(text)}",
        revision=number,
        start=start,
        end=start + len(text),
        text=text,
        knowledge_base_id=run.knowledge_base.pk,
        source_id=source_id,
        title=title,
        file=path,
    )


# --- Learned pairs -------------------------------------------------------------------


def check_pair(run: Import, line: Line) -> None:
    """Raise LegacyError where a learned pair is not one."""
    if line.row.get("layer") is not None:
        run.layer_of(line)
    line.text("word", most=MOST_WORD)
    line.text("synonym", most=MOST_WORD)
    line.number_of("usage_count")


def bring_pair(run: Import, lines: list[Line]) -> None:
    """Keep a pair of the older, looser rule: shown, never applied (S1-LRN-06)."""
    (line,) = lines
    layer = run.layer_of(line) if line.row.get("layer") is not None else None
    word = line.text("word", most=MOST_WORD)
    item = imported_synonym(
        word,
        line.text("synonym", most=MOST_WORD),
        language=language_of(word, layer.languages if layer is not None else []),
        layer=layer,
        knowledge_base=run.knowledge_base,
        usage_count=line.number_of("usage_count") or 0,
    )
    if LearnedItem.objects.filter(digest=item.digest).exists():
        run.outcome.known["pair"] += 1
        return
    item.save()
    run.outcome.brought["pair"] += 1


# --- Interactions ----------------------------------------------------------------------

STATUSES: Final = {str(status): str(status) for status in Status.values}
LEVELS: Final = {str(level): str(level) for level in Level}


def check_interaction(run: Import, line: Line) -> None:
    """Raise LegacyError where an interaction is not one."""
    asked_at(line)
    if line.row.get("layer") is not None:
        run.layer_of(line)
    line.text("question")
    line.choice("status", STATUSES)
    if line.row.get("level") is not None:
        line.choice("level", LEVELS)


def asked_at(line: Line) -> datetime:
    """Return when an old question was asked; raises LegacyError."""
    moment = line.moment("at")
    if moment is None:
        raise line.wrong(_("“%(name)s” is missing") % {"name": "at"})
    return moment


def bring_interaction(run: Import, lines: list[Line]) -> None:
    """Keep an old question, whose level is on the old scale (S1-CNF-06)."""
    (line,) = lines
    layer = run.layer_of(line) if line.row.get("layer") is not None else None
    content = json.dumps(line.row, sort_keys=True) + str(run.knowledge_base.pk)
    public_id = uuid.uuid5(NAMESPACE, hashlib.sha256(content.encode()).hexdigest())
    level = line.choice("level", LEVELS) if line.row.get("level") is not None else ""
    question = kept(line.text("question"))
    _row, is_new = Interaction.objects.get_or_create(
        public_id=public_id,
        defaults={
            "door": IMPORTED,
            "question": question,
            "queries": [question],
            "knowledge_base_ids": [run.knowledge_base.pk],
            "layer_ids": [layer.pk] if layer is not None else None,
            "status": line.choice("status", STATUSES),
            "mode": AnswerMode.GROUNDED,
            "level": level,
            "basis": OLD_SCALE if level else "",
            "at": asked_at(line),
        },
    )
    counts = run.outcome.brought if is_new else run.outcome.known
    counts["interaction"] += 1


# By type, in the order in which they are brought in.
CHECKING: Final[Mapping[str, Callable[[Import, Line], None]]] = {
    "passage": check_passage,
    "receipt": check_receipt,
    "pair": check_pair,
    "interaction": check_interaction,
}
BRINGING: Final[Mapping[str, Callable[[Import, list[Line]], None]]] = {
    "passage": bring_passages,
    "receipt": bring_receipt,
    "pair": bring_pair,
    "interaction": bring_interaction,
}
