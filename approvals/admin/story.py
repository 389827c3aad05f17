"""One question with its story: how it was asked, what stands near it, what can be done."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.conf import settings
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from approvals.admin.forms import AnswerForm
from approvals.admin.showing import Item, is_put_off, item_of, part_with
from approvals.models import PendingQuestion, Wording
from approvals.models.question import Gap, State
from approvals.queue import Preview, nearest_passages, preview, similar_questions
from approvals.rights import ANSWER, APPROVE
from knowledge.models import KnowledgeBase, User
from knowledge.permissions import Reader
from retrieval.results import Level, SearchResult
from retrieval.views import ShownHit, layers_to_search, shown_hits

MOST_WORDINGS: Final = 20
MOST_NEAR: Final = 5
# States in which a written answer can be written anew.
EDITABLE: Final = (State.PENDING, State.APPROVED)
ADDRESSES: Final = ("act", "marks", "preview", "lock")


@dataclass(frozen=True, slots=True)
class Act:
    """Something that can be done to a question: a button, or a form in a menu.

    `key` is the letter that opens it, "" for none.
    """

    name: str
    template: str
    label: str = ""
    key: str = ""
    is_primary: bool = False


@dataclass(frozen=True, slots=True)
class Near:
    """What the documents hold near a question, as far as the person may read it.

    `says` is a sentence on how sure the search is of it.
    """

    hits: Sequence[ShownHit]
    says: str


@dataclass(frozen=True, slots=True)
class Story:
    """One question with all that is shown of it.

    `addresses` are what its forms are sent to, by name. `more_wordings` is how many
    are not among `wordings`.
    """

    item: Item
    may_answer: bool
    is_change: bool
    is_put_off: bool
    answer_label: str
    acts: Sequence[Act]
    sentences: Sequence[str]
    wordings: Sequence[Wording]
    more_wordings: int
    knowledge_bases: Sequence[str]
    original: Item | None
    duplicates: Sequence[Item]
    similar: Sequence[Item]
    near: Near
    source_url: str
    history_url: str
    edit_url: str
    addresses: Mapping[str, str]


def story_of(pending: PendingQuestion, user: User, words: str, *, edits: bool) -> Story:
    """Return one question as a person sees it; `edits` opens the form over an answer.

    `words` is what the addresses end in to stay in the same part of the queue.
    """
    own = PendingQuestion.objects.administered_by(user)
    may_settle = user.has_perm(ANSWER)
    is_written = pending.answer != ""
    duplicates = own.filter(original=pending)
    wordings = (
        Wording.objects.filter(
            Q(pending=pending) | Q(pending__in=duplicates.order_by())
        )
        .exclude(text="")
        .order_by("-at")
    )
    number = wordings.count()
    waits = pending.state == State.PENDING
    similar = similar_questions(pending, user) if waits else []
    original = own.filter(duplicates=pending).first()
    return Story(
        item=item_of(pending, user, words),
        may_answer=may_settle
        and pending.state in EDITABLE
        and (edits or not is_written),
        is_change=pending.state == State.APPROVED,
        is_put_off=is_put_off(pending),
        answer_label=answer_label(pending, user),
        acts=acts_of(pending, user, edits=edits),
        sentences=sentences_of(pending),
        wordings=list(wordings[:MOST_WORDINGS]),
        more_wordings=max(0, number - MOST_WORDINGS),
        knowledge_bases=bases_of(pending, user),
        original=item_of(original, user, words) if original is not None else None,
        duplicates=[item_of(each, user, words) for each in duplicates],
        similar=[item_of(each.pending, user, words) for each in similar],
        near=near_of(pending, user),
        source_url=source_address(pending, user),
        history_url=reverse(
            "admin:approvals_pendingquestion_history", args=[pending.pk]
        ),
        edit_url=edit_address(pending, words),
        addresses={
            name: reverse(f"admin:approvals_pendingquestion_{name}", args=[pending.pk])
            + words
            for name in ADDRESSES
        },
    )


def edit_address(pending: PendingQuestion, words: str) -> str:
    """Return the page that opens the form over a written answer, in the same part."""
    page = reverse("admin:approvals_pendingquestion_change", args=[pending.pk])
    words = words or f"?show={part_with(pending)}"
    return f"{page}{words}&edit=1"


def source_address(pending: PendingQuestion, user: User) -> str:
    """Return the page of an answer's source, "" where there is none for the person."""
    if pending.source_id is None or not user.has_perm("knowledge.view_source"):
        return ""
    return reverse("admin:knowledge_source_change", args=[pending.source_id])


def answer_label(pending: PendingQuestion, user: User) -> str:
    """Return what the button says that sends an answer."""
    if settings.STRATA_FOUR_EYES or not user.has_perm(APPROVE):
        return _("Hand in for approval")
    if pending.state == State.APPROVED:
        return _("Change the answer")
    return _("Answer and publish")


def near_of(pending: PendingQuestion, user: User) -> Near:
    """Return what the documents hold near a question now, and how sure that is."""
    reader = Reader.for_user(user)
    result = nearest_passages(pending, reader, MOST_NEAR)
    if result is None:
        return Near((), _("It cannot be searched for as it was asked."))
    return Near(shown_hits(result, layers_to_search(reader)), near_says(result))


def near_says(result: SearchResult) -> str:
    """Say what the nearest passages mean for a question that found nothing."""
    if not result.hits:
        return _("Nothing in the documents that you may read is near it.")
    if result.confidence is None or result.confidence.level == Level.LOW:
        return _(
            "The search is sure of none of these. If one answers the question all the "
            "same, write the answer in the words in which it was asked."
        )
    return _(
        "The search takes these for an answer now. Perhaps they came later, or whoever "
        "asked may not read them."
    )


def preview_of(form: AnswerForm) -> Preview | None:
    """Return what was written as it will be found; None while a part of it is missing."""
    layer = form.layers.get(str(form["layer"].value() or ""))
    question = str(form["question"].value() or "").strip()
    answer = str(form["answer"].value() or "").strip()
    if layer is None or not question or not answer:
        return None
    return preview(form.pending, question=question, answer=answer, layer=layer)


def acts_of(pending: PendingQuestion, user: User, *, edits: bool) -> list[Act]:
    """Return what a person may do to a question as it is now, besides answering."""
    acts: list[Act] = []
    if user.has_perm(APPROVE):
        acts += approving(pending, user)
    if user.has_perm(ANSWER):
        if pending.answer and not edits and pending.state in EDITABLE:
            acts.append(menu("edit", _("write the answer anew"), "a"))
        acts += sorting(pending)
    return acts


def approving(pending: PendingQuestion, user: User) -> list[Act]:
    """Return what may be done to a written answer by who may approve."""
    acts: list[Act] = []
    if pending.is_awaiting_approval:
        if not (pending.four_eyes and pending.author == user):
            acts.append(button("approve", _("Approve"), is_primary=True))
        acts.append(menu("send_back"))
    if pending.source_id is not None:
        acts.append(menu("withdraw"))
    return acts


def sorting(pending: PendingQuestion) -> list[Act]:
    """Return what may be done to a question without an answer to it."""
    if pending.state == State.IGNORED:
        return [button("reopen", _("Let it wait for an answer again"))]
    if pending.state == State.DUPLICATE:
        return [button("unmerge", _("Take it apart again"))]
    if pending.state != State.PENDING:
        return []
    acts = [
        menu("assign"),
        button("wake", _("Take it up again"))
        if is_put_off(pending)
        else menu("snooze"),
    ]
    if pending.source_id is None:
        acts += [menu("merge", _("merge"), "m"), menu("ignore", _("ignore"), "i")]
    return acts


def button(name: str, label: str, *, is_primary: bool = False) -> Act:
    """Return an act that needs no more than a button."""
    template = "admin/approvals/acts/button.html"
    return Act(name, template, label, is_primary=is_primary)


def menu(name: str, label: str = "", key: str = "") -> Act:
    """Return an act whose form stands in a menu; `label` is what its key does."""
    return Act(name, f"admin/approvals/acts/{name}.html", label, key)


def sentences_of(pending: PendingQuestion) -> list[str]:
    """Return what happened to a question, as sentences."""
    found = []
    if pending.author is not None and pending.answered_at is not None:
        found.append(
            _("%(name)s wrote the answer on %(day)s.")
            % {"name": pending.author, "day": day_of(pending.answered_at)}
        )
    if pending.is_awaiting_approval:
        found.append(
            _("Somebody else has to approve it before it reaches the documents.")
            if pending.four_eyes
            else _("Somebody who may approve has to do so first.")
        )
        if pending.source_id is not None:
            found.append(_("The answer that was approved before goes on serving."))
    if pending.approved_by is not None and pending.approved_at is not None:
        found.append(
            _("%(name)s approved it on %(day)s.")
            % {"name": pending.approved_by, "day": day_of(pending.approved_at)}
        )
    if pending.state == State.APPROVED:
        found.append(gap_sentence(pending))
    if pending.state == State.IGNORED:
        found.append(_("Why: %(reason)s") % {"reason": pending.ignored_because})
    return found


def gap_sentence(pending: PendingQuestion) -> str:
    """Say what came of asking again."""
    if pending.gap == Gap.CLOSED:
        return _("Asked again, it is found: the gap is closed.")
    if pending.gap == Gap.OPEN:
        return _(
            "Asked again, it is still not found. Write the question nearer to the words "
            "in which it was asked, add these words as another wording, or say more in "
            "the answer."
        )
    return _("It is asked again once the answer is in the documents.")


def day_of(at: datetime) -> str:
    """Return a day in the page's language."""
    return date_format(timezone.localdate(at), "DATE_FORMAT")


def bases_of(pending: PendingQuestion, user: User) -> list[str]:
    """Name the knowledge bases that a question was asked of; the others are not told of."""
    return list(
        KnowledgeBase.objects.administered_by(user)
        .filter(pk__in=pending.knowledge_base_ids)
        .order_by("name")
        .values_list("name", flat=True)
    )
