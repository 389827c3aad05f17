"""The verbs of question sets: keep their questions, queue a run, carry it out.

A run is a row of ours, which the queue only carries (D20): it goes on where its outcomes
end, whoever takes it up. Its searches leave no trace (R19).
"""

import hashlib
import json
import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db import models, transaction
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils.translation import gettext as _
from django_q.tasks import async_task

from knowledge.actions import ActionError
from knowledge.models import KnowledgeBase, User
from knowledge.models.audit import record
from knowledge.permissions import Reader
from knowledge.vitals import CLUSTER, leave_sign
from retrieval.calibration import newest_fit
from retrieval.embedding import space_in_use
from retrieval.evaluation import (
    NDCG_DEPTH,
    Entry,
    Figures,
    Judgement,
    Place,
    expected,
    figures,
    first_rank,
    judge_ranks,
)
from retrieval.exchange import Line
from retrieval.models import (
    Question,
    QuestionOutcome,
    QuestionSet,
    SetRun,
    TuningCheck,
    TuningProposal,
)
from retrieval.models.question_set import SetRunState
from retrieval.results import Hit, Level
from retrieval.search import SearchInputError
from retrieval.trying import Trial, try_search
from retrieval.tuning import Tuning, current, from_environment, values_of, with_values

logger = logging.getLogger(__name__)

TASK: Final = "retrieval.tasks.run_question_set"
# How long a worker holds a run without a word; each question extends it.
LEASE: Final = timedelta(seconds=60)
MOST_ATTEMPTS: Final = 3
# How often, and with what pause (s), a question waits for its vector.
EMBED_TRIES: Final = 3
EMBED_PAUSE: Final = 2.0
# How long the runs are kept that only tried other settings.
KEEP_TRIALS: Final = timedelta(days=30)
OPEN_STATES: Final = (SetRunState.QUEUED, SetRunState.RUNNING)


class RunError(Exception):
    """A run that cannot be finished; the message says why."""


# --- Questions ------------------------------------------------------------------


@transaction.atomic
def import_lines(
    question_set: QuestionSet, lines: Sequence[Line], *, actor: User | None
) -> tuple[int, int]:
    """Bring questions into a set; returns how many are new and how many changed.

    A line takes the place of the question with its id and language, without an id of
    the one with its words.
    """
    locked = QuestionSet.objects.select_for_update().get(pk=question_set.pk)
    by_key: dict[tuple[str, str], Question] = {}
    by_text: dict[str, Question] = {}
    position = 0
    for question in locked.questions.all():
        position = max(position, question.position)
        by_text[question.text] = question
        if question.key:
            by_key[question.key, question.language] = question
    added = changed = 0
    for line in lines:
        known = by_key.get((line.key, line.language)) if line.key else None
        if known is None and not line.key:
            known = by_text.get(line.text)
        question = known or Question(question_set=locked)
        before = line_of(question)
        if known is None:
            position += 1
            question.position = position
            added += 1
        elif before != line:
            changed += 1
        else:
            continue
        question.key, question.text, question.language = (
            line.key,
            line.text,
            line.language,
        )
        question.is_answerable = line.is_answerable
        question.places = [dict(place) for place in line.places]
        question.notes, question.extra = line.notes, dict(line.extra)
        question.save()
        by_text[line.text] = question
    if added or changed:
        questions_changed(locked)
        record(actor, "imported", locked, added=added, changed=changed)
    return added, changed


def line_of(question: Question) -> Line:
    """Return a question as files have it."""
    return Line(
        text=question.text,
        key=question.key,
        language=question.language,
        is_answerable=question.is_answerable,
        places=tuple(question.places),
        notes=question.notes,
        extra=question.extra,
    )


def questions_changed(question_set: QuestionSet) -> None:
    """Say that earlier runs asked other questions."""
    QuestionSet.objects.filter(pk=question_set.pk).update(version=F("version") + 1)


# --- Asking for a run -----------------------------------------------------------


def reader_for(question_set: QuestionSet, asked_as: User) -> Reader:
    """Return who asks: the person, within the set's own knowledge bases."""
    ids = question_set.knowledge_bases.values_list("pk", flat=True)
    return Reader(user_id=asked_as.pk, limit=frozenset(ids))


def request_run(
    question_set: QuestionSet,
    tuning: Tuning,
    *,
    actor: User,
    asked_as: User | None = None,
    label: str = "",
    reuses: bool = False,
    queued: bool = True,
) -> SetRun:
    """Return a new run, queued with its audit entry in one transaction.

    With `reuses`, an earlier run that must give the same figures is returned instead.
    Raises ActionError where there is nothing to ask.
    """
    person = asked_as or question_set.asked_as or actor
    reader = reader_for(question_set, person)
    total = question_set.questions.count()
    if total == 0:
        raise ActionError(_("“%(name)s” has no question yet.") % {"name": question_set})
    print_of = fingerprint(question_set, tuning, reader)
    if reuses:
        earlier = (
            question_set.runs.filter(fingerprint=print_of)
            .exclude(state=SetRunState.FAILED)
            .first()
        )
        if earlier is not None:
            return earlier
    held = current()
    with transaction.atomic():
        run = SetRun.objects.create(
            question_set=question_set,
            set_version=question_set.version,
            values=values_of(tuning),
            tuning_version=held.version,
            is_trial=values_of(tuning) != values_of(held),
            label=label,
            knowledge_base_ids=sorted(reader.searchable),
            fingerprint=print_of,
            asked_as=person,
            asked_as_label=str(person)[:200],
            requested_by=actor,
            total=total,
        )
        record(actor, "ran", question_set, run=run.pk, asked_as=str(person))
        if queued:
            async_task(TASK, run.pk, save=False)
    return run


def fingerprint(question_set: QuestionSet, tuning: Tuning, reader: Reader) -> str:
    """Return the same text for runs whose figures must be the same."""
    bases = KnowledgeBase.objects.visible_to(reader).order_by("pk")
    space = space_in_use()
    parts = [
        settings.VERSION,
        question_set.pk,
        question_set.version,
        values_of(tuning),
        list(bases.values_list("pk", "version")),
        space.fingerprint if space is not None else "",
        newest_fit(),
    ]
    text = json.dumps(parts, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


@transaction.atomic
def check_proposal(proposal: TuningProposal, *, actor: User) -> list[TuningCheck]:
    """Queue what tells whether proposed settings lower a set's figures.

    Each set that checks settings, and that the actor works on, is asked under the
    settings that hold and under the proposed ones; a run that stands already is used
    again.
    """
    now = current()
    wanted = with_values(now, proposal.values)
    sets = QuestionSet.objects.administered_by(actor).filter(
        checks_settings=True, pk__in=Question.objects.values("question_set")
    )
    proposal.checks.all().delete()
    return [
        TuningCheck.objects.create(
            proposal=proposal,
            before=request_run(each, now, actor=actor, reuses=True),
            after=request_run(each, wanted, actor=actor, reuses=True),
        )
        for each in sets
    ]


def resume(runs: Iterable[SetRun]) -> None:
    """Queue again the runs that nobody works on; the queue may lose anything."""
    left = Q(state=SetRunState.RUNNING, lease_until__lt=Now()) | Q(
        state=SetRunState.QUEUED, queued_at__lt=Now() - LEASE
    )
    keys = [run.pk for run in runs]
    for pk in SetRun.objects.filter(left, pk__in=keys).values_list("pk", flat=True):
        with transaction.atomic():
            taken = SetRun.objects.filter(left, pk=pk).update(
                state=SetRunState.QUEUED, lease_until=None, queued_at=Now()
            )
            if taken:
                async_task(TASK, pk, save=False)


# --- Carrying it out ------------------------------------------------------------


def carry_out(run_id: int) -> str:
    """Ask the questions of a run that are still to be asked; returns its state.

    Does nothing where another worker holds the run.
    """
    run = claim(run_id)
    if run is None:
        return "held"
    try:
        for question in remaining(run):
            outcome = ask(run, question)
            if not keep(run, outcome):
                return "held"
        finish(run)
    except RunError as error:
        logger.warning("Run %s of a question set: %s", run.pk, error)
        fail(run, str(error))
    return run.state


def claim(run_id: int) -> SetRun | None:
    """Take a run, counting the attempt before its work begins."""
    free = Q(lease_until__isnull=True) | Q(lease_until__lt=Now())
    rows = SetRun.objects.filter(free, pk=run_id, state__in=OPEN_STATES)
    taken = rows.update(
        state=SetRunState.RUNNING,
        attempts=F("attempts") + 1,
        lease_until=Now() + LEASE,
    )
    if not taken:
        return None
    run = SetRun.objects.select_related("question_set", "asked_as").get(pk=run_id)
    if run.attempts > MOST_ATTEMPTS:
        fail(run, _("It stopped its worker again and again, so it is not tried again."))
        return None
    return run


def remaining(run: SetRun) -> Iterator[Question]:
    """Yield the questions without an outcome."""
    asked = run.outcomes.values("question")
    yield from run.question_set.questions.exclude(pk__in=asked).iterator()


def ask(run: SetRun, question: Question) -> QuestionOutcome:
    """Return what one question finds; raises RunError where the search is crippled."""
    if run.asked_as is None or not run.asked_as.is_active:
        raise RunError(_("The person it was asked as is not active any more."))
    reader = reader_for(run.question_set, run.asked_as)
    tuning = with_values(from_environment(), run.values)
    started = time.perf_counter()
    try:
        trial = with_vector(reader, question.text, tuning)
    except SearchInputError as error:
        raise RunError(
            _("“%(question)s” cannot be asked: %(why)s")
            % {"question": question.text[:80], "why": error.message}
        ) from error
    return outcome_of(run, question, trial, 1000 * (time.perf_counter() - started))


def with_vector(reader: Reader, text: str, tuning: Tuning) -> Trial:
    """Search; where the model server is away for longer, there is nothing to measure."""
    needed = settings.PORTAL_EMBEDS and space_in_use() is not None
    for attempt in range(EMBED_TRIES):
        if attempt:
            time.sleep(EMBED_PAUSE)
        trial = try_search(reader, text, tuning, count=NDCG_DEPTH)
        if not (needed and trial.lacks_vector):
            return trial
    raise RunError(
        _(
            "The model server does not answer, so the figures would be of another search."
        )
    )


def outcome_of(
    run: SetRun, question: Question, trial: Trial, milliseconds: float
) -> QuestionOutcome:
    """Return one question's outcome, judged."""
    places = places_of(question)
    identifier = str(question.extra.get("identifier") or "")
    hits, sure = trial.result.hits, trial.result.confidence
    entries = [entry_of(hit) for hit in hits]
    rank = first_rank(entries, places, identifier)
    refused = None if sure is None else sure.level is Level.LOW
    judged = judge_ranks(
        rank,
        is_answerable=question.is_answerable,
        has_places=bool(places),
        refused=refused,
    )
    marks = expected(entries, places, identifier)
    return QuestionOutcome(
        run=run,
        question=question,
        hits=[
            shown(hit, is_expected=mark)
            for hit, mark in list(zip(hits, marks, strict=True))[:NDCG_DEPTH]
        ],
        rank=rank,
        ndcg=judged.ndcg,
        recall=judged.recall,
        refused=refused,
        confidence=None if sure is None else sure.score,
        milliseconds=round(milliseconds, 1),
    )


def places_of(question: Question) -> list[Place]:
    """Return the places that answer a question."""
    return [
        Place(
            str(place.get("file", "")),
            str(place.get("section", "")),
            str(place.get("quote", "")),
        )
        for place in question.places
    ]


def entry_of(hit: Hit) -> Entry:
    """Return a hit as the figures take it."""
    return Entry(hit.citation.file, hit.text, hit.citation.clause_path)


def shown(hit: Hit, *, is_expected: bool) -> dict[str, object]:
    """Return what an outcome keeps of a hit: where it stands, never its text (D2)."""
    return {
        "ref": hit.ref,
        "file": hit.citation.file,
        "lines": hit.citation.lines,
        "branches": {str(branch): rank.rank for branch, rank in hit.branches.items()},
        "score": round(hit.score, 6),
        "similarity": round(hit.similarity, 4),
        "rerank_score": hit.rerank_score,
        "is_expected": is_expected,
    }


def keep(run: SetRun, outcome: QuestionOutcome) -> bool:
    """Write one outcome and extend the lease; False where the run is held no more."""
    with transaction.atomic():
        held = SetRun.objects.filter(
            pk=run.pk, state=SetRunState.RUNNING, attempts=run.attempts
        )
        if not held.update(done=F("done") + 1, lease_until=Now() + LEASE):
            return False
        outcome.save()
    # A task of the cluster that goes on for minutes must not make it look stuck.
    leave_sign(CLUSTER)
    return True


def finish(run: SetRun) -> None:
    """Write the figures of a run whose questions were all asked."""
    run.question_set.runs.filter(
        is_trial=True, created_at__lt=Now() - KEEP_TRIALS
    ).delete()
    told = figures(judgements(run).values())
    run.ndcg, run.recall = told.ndcg, told.recall
    run.refusal_accuracy = told.refusal_accuracy
    run.refusal_recall = told.refusal_recall
    run.false_refusal_rate = told.false_refusal_rate
    run.ranked_questions, run.judged_questions = told.ranked, told.judged
    run.state, run.lease_until, run.finished_at = SetRunState.DONE, None, Now()
    run.save(
        update_fields=[
            "ndcg",
            "recall",
            "refusal_accuracy",
            "refusal_recall",
            "false_refusal_rate",
            "ranked_questions",
            "judged_questions",
            "state",
            "lease_until",
            "finished_at",
        ]
    )


def fail(run: SetRun, reason: str) -> None:
    """End a run that cannot go on."""
    run.state, run.reason, run.lease_until = SetRunState.FAILED, reason, None
    run.finished_at = Now()
    run.save(update_fields=["state", "reason", "lease_until", "finished_at"])


# --- What came of it ------------------------------------------------------------


def judgements(run: SetRun) -> Mapping[int, Judgement]:
    """Return each question's outcome by the question's key."""
    rows = run.outcomes.values_list(
        "question_id", "question__is_answerable", "ndcg", "recall", "refused"
    )
    return {
        pk: Judgement(
            is_answerable=is_answerable, ndcg=ndcg, recall=recall, refused=refused
        )
        for pk, is_answerable, ndcg, recall, refused in rows
    }


def figures_of(run: SetRun) -> Figures:
    """Return the figures that a finished run has."""
    return Figures(
        ndcg=run.ndcg,
        recall=run.recall,
        refusal_accuracy=run.refusal_accuracy,
        refusal_recall=run.refusal_recall,
        false_refusal_rate=run.false_refusal_rate,
        ranked=run.ranked_questions,
        judged=run.judged_questions,
    )


def over_time(runs: models.QuerySet[SetRun], most: int) -> list[SetRun]:
    """Return the last finished ones under settings that held, oldest first."""
    rows = runs.filter(state=SetRunState.DONE, is_trial=False)
    return list(rows[:most])[::-1]
