"""Approved answers in the corpus: each a `qa` source, ingested like any other."""

import hashlib
from io import BytesIO

import yaml
from django.utils import timezone
from django.utils.translation import gettext as _

from approvals.errors import ApprovalError, ForbiddenError
from approvals.models import PendingQuestion
from knowledge.actions import (
    Upload,
    delete_source,
    move_source,
    replace_source,
    upload_source,
)
from knowledge.frontmatter import ASKED_AS
from knowledge.models import KnowledgeBase, Layer, Source, User
from knowledge.models.source import Purpose, SourceKind

FOLDER = "approved-answers"


def put_in(row: PendingQuestion, *, actor: User) -> None:
    """Give a question's answer its source, or its source the changed answer.

    The caller holds the row and saves it. Raises UploadError where the source register
    keeps the answer out, or where the knowledge base holds the same words already.
    """
    layer = row.layer
    if layer is None:
        raise ValueError(f"{row} has no layer")
    content = document_of(row).encode()
    upload = Upload(BytesIO(content), path_of(row))
    source = row.source
    if source is None:
        row.source = upload_source(
            upload,
            layer=layer,
            actor=actor,
            title=row.question_as_answered,
            purpose=Purpose.FAQ,
            kind=SourceKind.QA,
        )
        return
    if source.layer_id != layer.pk:
        move_source(source, layer=layer, actor=actor)
        source.refresh_from_db()
    Source.objects.filter(pk=source.pk).update(title=row.question_as_answered)
    if hashlib.sha256(content).hexdigest() != source.content_sha256:
        source = replace_source(source, upload, actor=actor)
    row.source = source


def chosen_layer(row: PendingQuestion, person: User, layer: Layer | None) -> Layer:
    """Return where an answer goes; raises ApprovalError where it must be chosen.

    Without a choice it stays where it is, or goes to the first layer of the only
    knowledge base that it can be for: never to one of several, which might be read by
    other people than the person had in mind.
    """
    own = Layer.objects.administered_by(person).select_related("knowledge_base")
    wanted = layer or row.layer
    if wanted is not None:
        found = own.filter(pk=wanted.pk).first()
        if found is None:
            raise ForbiddenError(
                _("You do not work on that layer. Choose another one.")
            )
        return found
    bases = KnowledgeBase.objects.administered_by(person).filter(
        pk__in=row.knowledge_base_ids
    )
    layers = own.filter(knowledge_base__in=bases).order_by("pk")
    if len({each.knowledge_base_id for each in layers}) != 1:
        raise ApprovalError(_("Choose the layer that the answer goes to."))
    return layers[0]


def path_of(row: PendingQuestion) -> str:
    """Return the path under which citations show a question's answer."""
    return f"{FOLDER}/{row.public_id}.md"


def take_out(row: PendingQuestion, *, actor: User | None) -> None:
    """Delete the source of a question's answer; what was cited from it stays saved."""
    if row.source is not None:
        delete_source(row.source, actor=actor)
        row.source = None


def document_of(row: PendingQuestion) -> str:
    """Return the answer as a document whose title is the question.

    What is found by is both, since a passage is indexed with its title, and with the
    other wordings of the question; what is quoted is the answer alone, so that no
    question is ever quoted as an answer (D8).
    """
    values: dict[str, str | list[str]] = {
        "title": row.question_as_answered,
        "updated": timezone.localdate().isoformat(),
        "answer": str(row.public_id),
    }
    if row.also_asked:
        values[ASKED_AS] = list(row.also_asked)
    head = yaml.safe_dump(
        values,
        allow_unicode=True,
        sort_keys=False,
        width=10_000,
    )
    return f"---\n{head}---\n\n{row.answer}\n"
