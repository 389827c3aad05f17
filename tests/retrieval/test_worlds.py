"""What readers find in random worlds, against an oracle in plain Python.

The worlds of `tests.knowledge.test_permissions` (people, groups, grants, denies, tokens,
everyone) get layers, sources that are on or off, expired or not, and passages; some
people have a memory and conversations. Each person asks something, in one of the ways a
search is asked, and must find exactly what the oracle finds.

`STRATA_TEST_WORLDS` and `STRATA_TEST_SEED` as in that module.
"""

import math
import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from knowledge.models import (
    Conversation,
    Document,
    EmbeddingSpace,
    KnowledgeBase,
    Layer,
    Passage,
    PassageVector,
    Source,
    Statement,
    User,
)
from knowledge.models.source import SourceKind, SourceState
from knowledge.permissions import Reader
from retrieval.embedding import QueryVector, no_vector
from retrieval.memory import recall
from retrieval.results import Branch, Hit
from retrieval.search import search
from retrieval.tuning import SearchType, from_environment
from tests.factories import DocumentFactory, PassageFactory, SourceFactory
from tests.knowledge.test_permissions import BATCH, SEED, WORLDS, Worlds, oracle
from tests.retrieval.shelf import MODEL, open_space

pytestmark = pytest.mark.django_db

# No word is another one's beginning, inflection or neighbour in spelling.
WORDS = ("zorvanka", "kelimbuk", "putrigos", "naxfeldt", "wimbrolu")
CODES = ("QX-07", "RT-12")
MOST = 50


@dataclass(frozen=True)
class Text:
    """A passage as the oracle knows it."""

    base: str
    layer: str
    words: tuple[str, ...]
    code: str
    vector: tuple[float, ...]
    on: bool
    expired: bool
    owner: str = ""
    conversation: str = ""


@dataclass(frozen=True)
class Talk:
    """A conversation: with whom, and whether it goes on."""

    name: str
    owner: str
    open: bool


@dataclass(frozen=True)
class Question:
    """What one person asks, and what they narrow it to."""

    words: tuple[str, ...] = ()
    code: str = ""
    vector: tuple[float, ...] = ()
    layers: tuple[str, ...] | None = None


@dataclass
class Shelves:
    """The texts of some worlds, as plain values and as rows."""

    texts: list[Text] = field(default_factory=list)
    talks: list[Talk] = field(default_factory=list)
    text_of: dict[int, Text] = field(default_factory=dict)
    talk_ids: dict[str, uuid.UUID] = field(default_factory=dict)

    @classmethod
    def draw(cls, worlds: Worlds, dice: random.Random) -> "Shelves":
        """Draw the texts of each knowledge base, and some people's memories."""
        made = cls()
        for base in worlds.knowledge_bases:
            for layer in ("main", "prices")[: dice.randint(1, 2)]:
                for _ in range(dice.randint(0, 2)):
                    made.texts.append(draw_text(dice, base, layer))
        for person in worlds.people:
            if dice.random() < 0.6:
                continue
            talks = [
                Talk(f"{person.name}:{each}", person.name, dice.random() < 0.7)
                for each in range(dice.randint(0, 2))
            ]
            made.talks += talks
            made.texts += [
                replace(
                    draw_text(dice, f"memory:{person.name}", "main"),
                    owner=person.name,
                    conversation=dice.choice(["", *(talk.name for talk in talks)]),
                )
                for _ in range(dice.randint(1, 3))
            ]
        return made

    def store(self, worlds: Worlds, user_of: dict[str, User]) -> None:
        """Write the rows, with vectors in the one space."""
        now = timezone.now()
        bases = dict(worlds.base_of)
        owners = {text.base: text.owner for text in self.texts if text.owner}
        for base in KnowledgeBase.objects.bulk_create(
            KnowledgeBase(name=name, slug=name.replace(":", "-"), owner=user_of[owner])
            for name, owner in owners.items()
        ):
            bases[base.name] = base
        places = sorted({(text.base, text.layer) for text in self.texts})
        layers = dict(
            zip(
                places,
                Layer.objects.bulk_create(
                    Layer(knowledge_base=bases[base], name=name)
                    for base, name in places
                ),
                strict=True,
            )
        )
        sources = Source.objects.bulk_create(
            SourceFactory.build(
                layer=layers[text.base, text.layer],
                kind=SourceKind.MEMORY if text.owner else SourceKind.DOCUMENT,
                state=SourceState.READY,
                passage_count=1,
                enabled=text.on,
                expires_at=self.end_of(text, now),
            )
            for text in self.texts
        )
        documents = Document.objects.bulk_create(
            DocumentFactory.build(
                source=source, text=" ".join((*text.words, text.code)).strip()
            )
            for source, text in zip(sources, self.texts, strict=True)
        )
        passages = Passage.objects.bulk_create(
            PassageFactory.build(document=document, context="")
            for document in documents
        )
        space = EmbeddingSpace.objects.get()
        PassageVector.objects.bulk_create(
            PassageVector(
                space=space,
                passage=passage,
                knowledge_base_id=passage.knowledge_base_id,
                dimension=space.dimension,
                embedded_sha256=passage.embedded_sha256,
                embedding=list(text.vector),
            )
            for passage, text in zip(passages, self.texts, strict=True)
        )
        self.text_of = {
            passage.pk: text for passage, text in zip(passages, self.texts, strict=True)
        }
        self.store_memories(sources, user_of, now)

    def end_of(self, text: Text, now: Any) -> Any:
        """Return when a text expires: an hour ago, or for some in an hour."""
        if text.expired:
            return now - timedelta(hours=1)
        return now + timedelta(hours=1) if len(text.words) % 2 else None

    def store_memories(
        self, sources: list[Source], user_of: dict[str, User], now: Any
    ) -> None:
        """Write conversations, and the statement of each text of a memory."""
        hour = timedelta(hours=1)
        talks = Conversation.objects.bulk_create(
            Conversation(
                owner=user_of[talk.owner], ends_at=now + (hour if talk.open else -hour)
            )
            for talk in self.talks
        )
        row_of = {talk.name: row for talk, row in zip(self.talks, talks, strict=True)}
        self.talk_ids = {name: row.public_id for name, row in row_of.items()}
        Statement.objects.bulk_create(
            Statement(
                owner=user_of[text.owner],
                source=source,
                conversation=row_of.get(text.conversation),
                text=" ".join(text.words),
                digest=f"{source.pk:064}",
            )
            for source, text in zip(sources, self.texts, strict=True)
            if text.owner
        )

    # --- The oracle ------------------------------------------------------------

    def visible(self, searchable: set[str]) -> set[int]:
        """Return the passages that somebody may find who searches these bases."""
        return {
            pk
            for pk, text in self.text_of.items()
            if text.base in searchable and text.on and not text.expired
        }

    def recallable(self, person: str, talk: str) -> set[int]:
        """Return the passages of a memory that a person may recall in a talk."""
        goes_on = {each.name for each in self.talks if each.open}
        theirs = {each.name for each in self.talks if each.owner == person}
        return {
            pk
            for pk, text in self.text_of.items()
            if text.owner == person
            and text.on
            and not text.expired
            and (
                not text.conversation
                or (text.conversation == talk and talk in goes_on and talk in theirs)
            )
        }

    def within(self, seen: set[int], question: Question) -> set[int]:
        """Return those of some passages that are in the layers a question names."""
        if question.layers is None:
            return seen
        return {
            pk
            for pk in seen
            for text in [self.text_of[pk]]
            if {text.layer, f"{text.base}/{text.layer}"} & set(question.layers)
        }

    def check(self, hits: tuple[Hit, ...], seen: set[int], question: Question) -> None:
        """Hold what was found against what there is to find."""
        found = {hit.passage_id for hit in hits}
        texts = {pk: self.text_of[pk] for pk in self.within(seen, question)}
        assert len(texts) <= MOST, "draw smaller worlds"
        if question.vector:
            assert found == set(texts)
            nearness = {
                pk: cosine(text.vector, question.vector) for pk, text in texts.items()
            }
            ranks = [hit.branches[Branch.MEANING].rank for hit in hits]
            in_order = [
                nearness[hit.passage_id]  # type: ignore[index]
                for _rank, hit in sorted(
                    zip(ranks, hits, strict=True), key=lambda pair: pair[0]
                )
            ]
            for hit in hits:
                expected = nearness[hit.passage_id]  # type: ignore[index]
                assert hit.similarity == pytest.approx(expected, abs=1e-5)
            for one, next_one in pairwise(in_order):
                assert one >= next_one - 1e-5
        elif question.code:
            assert found == {
                pk for pk, text in texts.items() if text.code == question.code
            }
            assert all(Branch.CODES in hit.branches for hit in hits)
        else:
            wanted = set(question.words)
            all_words = {pk for pk, text in texts.items() if wanted <= set(text.words)}
            some = {pk for pk, text in texts.items() if wanted & set(text.words)}
            assert found == (all_words or some)
            for hit in hits:
                assert hit.branches[Branch.KEYWORDS].relaxed == (not all_words)


def draw_text(dice: random.Random, base: str, layer: str) -> Text:
    """Draw one passage."""
    return Text(
        base=base,
        layer=layer,
        words=tuple(dice.sample(WORDS, dice.randint(1, 3))),
        code=dice.choice(["", "", *CODES]),
        vector=draw_vector(dice),
        on=dice.random() < 0.85,
        expired=dice.random() < 0.12,
    )


def draw_vector(dice: random.Random) -> tuple[float, ...]:
    """Draw a unit vector of four dimensions."""
    parts = [dice.gauss(0, 1) for _ in range(4)]
    length = math.sqrt(sum(each * each for each in parts))
    return tuple(each / length for each in parts)


def cosine(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    """Return the cosine of two unit vectors."""
    return sum(a * b for a, b in zip(one, other, strict=True))


def draw_question(dice: random.Random, worlds: Worlds) -> Question:
    """Draw what somebody asks."""
    layers = None
    if dice.random() < 0.3:
        base = dice.choice(worlds.knowledge_bases)
        names = ("main", "prices", f"{base}/main", f"{base}/prices", "nowhere")
        layers = tuple(dice.sample(names, dice.randint(1, 3)))
    way = dice.random()
    if way < 0.4:
        return Question(vector=draw_vector(dice), layers=layers)
    if way < 0.6:
        return Question(code=dice.choice(CODES), layers=layers)
    words = tuple(dice.sample(WORDS, dice.choice([1, 1, 2])))
    return Question(words=words, layers=layers)


def asked(reader: Reader, question: Question) -> tuple[Hit, ...]:
    """Ask the product."""
    hybrid = from_environment()
    layers = list(question.layers) if question.layers is not None else None
    if question.vector:
        # A word that stands nowhere: only meaning can find anything.
        return search(
            reader,
            "quorvit",
            layers=layers,
            top_k=MOST,
            query_vector=question.vector,
            query_model=MODEL,
            tuning=hybrid,
        ).hits
    lexical = replace(hybrid, search_type=SearchType.LEXICAL)
    text = question.code or " ".join(question.words)
    return search(reader, text, layers=layers, top_k=MOST, tuning=lexical).hits


def recalled(reader: Reader, question: Question, talk: uuid.UUID | None) -> Any:
    """Ask what is remembered."""
    tuning = from_environment()
    vector = no_vector
    if question.vector:
        space = EmbeddingSpace.objects.get()
        vector = lambda: QueryVector(space, question.vector)  # type: ignore[assignment,return-value]  # noqa: E731
    return recall(
        reader,
        question.code or " ".join(question.words) or "quorvit",
        conversation_id=talk,
        tuning=tuning,
        count=MOST,
        vector=vector,
    ).hits


def batches() -> Iterator[tuple[str, random.Random, Worlds, Shelves, dict[str, User]]]:
    """Yield worlds that are in the database while they are looked at."""
    for batch in range(-(-WORLDS // BATCH)):
        seed = f"{SEED}:shelves:{batch}"
        dice = random.Random(seed)
        with transaction.atomic():
            worlds = Worlds.draw(dice)
            user_of = worlds.store(dice)
            shelves = Shelves.draw(worlds, dice)
            shelves.store(worlds, user_of)
            yield seed, dice, worlds, shelves, user_of
            transaction.set_rollback(True)


@pytest.mark.req("S3-VIS-01", "S3-VIS-06", "REL-A2")
@pytest.mark.timeout(3600)
def test_everybody_finds_exactly_what_the_oracle_finds() -> None:
    open_space()
    found = recalled_some = 0
    for seed, dice, worlds, shelves, user_of in batches():
        for person in worlds.people:
            question = draw_question(dice, worlds)
            where = (seed, person.name, question)
            reader = worlds.reader(person, user_of[person.name])
            _listed, searchable = oracle(person, worlds.rows)
            seen = shelves.visible(searchable)
            passages = Passage.objects.visible_to(reader)
            assert set(passages.values_list("pk", flat=True)) == seen, where
            hits = asked(reader, question)
            found += len(hits)
            try:
                shelves.check(hits, seen, question)
            except AssertionError as error:
                raise AssertionError(where) from error
            own = [talk.name for talk in shelves.talks if talk.owner == person.name]
            if not own and dice.random() < 0.8:
                continue
            talk = dice.choice(["", "never was", *own, *shelves.talk_ids])
            remembers = person.active and person.limit is None
            kept = shelves.recallable(person.name, talk) if remembers else set()
            named = shelves.talk_ids.get(talk, uuid.uuid4() if talk else None)
            question = replace(question, layers=None)
            hits = recalled(reader, question, named)
            recalled_some += len(hits)
            try:
                shelves.check(hits, kept, question)
            except AssertionError as error:
                raise AssertionError((where, talk)) from error
    # Else the comparison would show nothing.
    assert found > WORLDS / 2
    assert recalled_some > WORLDS / 40
