"""What a new text, or none, does to the words that are quoted of a source.

It is looked at before, in the admin, and once more as it goes live; both reports are
kept. A report holds places and figures, no quoted words: those stay where they are
quoted, and are shown to whoever may read them there.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from knowledge.actions import (
    ActionError,
    Upload,
    UploadError,
    discard_original,
    hold_replacement,
    locked,
    put_in_place,
)
from knowledge.extraction import ExtractionError, extract_in_child
from knowledge.ingest import limits
from knowledge.models import Document, Source, User
from knowledge.models.audit import record
from knowledge.models.source import SourceKind
from knowledge.publishing import RefusedError, refuse_forbidden
from knowledge.purging import Erasure
from retrieval.fates import Fates, Outcome
from retrieval.models import ImpactReport, ImpactSpan
from retrieval.models.impact import Act, Moment
from retrieval.quoting import QuotedSpan, quoted_spans

# A look that nothing came of is kept so long.
KEEP_LOOKS_DAYS: Final = 30
# What is kept of the words that take the place of others (characters).
MOST_NOW: Final = 2_000
# Of several spans that one thing quotes, the worst counts.
WORST: Final = (Outcome.VANISHES, Outcome.CHANGES, Outcome.STANDS, Outcome.BEFORE)
AFFECTED: Final = frozenset({Outcome.CHANGES, Outcome.VANISHES})

Figures = dict[str, dict[str, int]]


@dataclass(frozen=True, slots=True)
class Affected:
    """A quoted span that changes or vanishes; `now` stands in its place, "" if nothing."""

    span: QuotedSpan
    outcome: Outcome
    now: str


@dataclass(frozen=True, slots=True)
class Impact:
    """What becomes of all that is quoted of a source.

    `figures` count the quoting things by kind and outcome, those of which all stands
    among them.
    """

    figures: Figures
    affected: tuple[Affected, ...] = ()

    @property
    def is_quoted(self) -> bool:
        """Whether anything quotes what the source said until now."""
        return any(row.keys() - {str(Outcome.BEFORE)} for row in self.figures.values())


def impact_of(source: Source, new_text: str | None) -> Impact:
    """Return what a new text in the place of the current one does; None removes it."""
    current = source.documents.filter(is_current=True).only("number", "text").first()
    return weighed(source, current, new_text)


def weighed(
    source: Source, old: Document | None, new_text: str | None, *, but: int = 0
) -> Impact:
    """Return what it does to the words of one revision and those before it.

    What quotes the revision numbered `but`, the new one, is left out.
    """
    fates = Fates(old.text or None if old is not None else None, new_text)
    outcomes: dict[tuple[str, str], Outcome] = {}
    affected = []
    for span in quoted_spans(source):
        if span.revision and span.revision == but:
            continue
        is_there = old is not None and span.revision == old.number
        fate = fates.of(span.words, (span.start, span.end) if is_there else None)
        thing = (span.kind, span.key)
        outcomes[thing] = min(
            outcomes.get(thing, Outcome.BEFORE), fate.outcome, key=WORST.index
        )
        if fate.outcome in AFFECTED:
            now = "" if fate.place is None else (new_text or "")[slice(*fate.place)]
            affected.append(Affected(span, fate.outcome, now[:MOST_NOW]))
    return Impact(counted(outcomes), tuple(affected))


def counted(outcomes: Mapping[tuple[str, str], Outcome]) -> Figures:
    """Return how many things of each kind come to each outcome."""
    counts = Counter((kind, str(each)) for (kind, _key), each in outcomes.items())
    figures: Figures = {}
    for (kind, outcome), count in sorted(counts.items()):
        figures.setdefault(kind, {})[outcome] = count
    return figures


def keep(impact: Impact, source: Source, **fields: object) -> ImpactReport:
    """Write a report, within the caller's transaction."""
    report = ImpactReport.objects.create(
        source=source,
        knowledge_base_id=source.knowledge_base_id,
        title=source.title,
        path=source.path,
        figures=impact.figures,
        **fields,
    )
    ImpactSpan.objects.bulk_create(
        (
            ImpactSpan(
                report=report,
                kind=each.span.kind,
                key=each.span.key,
                outcome=str(each.outcome),
                revision=each.span.revision,
                start=each.span.start,
                end=each.span.end,
                now=each.now,
            )
            for each in impact.affected
        ),
        batch_size=1000,
    )
    return report


# --- Before it goes live -------------------------------------------------------------


def look_before(source: Source, upload: Upload, *, actor: User | None) -> ImpactReport:
    """Read a file that may take a source's place, and report what it would change.

    The file is held for an hour at least, so that `go_ahead` can put it in its place;
    nothing else changes. Raises ActionError with a sentence where it cannot be read.
    """
    original = hold_replacement(source, upload)
    try:
        extracted = extract_in_child(Path(original.file.path), source.path, limits())
        refuse_forbidden(source, extracted)
    except (ExtractionError, RefusedError) as error:
        discard_original(original)
        raise UploadError(f"{source.path}: {error}") from error
    with transaction.atomic():
        source = locked(source)
        current = source.documents.filter(is_current=True).only("number", "text")
        old = current.first()
        report = keep(
            weighed(source, old, extracted.text),
            source,
            act=Act.REPLACEMENT,
            moment=Moment.BEFORE,
            original=original,
            old_revision=old.number if old is not None else None,
            made_by=actor,
        )
        record(actor, "looked at a new file for", source)
    return report


def go_ahead(report: ImpactReport, *, actor: User | None) -> Source:
    """Put the file of a report in its source's place; it is ingested like any other.

    Raises ActionError where the source or the file is gone, where the file was put
    there before, and where the source has another text than when it was looked at.
    """
    with transaction.atomic():
        report = ImpactReport.objects.select_for_update(no_key=True).get(pk=report.pk)
        if report.source is None:
            raise ActionError(_("This source has been deleted in the meantime."))
        if report.generation is not None:
            raise ActionError(_("This file has been put in its place already."))
        if report.original is None:
            raise ActionError(
                _("The file is no longer held. Choose it again and look once more.")
            )
        source = locked(report.source)
        current = source.documents.filter(is_current=True)
        if current.values_list("number", flat=True).first() != report.old_revision:
            raise ActionError(
                _(
                    "The source has got another text since you looked. Choose the file "
                    "again and look once more."
                )
            )
        source = put_in_place(source, report.original, actor=actor)
        report.generation = source.generation
        report.save(update_fields=["generation"])
    return source


def forget_looks() -> int:
    """Delete the reports of files that nothing came of; returns how many."""
    old = ImpactReport.objects.filter(
        moment=Moment.BEFORE,
        generation=None,
        made_at__lt=Now() - timedelta(days=KEEP_LOOKS_DAYS),
    )
    count = old.count()
    old.delete()
    return count


# --- As it goes live -----------------------------------------------------------------


def report_publication(source_id: int) -> None:
    """Report what the text that was published last changed, once for each text."""
    with transaction.atomic():
        # Citations that name the source are saved meanwhile.
        source = (
            Source.objects.select_for_update(no_key=True)
            .exclude(kind=SourceKind.MEMORY)
            .filter(pk=source_id)
            .first()
        )
        if source is None:
            return
        revisions = source.documents.only("number", "text", "generation")
        new = revisions.filter(is_current=True).first()
        replaced = revisions.filter(is_current=False).order_by("-superseded_at")
        old = replaced.first()
        if new is None or old is None:
            return
        known = ImpactReport.objects.filter(source=source, moment=Moment.AFTER)
        if known.filter(old_revision=old.number, new_revision=new.number).exists():
            return
        earlier = ImpactReport.objects.filter(
            source=source,
            moment=Moment.BEFORE,
            generation=new.generation,
            later=None,
        ).first()
        impact = weighed(source, old, new.text, but=new.number)
        if impact.is_quoted or earlier is not None:
            keep(
                impact,
                source,
                act=Act.REPLACEMENT,
                moment=Moment.AFTER,
                earlier=earlier,
                generation=new.generation,
                old_revision=old.number,
                new_revision=new.number,
                made_by=earlier.made_by if earlier is not None else None,
            )


def report_removal(source: Source, actor: User | None) -> None:
    """Report what goes with a source, in the transaction that deletes it."""
    if source.kind == SourceKind.MEMORY:
        return
    current = source.documents.filter(is_current=True).only("number", "text").first()
    impact = weighed(source, current, None)
    if impact.is_quoted:
        keep(
            impact,
            source,
            act=Act.REMOVAL,
            moment=Moment.AFTER,
            old_revision=current.number if current is not None else None,
            made_by=actor,
        )


# --- Erasing ---------------------------------------------------------------------------


def erase(erasure: Erasure) -> None:
    """Take erased words and names out of reports; their figures and places stay."""
    named = Q(new_revision__in=erasure.revisions) | Q(
        later__new_revision__in=erasure.revisions
    )
    if erasure.source_id is not None:
        named |= Q(source=erasure.source_id)
        ImpactReport.objects.filter(source=erasure.source_id).update(title="", path="")
    reports = ImpactReport.objects.filter(named).values("pk")
    ImpactSpan.objects.filter(report__in=reports).exclude(now="").update(now="")
