"""What people say of answers and passages (S1-FBK).

A rating is stored for whoever was answered. It changes no ranking: staff read it by
passage and source, and the promoter takes it as a signal.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from knowledge.models import ApiToken, Document, Layer
from knowledge.permissions import Reader
from knowledge.sanitizing import InvalidTextError, clean_query
from retrieval.citations import parse_ref
from retrieval.log import as_kept
from retrieval.models import Feedback, Interaction, PassageFeedback, SearchLog
from retrieval.models.feedback import Reason, Worth
from retrieval.turns import as_uuid

MOST_COMMENT: Final = 1000
MOST_PASSAGES: Final = 100


class FeedbackError(Exception):
    """A rating that is refused as a whole; nothing of it is stored.

    `field` names what to correct, `message` is a sentence the sender can act on.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message


@dataclass(frozen=True, slots=True)
class Place:
    """A passage of an answer: its ref, and the row that was found, if it was one."""

    ref: str
    revision: int
    passage_id: int | None


@dataclass(frozen=True, slots=True)
class Answered:
    """An ask or a search that a reader may rate.

    `places` are its passages by what they may be called: S1, the ref, the row's id.
    """

    id: UUID
    question: str
    client_id: int | None
    bases: frozenset[int]
    places: Mapping[str, Place]


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored rating, and which extras of it were not stored and why."""

    feedback: Feedback
    not_stored: Mapping[str, str]

    @property
    def warning(self) -> str:
        """What was not stored, in sentences; empty where all was (S1-FBK-06)."""
        return " ".join(self.not_stored.values())


@dataclass(frozen=True, slots=True)
class Extras:
    """What a rating may say besides whether the answer helped.

    None and empty say nothing: what was said before stays.
    """

    correct_layer: str = ""
    better_query: str = ""
    passages: Mapping[str, str] | None = None
    reasons: Sequence[str] | None = None
    comment: str | None = None


def is_taken() -> bool:
    """Tell whether answers can be rated: where learning is off, there are no signals."""
    return bool(settings.LEARNING_ENABLED)


def find_answered(reader: Reader, interaction_id: str) -> Answered | None:
    """Return what a reader was answered by an id; None whatever is wrong with it.

    An agent client rates what it was answered itself, a person also what was answered
    to agents for them. Who sees the portal as another person rates nothing.
    """
    key = as_uuid(interaction_id)
    if key is None or reader.user_id is None or reader.acting_user_id is not None:
        return None
    client_id = client_of(reader)
    ask = Interaction.objects.filter(public_id=key, owner=reader.user_id).first()
    if ask is not None:
        if reader.is_agent and ask.client_id != client_id:
            return None
        return Answered(
            key,
            ask.question,
            ask.client_id,
            frozenset(ask.knowledge_base_ids),
            places_of(ask.hits),
        )
    row = (
        SearchLog.objects.filter(interaction_id=key, person=reader.user_id)
        .select_related("token")
        .only("query", "knowledge_bases", "hits", "token__client", "by_agent")
        .first()
    )
    if row is None:
        return None
    asked_by = row.token.client_id if row.token is not None else None
    if reader.is_agent and (asked_by is None or asked_by != client_id):
        return None
    return Answered(
        key, row.query, asked_by, frozenset(row.knowledge_bases), places_of(row.hits)
    )


def client_of(reader: Reader) -> int | None:
    """Return the agent client of a reader's token."""
    if not reader.is_agent or reader.token_id is None:
        return None
    found: int | None = (
        ApiToken.objects.filter(pk=reader.token_id)
        .values_list("client_id", flat=True)
        .first()
    )
    return found


def places_of(hits: Sequence[Mapping[str, object]]) -> dict[str, Place]:
    """Return an answer's passages by each name that they may be called by.

    A clause that the question named has no row of its own; its S-id and its ref name it
    as they name any other (S1-FBK-04).
    """
    found: dict[str, Place] = {}
    for hit in hits:
        ref, row = str(hit["ref"]), hit.get("passage")
        parsed = parse_ref(ref)
        if parsed is None:
            continue
        place = Place(ref, parsed[0], row if isinstance(row, int) else None)
        names = (hit.get("id"), ref, row)
        found |= {str(name): place for name in names if name is not None}
    return found


# --- Storing -------------------------------------------------------------------


def give_feedback(
    reader: Reader, answered: Answered, *, helpful: bool, extras: Extras | None = None
) -> Stored:
    """Store what a reader says of an answer; rating it again changes what was said.

    The rating is stored even where an extra cannot be: that is told. Raises
    FeedbackError for a value that is none, before anything is stored.
    """
    extras = extras or Extras()
    refuse_other_values(extras)
    not_stored: dict[str, str] = {}
    values: dict[str, object] = {"is_helpful": helpful, "changed_at": Now()}
    if extras.reasons is not None or helpful:
        # Reasons are why it did not help.
        values["reasons"] = [] if helpful else list(dict.fromkeys(extras.reasons or ()))
    if extras.comment is not None:
        take(values, not_stored, "comment", extras.comment, checked_comment)
    if extras.better_query:
        take(values, not_stored, "better_query", extras.better_query, checked_query)
    if extras.correct_layer:
        layer, problem = layer_named(reader, extras.correct_layer)
        if layer is None:
            not_stored["correct_layer"] = problem
        else:
            values["correct_layer"] = layer
    documents = documents_of(reader, answered)
    rated, missing = passages_named(answered, documents, extras.passages or {})
    not_stored |= missing
    bases = {document.knowledge_base_id for document in documents.values()}
    with transaction.atomic():
        feedback, _made = Feedback.objects.update_or_create(
            interaction_id=answered.id,
            defaults=values,
            create_defaults={
                **values,
                "person_id": reader.user_id,
                "client_id": answered.client_id,
                "knowledge_base_ids": sorted(bases or answered.bases),
            },
        )
        for place, worth in rated.items():
            document = documents[place.revision]
            PassageFeedback.objects.update_or_create(
                feedback=feedback,
                ref=place.ref,
                defaults={"worth": worth, "given_at": Now()},
                create_defaults={
                    "worth": worth,
                    "revision": place.revision,
                    "passage_id": place.passage_id,
                    "source_id": document.source_id,
                },
            )
    return Stored(feedback, not_stored)


def refuse_other_values(extras: Extras) -> None:
    """Raise FeedbackError for a value that is none of those allowed (S1-FBK-05)."""
    if len(extras.passages or {}) > MOST_PASSAGES:
        raise FeedbackError(
            "chunk_feedback",
            _("Rate at most %(most)s passages at once.") % {"most": MOST_PASSAGES},
        )
    for field, given, allowed in (
        ("chunk_feedback", (extras.passages or {}).values(), Worth.values),
        ("reasons", extras.reasons or (), Reason.values),
    ):
        for value in given:
            if value not in allowed:
                raise FeedbackError(
                    field,
                    _("“%(value)s” is not known here. Allowed are: %(allowed)s.")
                    % {"value": str(value)[:60], "allowed": ", ".join(allowed)},
                )


def take(
    values: dict[str, object],
    not_stored: dict[str, str],
    name: str,
    text: str,
    checked: Callable[[str], str],
) -> None:
    """Take a text as it may be kept, or say why it is not stored."""
    try:
        values[name] = as_kept(checked(text))
    except InvalidTextError as error:
        not_stored[name] = _("%(name)s was not stored: %(why)s") % {
            "name": name,
            "why": error,
        }


def checked_query(text: str) -> str:
    """Return a better question as it can be searched for."""
    return clean_query(text, max_length=settings.STRATA_QUERY_MAX_CHARACTERS)


def checked_comment(text: str) -> str:
    """Return a comment; an empty one takes back what was said."""
    return clean_query(text, max_length=MOST_COMMENT) if text.strip() else ""


def layer_named(reader: Reader, name: str) -> tuple[Layer | None, str]:
    """Return a layer of the reader's own list, or None and why it is not stored.

    A name that is unknown and one that is not for the reader are told alike.
    """
    found = [
        layer
        for layer in Layer.objects.visible_to(reader).select_related("knowledge_base")
        if name in {layer.name, str(layer)}
    ]
    if len(found) == 1:
        return found[0], ""
    if found:
        return None, _(
            "correct_layer was not stored: several of your knowledge bases have a layer "
            "of this name. Name it as knowledge-base/layer."
        )
    return None, _("correct_layer was not stored: you have no layer of this name.")


def documents_of(reader: Reader, answered: Answered) -> dict[int, Document]:
    """Return the revisions of an answer that the reader may still see, by number."""
    numbers = {place.revision for place in answered.places.values()}
    rows = Document.objects.visible_to(reader).filter(number__in=numbers)
    return {
        row.number: row for row in rows.only("number", "source_id", "knowledge_base_id")
    }


def passages_named(
    answered: Answered, documents: Mapping[int, Document], given: Mapping[str, str]
) -> tuple[dict[Place, str], dict[str, str]]:
    """Return what each named passage was worth, and the names that are none."""
    rated: dict[Place, str] = {}
    missing: dict[str, str] = {}
    for name, worth in given.items():
        place = answered.places.get(name)
        if place is None or place.revision not in documents:
            missing[f"chunk_feedback.{name[:100]}"] = _(
                "chunk_feedback for “%(name)s” was not stored: the answer has no such "
                "passage."
            ) % {"name": name[:100]}
        else:
            rated[place] = worth
    return rated, missing
