"""Question sets in the admin: keeping, files, runs, figures, comparing, scope."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from django_q.models import OrmQ
from pytest_django.fixtures import Settings

from knowledge.models import AuditEntry, KnowledgeBase, User
from knowledge.permissions import Access, grant
from retrieval.exchange import Line
from retrieval.measuring import carry_out, import_lines, request_run
from retrieval.models import Question, QuestionSet, SetRun
from retrieval.tuning import SearchType, Tuning, current
from tests.cast import Cast
from tests.factories import StaffFactory
from tests.retrieval.shelf import layer_of, put

pytestmark = pytest.mark.django_db
RENT = "The rent is due on the third of May."


@pytest.fixture
def base(settings: Settings) -> KnowledgeBase:
    """A knowledge base of one passage; no model answers."""
    settings.PORTAL_EMBEDS = False
    layer = layer_of("leases")
    put(layer, RENT, path="a/rent.md")
    return layer.knowledge_base


@pytest.fixture
def alice(base: KnowledgeBase) -> User:
    """An editor of it."""
    person: User = StaffFactory(username="alice", groups=["Editor"])
    grant(base, [Access.LIST, Access.SEARCH], to=person, actor=None)
    return person


@pytest.fixture
def client(alice: User) -> Client:
    """The editor's browser."""
    client = Client()
    client.force_login(alice)
    return client


@pytest.fixture
def question_set(base: KnowledgeBase, alice: User) -> QuestionSet:
    """A set of two questions."""
    made = QuestionSet.objects.create(name="Leases")
    made.knowledge_bases.add(base)
    lines = [
        Line("rent due", "1", "en", places=({"file": "a/rent.md", "clause": "3"},)),
        Line("swimming pool", "2", "en", is_answerable=False),
    ]
    import_lines(made, lines, actor=alice)
    made.refresh_from_db()
    return made


def page_of(name: str, *keys: object) -> str:
    return reverse(f"admin:retrieval_{name}", args=keys)


def formset(*rows: dict[str, object], initial: int = 0) -> dict[str, object]:
    """Return the inline questions as a browser sends them."""
    data: dict[str, object] = {
        "questions-TOTAL_FORMS": len(rows),
        "questions-INITIAL_FORMS": initial,
    }
    for number, row in enumerate(rows):
        for name, value in row.items():
            data[f"questions-{number}-{name}"] = value
    return data


@pytest.mark.req("S2-LOG-03")
def test_a_set_is_written_with_its_questions_on_one_page(
    client: Client, base: KnowledgeBase
) -> None:
    answer = client.post(
        page_of("questionset_add"),
        {
            "name": "Daily",
            "knowledge_bases": [base.pk],
            "checks_settings": "on",
            **formset(
                {
                    "text": "When is the rent due?",
                    "language": "en",
                    "is_answerable": "on",
                    "places": "a/rent.md | 3 Rent | third of May\n\na/old.md",
                },
                {"text": "bassein", "language": "mixed", "notes": "misspelt"},
            ),
        },
    )
    assert answer.status_code == 302, answer.content.decode()
    made = QuestionSet.objects.get(name="Daily")
    first, second = made.questions.all()
    assert first.places == [
        {"file": "a/rent.md", "section": "3 Rent", "quote": "third of May"},
        {"file": "a/old.md"},
    ]
    assert (second.is_answerable, second.language) == (False, "mixed")
    entry = AuditEntry.objects.filter(target_type="questionset").get()
    assert (entry.verb, entry.detail["questions"]) == ("created", 2)
    assert entry.knowledge_base_id == base.pk


def test_what_an_import_knew_besides_survives_an_edit(
    client: Client, question_set: QuestionSet
) -> None:
    first, second = question_set.questions.all()
    version = question_set.version
    answer = client.post(
        page_of("questionset_change", question_set.pk),
        {
            "name": "Leases",
            "knowledge_bases": [base.pk for base in question_set.knowledge_bases.all()],
            "checks_settings": "on",
            **formset(
                {
                    "id": first.pk,
                    "text": "rent due when",
                    "language": "en",
                    "is_answerable": "on",
                    "places": "a/rent.md",
                },
                {"id": second.pk, "DELETE": "on"},
                initial=2,
            ),
        },
    )
    assert answer.status_code == 302
    left = question_set.questions.get()
    assert (left.text, left.places) == (
        "rent due when",
        [{"file": "a/rent.md", "clause": "3"}],
    )
    question_set.refresh_from_db()
    assert question_set.version == version + 1


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (
            {"text": "a", "places": "a.md"},
            "do not answer it, so there is no place",
        ),
        ({"text": "a", "is_answerable": "on", "places": "| 3"}, "Line 1 has no file"),
    ],
)
def test_a_question_that_contradicts_itself_is_refused(
    client: Client, base: KnowledgeBase, row: dict[str, object], says: str
) -> None:
    answer = client.post(
        page_of("questionset_add"),
        {"name": "Odd", "knowledge_bases": [base.pk], **formset(row)},
    )
    assert answer.status_code == 200
    assert says in answer.content.decode()
    assert not QuestionSet.objects.exists()


@pytest.mark.req("S2-LOG-03")
def test_questions_come_and_go_as_files(
    client: Client, question_set: QuestionSet
) -> None:
    for kind in ("jsonl", "csv"):
        sent = client.get(page_of("questionset_export", question_set.pk, kind))
        assert sent.headers["Content-Disposition"].endswith(f'leases.{kind}"')
        file = SimpleUploadedFile(f"q.{kind}", sent.content)
        back = client.post(
            page_of("questionset_import", question_set.pk), {"file": file}, follow=True
        )
        assert "0 questions are new" in back.content.decode()
    broken = SimpleUploadedFile("q.jsonl", b'{"question": ""}')
    answer = client.post(
        page_of("questionset_import", question_set.pk), {"file": broken}
    )
    assert "Line 1 has no question" in answer.content.decode()
    other = SimpleUploadedFile("q.jsonl", b"\xff\xfe")
    answer = client.post(
        page_of("questionset_import", question_set.pk), {"file": other}
    )
    assert "UTF-8" in answer.content.decode()
    missing = client.get(page_of("questionset_export", question_set.pk, "exe"))
    assert missing.status_code == 404


@pytest.mark.req("S2-LOG-03", "D20")
def test_a_run_is_queued_watched_and_shown_over_time(
    client: Client, question_set: QuestionSet
) -> None:
    page = page_of("questionset_runs", question_set.pk)
    assert "Not run yet" in client.get(page).content.decode()
    client.post(page, {"label": "first"})
    run = SetRun.objects.get()
    assert OrmQ.objects.count() == 1
    progress = page_of("setrun_progress")
    row = client.get(progress, {"id": run.pk}).json()["rows"][str(run.pk)]
    assert (row["state"], row["stage"], row["done"]) == (
        "pending",
        "0 of 2 questions",
        False,
    )
    carry_out(run.pk)
    assert client.get(progress, {"id": run.pk}).json()["rows"][str(run.pk)]["done"]
    client.post(page, {"label": "second"})
    carry_out(SetRun.objects.latest("pk").pk)
    shown = client.get(page).content.decode()
    assert '<svg class="chart"' in shown
    assert "1.000" in shown
    detail = client.get(page_of("setrun_change", run.pk)).content.decode()
    assert "a/rent.md" in detail
    assert "not judged" in detail
    again = client.get(page_of("setrun_change", run.pk), {"only": "missed"})
    assert again.status_code == 200


@pytest.mark.req("S2-LOG-03")
def test_two_configurations_stand_beside_each_other(
    client: Client, question_set: QuestionSet, alice: User
) -> None:
    before = request_run(question_set, current(), actor=alice)
    semantic = Tuning(search_type=SearchType.SEMANTIC)
    after = request_run(question_set, semantic, actor=alice)
    for run in (before, after):
        carry_out(run.pk)
    page = client.get(
        page_of("setrun_compare"), {"before": before.pk, "after": after.pk}
    ).content.decode()
    assert "0 better, 1 worse, 1 the same." in page
    assert "by meaning and words" in page
    assert "by meaning alone" in page
    assert "rent due" in page
    other = QuestionSet.objects.create(name="Other")
    SetRun.objects.filter(pk=after.pk).update(question_set=other)
    odd = client.get(page_of("setrun_compare"), {"before": before.pk, "after": "x"})
    assert odd.status_code == 404


@pytest.mark.req("REL-A7")
def test_another_persons_view_needs_the_right(
    client: Client, question_set: QuestionSet, alice: User
) -> None:
    bob = StaffFactory(username="bob")
    page = page_of("questionset_runs", question_set.pk)
    client.post(page, {"label": "", "asked_as": "bob"})
    assert SetRun.objects.get().asked_as == alice
    boss = Client()
    boss.force_login(StaffFactory(is_superuser=True))
    boss.post(page, {"label": "", "asked_as": "bob"})
    assert SetRun.objects.latest("pk").asked_as == bob
    odd = boss.post(page, {"label": "", "asked_as": "nobody"})
    assert "no active person" in odd.content.decode()


@pytest.mark.req("REL-A7", "D25")
def test_a_set_out_of_scope_is_not_there(
    question_set: QuestionSet, alice: User, cast: Cast
) -> None:
    run = request_run(question_set, current(), actor=alice)
    carry_out(run.pk)
    editor = cast.editor.client()
    question = question_set.questions.first()
    assert question is not None
    for page in (
        page_of("questionset_change", question_set.pk),
        page_of("questionset_runs", question_set.pk),
        page_of("questionset_import", question_set.pk),
        page_of("questionset_export", question_set.pk, "csv"),
        page_of("question_change", question.pk),
        page_of("setrun_change", run.pk),
        f"{page_of('setrun_compare')}?before={run.pk}&after={run.pk}",
    ):
        assert editor.get(page).status_code == 404, page
    rows = editor.get(page_of("setrun_progress"), {"id": run.pk}).json()["rows"]
    assert rows == {}
    for name in ("questionset", "question", "setrun"):
        page = editor.get(page_of(f"{name}_changelist")).content.decode()
        assert "Leases" not in page
    # Nor may its knowledge base be put into a set of one's own.
    base = question_set.knowledge_bases.get()
    answer = editor.post(
        page_of("questionset_add"),
        {"name": "Mine", "knowledge_bases": [base.pk], **formset()},
    )
    assert answer.status_code == 200
    assert "not one of the available choices" in answer.content.decode()


def test_single_questions_are_kept_on_their_own_pages(
    client: Client, question_set: QuestionSet
) -> None:
    version = question_set.version
    answer = client.post(
        page_of("question_add"),
        {
            "question_set": question_set.pk,
            "text": "third of May",
            "language": "en",
            "is_answerable": "on",
            "places": "a/rent.md",
        },
    )
    assert answer.status_code == 302, answer.content.decode()
    made = Question.objects.latest("pk")
    assert made.position == 3
    client.post(page_of("question_delete", made.pk), {"post": "yes"})
    question_set.refresh_from_db()
    assert (question_set.questions.count(), question_set.version) == (2, version + 2)
    client.post(page_of("questionset_delete", question_set.pk), {"post": "yes"})
    assert not QuestionSet.objects.exists()
    entry = AuditEntry.objects.filter(verb="deleted").get()
    assert json.dumps(entry.detail) == '{"questions": 2}'


def test_a_large_set_leaves_its_questions_to_their_own_pages(
    client: Client, question_set: QuestionSet, alice: User
) -> None:
    lines = [Line(f"question {number}") for number in range(70)]
    import_lines(question_set, lines, actor=alice)
    page = client.get(page_of("questionset_change", question_set.pk)).content.decode()
    assert "The 72 questions of this set are edited one by one" in page
    assert "questions-TOTAL_FORMS" not in page
