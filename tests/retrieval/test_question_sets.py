"""Question sets: their files, their runs, and what a change of the settings does."""

import json
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db.models.functions import Now
from django_q.models import OrmQ
from pytest_django.fixtures import Settings

from knowledge.actions import ActionError
from knowledge.models import KnowledgeBase, User
from knowledge.permissions import Access, deny, grant
from retrieval.adjusting import propose_tuning
from retrieval.evaluation import lowered
from retrieval.exchange import ExchangeError, Line, read_lines, write_csv, write_jsonl
from retrieval.measuring import (
    carry_out,
    check_proposal,
    figures_of,
    import_lines,
    judgements,
    line_of,
    request_run,
    resume,
)
from retrieval.models import QuestionSet, SetRun
from retrieval.models.question_set import SetRunState
from retrieval.tuning import SearchType, Tuning, current
from tests.cast import Cast
from tests.factories import StaffFactory
from tests.retrieval.shelf import layer_of, open_space, put
from tests.stored_corpus import Corpus

RENT = "The rent is due on the third of May."
DEPOSIT = "A deposit of two rents is paid before the keys are handed over."


# --- Files ---------------------------------------------------------------------

JSONL = """\
{"id": "1", "kind": "plain", "lang": "en", "question": "When is the rent due?", \
"answerable": true, "answers": ["third of May"], "gold": [{"file": "a/rent.md", \
"section": "3 Rent", "quote": "third of May", "clause": "3"}], "superseded": ["old.md"]}
{"id": "1", "lang": "ru", "question": "Когда платить?", "passage_id": "p-17"}

{"id": "2", "lang": "en", "question": "Who is king?", "answerable": false}
"""


@pytest.mark.req("S2-LOG-03")
def test_questions_come_from_json_lines_and_go_back_as_they_came() -> None:
    lines = read_lines(JSONL, "questions.jsonl")
    assert [line.key for line in lines] == ["1", "1", "2"]
    assert lines[0].places[0]["quote"] == "third of May"
    assert lines[0].extra["superseded"] == ["old.md"]
    assert lines[1].places == ({"file": "p-17"},)
    assert [line.is_answerable for line in lines] == [True, True, False]
    again = write_jsonl(lines)
    assert read_lines(again, "q.jsonl") == lines
    first = json.loads(again.splitlines()[0])
    assert first["gold"][0]["clause"] == "3"
    assert first["kind"] == "plain"


def test_a_table_has_a_line_for_each_place() -> None:
    lines = [
        Line(
            text="=SUM(A1)?",
            key="7",
            language="en",
            places=({"file": "a.md", "quote": "-1 °C"}, {"file": "b.md"}),
            notes="@home",
        ),
        Line(text="Who is king?", key="8", is_answerable=False),
    ]
    text = write_csv(lines)
    assert "'=SUM(A1)?" in text
    assert read_lines(text, "Questions.CSV") == lines
    semicolons = "\ufeffquestion;lang\r\nWo ist, was?;en\r\n\r\n"
    (line,) = read_lines(semicolons, "q.csv")
    assert (line.text, line.language) == ("Wo ist, was?", "en")


@pytest.mark.parametrize(
    ("text", "name", "says"),
    [
        ("", "q.jsonl", "no question"),
        ("{", "q.jsonl", "Line 1 is not JSON"),
        ("[1]", "q.jsonl", "not an object"),
        ('{"id": 1}', "q.jsonl", "Line 1 has no question"),
        ('{"question": "a\\u0000"}', "q.jsonl", "broken text"),
        ('{"question": "a", "x": NaN}', "q.jsonl", "broken text"),
        ('{"question": "a", "lang": "xx"}', "q.jsonl", "lang is one of"),
        ('{"question": "a", "answerable": 1}', "q.jsonl", "true nor false"),
        ('{"question": "a", "gold": 1}', "q.jsonl", "list of places"),
        ('{"question": "a", "passage_ids": 1}', "q.jsonl", "not a list"),
        ('{"question": "a", "gold": [{"quote": "b"}]}', "q.jsonl", "no file"),
        (
            '{"question": "a", "answerable": false, "gold": [{"file": "b"}]}',
            "q.jsonl",
            "documents do not answer it",
        ),
        ('{"id": 1, "question": "a"}\n{"id": 1, "question": "b"}', "q", "twice"),
        ('{"question": "' + "a" * 1001 + '"}', "q.jsonl", "at most 1,000"),
        ("frage\nWo?", "q.csv", "must name the columns"),
        ("question,answerable\nWo?,perhaps", "q.csv", "true nor false"),
        ('question\n"Wo?', "q.csv", "cannot be read"),
    ],
)
def test_a_file_that_is_wrong_is_refused_in_a_sentence(
    text: str, name: str, says: str
) -> None:
    with pytest.raises(ExchangeError, match=says):
        read_lines(text, name)


# --- Runs ----------------------------------------------------------------------


@pytest.fixture
def base(db: None, settings: Settings) -> KnowledgeBase:
    """A knowledge base of two passages; no model answers."""
    settings.PORTAL_EMBEDS = False
    layer = layer_of("leases")
    put(layer, RENT, path="a/rent.md")
    put(layer, DEPOSIT, path="a/deposit.md")
    return layer.knowledge_base


@pytest.fixture
def alice(base: KnowledgeBase) -> User:
    """An editor who works on it."""
    person: User = StaffFactory(username="alice", groups=["Editor"])
    grant(base, [Access.LIST, Access.SEARCH], to=person, actor=None)
    return person


@pytest.fixture
def question_set(base: KnowledgeBase, alice: User) -> QuestionSet:
    """Two questions that are answered, and one that is not."""
    made = QuestionSet.objects.create(name="Leases")
    made.knowledge_bases.add(base)
    import_lines(
        made,
        [
            Line("rent due", "1", "en", places=({"file": "a/rent.md", "quote": RENT},)),
            Line("deposit keys", "2", "en", places=({"file": "a/deposit.md"},)),
            Line("swimming pool", "3", "en", is_answerable=False),
        ],
        actor=alice,
    )
    made.refresh_from_db()
    return made


def run_of(question_set: QuestionSet, tuning: Tuning, actor: User) -> SetRun:
    run = request_run(question_set, tuning, actor=actor)
    carry_out(run.pk)
    run.refresh_from_db()
    return run


def test_what_is_imported_again_changes_what_it_names(
    question_set: QuestionSet, alice: User
) -> None:
    again = [line_of(question) for question in question_set.questions.all()]
    assert import_lines(question_set, again, actor=alice) == (0, 0)
    changed = Line("deposit and keys", "2", "en", places=({"file": "a/deposit.md"},))
    new = Line("without an id")
    assert import_lines(question_set, [changed, new], actor=alice) == (1, 1)
    assert import_lines(question_set, [new], actor=alice) == (0, 0)
    texts = question_set.questions.values_list("text", flat=True)
    assert list(texts) == [
        "rent due",
        "deposit and keys",
        "swimming pool",
        "without an id",
    ]
    before = question_set.version
    question_set.refresh_from_db()
    assert question_set.version == before + 1, "unchanged questions change nothing"


@pytest.mark.req("S2-LOG-03", "R19")
def test_a_run_asks_each_question_once_and_leaves_no_other_trace(
    question_set: QuestionSet, alice: User
) -> None:
    run = run_of(question_set, current(), alice)
    assert (run.state, run.done, run.total) == (SetRunState.DONE, 3, 3)
    assert (run.ndcg, run.recall) == (1.0, 1.0)
    assert run.refusal_accuracy is None, "nothing judged its confidence"
    first = run.outcomes.get(question__key="1")
    assert first.rank == 1
    assert first.hits[0]["file"] == "a/rent.md"
    assert first.hits[0]["branches"] == {"keywords": 1}
    assert RENT not in json.dumps(first.hits), "the text stays where it is (D2)"
    assert carry_out(run.pk) == "held", "a finished run is not run again"


@pytest.mark.req("D20")
def test_a_killed_run_goes_on_where_its_outcomes_end(
    question_set: QuestionSet, alice: User
) -> None:
    run = run_of(question_set, current(), alice)
    kept = run.outcomes.get(question__key="1")
    run.outcomes.exclude(pk=kept.pk).delete()
    SetRun.objects.filter(pk=run.pk).update(
        state=SetRunState.RUNNING, done=1, lease_until=Now()
    )
    OrmQ.objects.all().delete()
    resume([run])
    resume([run])
    assert OrmQ.objects.count() == 1, "asked for once"
    assert carry_out(run.pk) == SetRunState.DONE
    run.refresh_from_db()
    assert run.done == 3
    assert run.outcomes.get(question__key="1").pk == kept.pk


def test_a_run_that_stops_its_worker_again_and_again_is_given_up(
    question_set: QuestionSet, alice: User
) -> None:
    run = request_run(question_set, current(), actor=alice)
    SetRun.objects.filter(pk=run.pk).update(attempts=3)
    assert carry_out(run.pk) == "held"
    run.refresh_from_db()
    assert run.state == SetRunState.FAILED
    assert "again and again" in run.reason


def test_a_run_without_its_vectors_would_measure_another_search(
    question_set: QuestionSet, alice: User, settings: Settings, monkeypatch
) -> None:
    monkeypatch.setattr("retrieval.measuring.EMBED_PAUSE", 0.0)
    settings.PORTAL_EMBEDS = True
    settings.STRATA_MODEL_URL = "http://127.0.0.1:9"
    open_space()
    run = run_of(question_set, current(), alice)
    assert run.state == SetRunState.FAILED
    assert "model server" in run.reason
    words = run_of(question_set, Tuning(search_type=SearchType.LEXICAL), alice)
    assert words.state == SetRunState.DONE
    assert words.is_trial


def test_trials_are_not_kept_for_ever(question_set: QuestionSet, alice: User) -> None:
    trial = run_of(question_set, Tuning(search_type=SearchType.SEMANTIC), alice)
    held = run_of(question_set, current(), alice)
    for run in (trial, held):
        SetRun.objects.filter(pk=run.pk).update(created_at=Now() - timedelta(days=31))
    newest = run_of(question_set, current(), alice)
    assert set(question_set.runs.all()) == {held, newest}


@pytest.mark.req("S2-LOG-03")
def test_a_run_sees_what_its_reader_sees_and_no_more_than_the_set(
    question_set: QuestionSet, base: KnowledgeBase, alice: User
) -> None:
    outside = layer_of("outside")
    put(outside, RENT, path="elsewhere.md")
    grant(outside.knowledge_base, [Access.SEARCH], to=alice, actor=None)
    run = run_of(question_set, current(), alice)
    assert run.knowledge_base_ids == [base.pk]
    hits = run.outcomes.get(question__key="1").hits
    assert [hit["file"] for hit in hits] == ["a/rent.md"]
    bob = StaffFactory(username="bob")
    blind = request_run(question_set, current(), actor=alice, asked_as=bob)
    carry_out(blind.pk)
    blind.refresh_from_db()
    assert (blind.ndcg, blind.asked_as) == (0.0, bob)


def test_a_set_belongs_to_who_works_on_all_of_its_knowledge_bases(
    question_set: QuestionSet, alice: User
) -> None:
    run = run_of(question_set, current(), alice)
    bob = StaffFactory(username="bob", groups=["Editor"])
    boss = StaffFactory(username="boss", is_superuser=True)

    def seen(person: User) -> tuple[bool, bool]:
        return (
            QuestionSet.objects.administered_by(person).exists(),
            SetRun.objects.administered_by(person).filter(pk=run.pk).exists(),
        )

    assert seen(alice) == (True, True)
    assert seen(bob) == (False, False)
    other = layer_of("outside").knowledge_base
    question_set.knowledge_bases.add(other)
    assert seen(alice) == (False, False)
    grant(other, [Access.SEARCH], to=alice, actor=None)
    assert seen(alice) == (True, True)
    deny(other, to=alice, actor=None)
    assert seen(alice) == (False, False)
    question_set.knowledge_bases.clear()
    assert seen(alice) == (False, False)
    assert seen(boss) == (True, True)


@pytest.mark.req("S2-LOG-03")
def test_a_run_tells_how_often_it_refused_rightly(corpus: Corpus, cast: Cast) -> None:
    assert cast.granted.user is not None
    made = QuestionSet.objects.create(name="Members")
    made.knowledge_bases.add(corpus.handbook)
    lines = [
        Line("What happens when a member loses the payment card?", "1", "en"),
        Line(
            "How deep is the Mariana trench below sea level?",
            "2",
            "en",
            is_answerable=False,
        ),
    ]
    import_lines(made, lines, actor=None)
    run = run_of(made, current(), cast.granted.user)
    assert run.state == SetRunState.DONE, run.reason
    assert (run.ranked_questions, run.judged_questions) == (0, 2)
    told = {each.question.key: each for each in run.outcomes.all()}
    assert (told["1"].refused, told["2"].refused) == (False, True)
    assert told["1"].confidence > told["2"].confidence
    assert run.refusal_accuracy == 1.0


# --- Before a change is saved --------------------------------------------------


@pytest.mark.req("R3", "S2-LOG-03")
def test_a_change_is_measured_against_what_holds(
    question_set: QuestionSet, alice: User
) -> None:
    before = run_of(question_set, current(), alice)
    proposal = propose_tuning({"search_type": "semantic"}, actor=alice)
    (check,) = check_proposal(proposal, actor=alice)
    assert check.before == before, "what stands already is not measured again"
    carry_out(check.after.pk)
    check.after.refresh_from_db()
    # Without vectors a search by meaning finds nothing.
    assert check.after.ndcg == 0.0
    told = lowered(figures_of(check.before), figures_of(check.after))
    assert told == ("ndcg", "recall")
    assert len(judgements(check.after)) == 3
    question_set.checks_settings = False
    question_set.save()
    assert check_proposal(proposal, actor=alice) == []


def test_a_set_without_questions_cannot_run(base: KnowledgeBase, alice: User) -> None:
    empty = QuestionSet.objects.create(name="Empty")
    with pytest.raises(ActionError, match="no question yet"):
        request_run(empty, current(), actor=alice)


# --- The command ---------------------------------------------------------------


@pytest.mark.req("S2-LOG-03")
def test_the_command_prints_the_figures(
    question_set: QuestionSet, alice: User, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("run_question_set", "Leases", "--as", "alice", "--json")
    first = json.loads(capsys.readouterr().out)
    assert (first["ndcg"], first["recall"], first["ranked"]) == (1.0, 1.0, 2)
    call_command(
        "run_question_set", "Leases", "--as=alice", "--set", "search_type=semantic"
    )
    said = capsys.readouterr().out
    assert "nDCG@10" in said
    assert "search_type = semantic" in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["Nothing", "--as=alice"], "no question set"),
        (["Leases", "--as=nobody"], "no active person"),
        (["Leases", "--as=alice", "--set", "colour=red"], "no setting"),
        (["Leases", "--as=alice", "--set", "rrf_k=many"], "rrf_k"),
        (["Leases", "--as=alice", "--set", "candidates=5"], "Raise the candidates"),
    ],
)
def test_the_command_refuses_in_a_sentence(
    question_set: QuestionSet, arguments: list[str], says: str
) -> None:
    with pytest.raises(CommandError, match=says):
        call_command("run_question_set", *arguments)
