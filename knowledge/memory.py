"""What is remembered about a person: kept, forgotten, and gone with its conversation.

A statement is a source in the person's own knowledge base and goes through the same
ingest as any other. It is between the person and the portal: no list of knowledge bases
has it, no grant opens it, and no administrator reads it.
"""

import hashlib
import secrets
import uuid
from io import BytesIO

from django.db import transaction
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from knowledge.actions import (
    ActionError,
    Upload,
    delete_source,
    queue_run,
    store_original,
)
from knowledge.models import (
    Conversation,
    KnowledgeBase,
    Layer,
    Source,
    Statement,
    User,
)
from knowledge.models.audit import record
from knowledge.models.memory import IDLE, LONGEST_STATEMENT, idle_end
from knowledge.models.source import Purpose, SourceKind
from knowledge.permissions import Reader
from knowledge.register import rules_for
from knowledge.sanitizing import InvalidTextError, clean_query

MOST_STATEMENTS = 1000
MOST_CONVERSATIONS = 1000
# The end of an open conversation is moved on at most so often.
RESOLUTION = IDLE / 1440
# The title and file name of each: what it says is not told by either.
FILE_NAME = "remembered.txt"
TITLE = "remembered"


class MemoryClosedError(ActionError):
    """Whoever asks has no memory: a token with a scope, or somebody who views as."""


class NoConversationError(ActionError):
    """No conversation of this person goes on under this id, whatever it is."""


def person_of(reader: Reader) -> User:
    """Return whose memory a reader's is; raises MemoryClosedError."""
    person = None
    if reader.user_id is not None and reader.has_memory:
        person = User.objects.filter(pk=reader.user_id, is_active=True).first()
    if person is None:
        raise MemoryClosedError(
            _(
                "A token that is scoped to knowledge bases has no memory. Use one for "
                "all that its owner may search, or an agent client that may recall it."
            )
        )
    return person


def memory_base(person: User) -> KnowledgeBase:
    """Return the knowledge base of a person's memory; it is made at its first use."""
    name = secrets.token_hex(16)
    base, is_new = KnowledgeBase.objects.get_or_create(
        owner=person,
        # Its names name nobody.
        defaults={"name": f"Memory {name}", "slug": f"memory-{name}"},
    )
    if is_new:
        Layer.objects.create(knowledge_base=base, name="main")
    return base


# --- Conversations -------------------------------------------------------------


@transaction.atomic
def start_conversation(reader: Reader) -> Conversation:
    """Start a conversation with a reader's person; its id is drawn here."""
    person = person_of(reader)
    going_on = Conversation.objects.open_to(reader)
    if going_on.count() >= MOST_CONVERSATIONS:
        raise ActionError(
            _("There are %(most)s conversations going on. End some of them first.")
            % {"most": MOST_CONVERSATIONS}
        )
    return Conversation.objects.create(owner=person)


def conversation_of(reader: Reader, public_id: uuid.UUID) -> Conversation:
    """Return an open conversation of this person, locked; raises NoConversationError.

    The caller holds a transaction. An id that somebody else was given, one that has
    ended and one that never was are answered alike.
    """
    found = (
        Conversation.objects.open_to(reader)
        .select_for_update()
        .filter(public_id=public_id)
        .first()
    )
    if found is None:
        raise NoConversationError(_("There is no such conversation, or it has ended."))
    return found


def keep_open(reader: Reader) -> None:
    """Move the end of the reader's conversation on: something is said in it now."""
    if reader.conversation_id is None:
        return
    Conversation.objects.open_to(reader).filter(
        public_id=reader.conversation_id, ends_at__lt=idle_end() - RESOLUTION
    ).update(ends_at=idle_end())


@transaction.atomic
def end_conversation(reader: Reader, public_id: uuid.UUID) -> None:
    """End a conversation; what was said in it is forgotten. Raises as above."""
    person = person_of(reader)
    conversation = conversation_of(reader, public_id)
    Conversation.objects.filter(pk=conversation.pk).update(ends_at=Now())
    forget_all(conversation, actor=person)


def forget_all(conversation: Conversation, *, actor: User | None) -> None:
    """Forget what was said in a conversation; the caller holds a transaction."""
    for source in Source.objects.filter(statement__conversation=conversation):
        delete_source(source, actor=actor)


def sweep_conversations() -> int:
    """Delete conversations that have ended, with what was said; returns how many."""
    count = 0
    for conversation in Conversation.objects.filter(ends_at__lte=Now()).iterator():
        with transaction.atomic():
            forget_all(conversation, actor=None)
            conversation.delete()
        count += 1
    return count


# --- Statements ----------------------------------------------------------------


def remember(
    reader: Reader, text: str, *, conversation_id: uuid.UUID | None = None
) -> Statement:
    """Remember a statement about a reader's person, and queue its ingest.

    With a conversation, it is recalled in that one alone and forgotten at its end. What
    is remembered there already is returned as it is. Raises ActionError with a sentence,
    NoConversationError among them.
    """
    person = person_of(reader)
    try:
        said = clean_query(text, max_length=LONGEST_STATEMENT)
    except InvalidTextError as error:
        raise ActionError(str(error)) from error
    with transaction.atomic():
        # One at a time for each person, so that the same words come in once.
        User.objects.select_for_update().get(pk=person.pk)
        conversation = None
        if conversation_id is not None:
            conversation = conversation_of(reader, conversation_id)
            Conversation.objects.filter(pk=conversation.pk).update(ends_at=idle_end())
        digest = hashlib.sha256(said.encode()).hexdigest()
        own = Statement.objects.filter(owner=person)
        known = own.filter(conversation=conversation, digest=digest).first()
        if known is not None:
            return known
        if own.count() >= MOST_STATEMENTS:
            raise ActionError(
                _("%(most)s statements are remembered already. Delete some first.")
                % {"most": MOST_STATEMENTS}
            )
        return write(person, said, conversation, digest)


def write(
    person: User, said: str, conversation: Conversation | None, digest: str
) -> Statement:
    """Keep a statement as a source; the caller holds the transaction."""
    base = memory_base(person)
    if reason := rules_for(base.pk).against(texts=[said]):
        raise ActionError(reason)
    public_id = uuid.uuid4()
    original = store_original(Upload(BytesIO(said.encode()), FILE_NAME), base)
    source = Source.objects.create(
        knowledge_base=base,
        layer=base.layers.get(),
        kind=SourceKind.MEMORY,
        purpose=Purpose.OTHER,
        title=TITLE,
        path=f"{public_id}/{FILE_NAME}",
        original=original,
        created_by=person,
        changed_at=Now(),
    )
    statement = Statement.objects.create(
        public_id=public_id,
        owner=person,
        source=source,
        conversation=conversation,
        text=said,
        digest=digest,
    )
    record(person, "remembered", source)
    queue_run(source, actor=person)
    return statement


def forget(reader: Reader, public_id: uuid.UUID) -> bool:
    """Forget one statement about this person; tells whether there was one."""
    person = person_of(reader)
    statement = (
        Statement.objects.filter(owner=person, public_id=public_id)
        .select_related("source")
        .first()
    )
    if statement is None:
        return False
    delete_source(statement.source, actor=person)
    return True
