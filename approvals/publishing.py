"""Approved answers in the corpus: each a `qa` source, ingested like any other."""

import hashlib
from io import BytesIO

import yaml
from django.utils import timezone

from approvals.models import PendingQuestion
from knowledge.actions import (
    Upload,
    delete_source,
    move_source,
    replace_source,
    upload_source,
)
from knowledge.models import Source, User
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

    What is found by is both, since a passage is indexed with its title; what is quoted
    is the answer alone, so that no question is ever quoted as an answer (D8).
    """
    head = yaml.safe_dump(
        {
            "title": row.question_as_answered,
            "updated": timezone.localdate().isoformat(),
            "answer": str(row.public_id),
        },
        allow_unicode=True,
        sort_keys=False,
        width=10_000,
    )
    return f"---\n{head}---\n\n{row.answer}\n"
