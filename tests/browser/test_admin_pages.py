"""Every page of the admin, at two widths and in both themes."""

import io
from uuid import uuid4

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from approvals.models import Delivery, Subscriber
from knowledge.actions import Upload
from knowledge.models import (
    AgentClient,
    AuditEntry,
    IngestRun,
    NeverRule,
    Passage,
    RegisterEntry,
    Source,
)
from knowledge.models.audit import record
from knowledge.models.ingest import RunState, Stage
from knowledge.models.register import Decision, RuleKind
from knowledge.models.source import SourceState
from knowledge.permissions import Access, grant
from retrieval.adjusting import propose_tuning, save_tuning
from retrieval.exchange import Line
from retrieval.impact import impact_of, keep, look_before
from retrieval.measuring import carry_out, check_proposal, import_lines, request_run
from retrieval.models import (
    Feedback,
    ImpactReport,
    LearnedItem,
    LearningSignal,
    QuestionSet,
    SearchLog,
    SetRun,
    Snapshot,
    Turn,
)
from retrieval.models.impact import Act, Moment
from retrieval.tuning import current
from tests.approvals.channels import hook_contact, mail_contact, told
from tests.approvals.shown import waiting
from tests.browser.conftest import Visit
from tests.browser.looking import WIDTHS, look_at
from tests.cast import Cast
from tests.factories import CalibrationFactory, SourceFactory, ready_source
from tests.retrieval.receipts import issued
from tests.stored_corpus import Corpus

LISTS = (
    "source",
    "knowledgebase",
    "layer",
    "document",
    "passage",
    "ingestrun",
    "registerentry",
    "neverrule",
    "auditentry",
    "apitoken",
    "agentclient",
    "user",
    "embeddingspace",
)


def addresses(shelves: Corpus, cast: Cast) -> dict[str, str]:
    """Return the admin's pages by name, with something to show on each."""
    layer = shelves.handbook.layers.get()
    source = ready_source("The rent is due in May.", layer=layer, title="Rent")
    document = source.documents.get()
    document.report = ["Page 3 holds only an image without text."]
    document.save()
    record(cast.superuser.user, "uploaded", source, size=12)
    moving = SourceFactory(layer=layer, state=SourceState.PROCESSING)
    run = IngestRun.objects.create(
        source=moving,
        generation=1,
        due_at=timezone.now(),
        state=RunState.RUNNING,
        stage=Stage.EMBED,
        percent=42,
    )
    SourceFactory(
        layer=layer, state=SourceState.FAILED, state_reason="The PDF has no text."
    )
    candidate = RegisterEntry.objects.create(
        knowledge_base=shelves.handbook,
        title="The price list of our suppliers",
        location="purchasing/2026/supplier-price-list-with-conditions.csv",
        decision=Decision.REJECTED,
        reason="Purchase prices stay with purchasing.",
        decided_by=cast.editor.user,
    )
    rule = NeverRule.objects.create(
        kind=RuleKind.NAME, pattern="*.pst", reason="Mail archives never enter."
    )
    entry = AuditEntry.objects.filter(target_type="source").latest("at")
    assert cast.token_in_scope.token_row is not None
    assert cast.granted.user is not None
    agent = AgentClient.objects.get(name="agent_token")
    shown = {
        "source": source.pk,
        "knowledgebase": shelves.handbook.pk,
        "layer": layer.pk,
        "document": document.pk,
        "passage": document.passages.get().pk,
        "ingestrun": run.pk,
        "auditentry": entry.pk,
        "apitoken": cast.token_in_scope.token_row.pk,
        "agentclient": agent.pk,
        "user": cast.granted.user.pk,
        "registerentry": candidate.pk,
        "neverrule": rule.pk,
    }
    pages = {name: f"knowledge_{name}_changelist" for name in LISTS}
    pages |= {f"{name}-add": f"knowledge_{name}_add" for name in ("source", "layer")}
    pages |= {
        f"{name}-add": f"knowledge_{name}_add"
        for name in ("apitoken", "user", "agentclient")
    }
    pages |= {
        f"{name}-add": f"knowledge_{name}_add"
        for name in ("registerentry", "neverrule")
    }
    found = {name: reverse(f"admin:{page}") for name, page in pages.items()}
    for name, key in shown.items():
        found[f"{name}-page"] = reverse(f"admin:knowledge_{name}_change", args=[key])
    for name in ("source", "layer"):
        found[f"{name}-delete"] = reverse(
            f"admin:knowledge_{name}_delete", args=[shown[name]]
        )
    found["moving"] = reverse("admin:knowledge_source_change", args=[moving.pk])
    found["history"] = reverse("admin:knowledge_source_history", args=[source.pk])
    found["agent-token"] = reverse("admin:knowledge_agentclient_token", args=[agent.pk])
    found["erase"] = reverse("admin:knowledge_source_erase", args=[source.pk])
    access = reverse("admin:knowledge_knowledgebase_access", args=[shelves.handbook.pk])
    found["access"] = f"{access}?person=granted"
    found["finders"] = reverse(
        "admin:knowledge_knowledgebase_finders", args=[shelves.handbook.pk]
    )
    source_finders = reverse("admin:knowledge_source_finders", args=[source.pk])
    found["source-finders"] = f"{source_finders}?person=granted"
    found["bulk"] = reverse("admin:knowledge_knowledgebase_bulk")
    found["view-as"] = reverse(
        "admin:knowledge_user_view_as", args=[cast.granted.user.pk]
    )
    found["calibration"] = reverse("admin:retrieval_calibration_changelist")
    found["calibration-page"] = reverse(
        "admin:retrieval_calibration_change", args=[CalibrationFactory().pk]
    )
    receipt = issued(cast.granted.reader, document.passages.get(), draft="In May [S1].")
    found["receipts"] = reverse("admin:retrieval_receipt_changelist")
    found["receipt"] = reverse("admin:retrieval_receipt_change", args=[receipt.pk])
    found |= impact_addresses(source, cast)
    found |= learned_addresses(shelves, document.passages.get())
    found |= told_addresses(shelves, cast)
    found["overview"] = reverse("admin:index")
    found["groups"] = reverse("admin:auth_group_changelist")
    found["group"] = reverse("admin:auth_group_change", args=[cast.members.pk])
    found["password"] = reverse("admin:password_change")
    return {**found, **tuning_addresses(shelves, cast)}


def learned_addresses(shelves: Corpus, passage: Passage) -> dict[str, str]:
    """Return the pages of what was learned and of ratings, with some of each."""
    layer = passage.layer
    words = {
        "synonym": ("block", ["freeze"]),
        "rewrite": (
            "What do I do when the card that I pay my rent with is gone?",
            ["report a lost payment card", "lost card fee"],
        ),
        "affinity": ("rent", []),
    }
    for number, (kind, (term, value)) in enumerate(words.items()):
        item = LearnedItem.objects.create(
            kind=kind,
            key=kind,
            term=term,
            value=value,
            layer=layer,
            knowledge_base_ids=[layer.knowledge_base_id],
            origin="reworded",
            state=("on", "off", "on")[number],
            is_pinned=kind == "affinity",
            seen=3,
            usage_count=number,
            digest=kind.ljust(64, "0"),
        )
        row = SearchLog.objects.create(
            door="portal",
            count=5,
            status="found",
            query=term,
            knowledge_bases=item.knowledge_base_ids,
            interaction_id=uuid4(),
        )
        item.evidence.add(
            LearningSignal.objects.create(
                kind="reworded",
                first=row.interaction_id,
                second=row.interaction_id,
                knowledge_base_ids=item.knowledge_base_ids,
                at=timezone.now(),
            )
        )
        rating = Feedback.objects.create(
            interaction_id=row.interaction_id,
            is_helpful=kind == "affinity",
            reasons=["wrong", "outdated"] if kind == "rewrite" else [],
            comment="It is June since the new rules." if kind == "rewrite" else "",
            knowledge_base_ids=item.knowledge_base_ids,
        )
        rating.passages.create(
            worth=("wrong", "outdated", "useful")[number],
            ref=passage.document.ref(passage.start, passage.end),
            revision=passage.document.number,
            source=passage.source,
        )
    listed = reverse("admin:retrieval_learneditem_changelist")
    ratings = reverse("admin:retrieval_feedback_changelist")
    rewrite = LearnedItem.objects.get(kind="rewrite")
    return {
        "learned": listed,
        "learned-none": f"{listed}?show=removed",
        "learned-item": reverse(
            "admin:retrieval_learneditem_change", args=[rewrite.pk]
        ),
        "feedback": ratings,
        "feedback-sources": f"{ratings}?by=sources",
        "feedback-answers": f"{ratings}?by=answers",
    }


def told_addresses(shelves: Corpus, cast: Cast) -> dict[str, str]:
    """Return the pages of who is told of questions and answers."""
    assert cast.superuser.user is not None
    pending = waiting("Where is the lift?", shelves.handbook)
    contacts = [mail_contact(cast.superuser.user), hook_contact(cast.superuser.user)]
    for contact, problem in zip(
        contacts, ("", "The server answered 503."), strict=True
    ):
        told(contact, pending)
        contact.notifications.update(problem=problem)
    subscriber = Subscriber.objects.create(
        client=AgentClient.objects.get(name="agent_token"),
        last_sequence=1,
        push_url="https://kiosk.bank.example/strata/answers",
        push_problem="The server answered 503.",
    )
    Delivery.objects.create(
        client=subscriber.client, pending=pending, revision=1, kind="answer", sequence=1
    )
    pages = {
        "contacts": reverse("admin:approvals_contact_changelist"),
        "contact-add": reverse("admin:approvals_contact_add"),
        "contact": reverse("admin:approvals_contact_change", args=[contacts[1].pk]),
        "deliveries": reverse("admin:approvals_subscriber_changelist"),
        "delivery": reverse("admin:approvals_subscriber_change", args=[subscriber.pk]),
    }
    return {f"told-{name}": address for name, address in pages.items()}


def impact_addresses(source: Source, cast: Cast) -> dict[str, str]:
    """Return the pages of what quotes a source, before its text changes or goes."""
    passage = source.passages.get()
    turn = Turn.objects.create(
        client=AgentClient.objects.get(name="agent_token"), owner=cast.granted.user
    )
    Snapshot.objects.create(
        turn=turn,
        number=1,
        knowledge_base=source.knowledge_base,
        source=source,
        document=passage.document,
        revision=passage.document.number,
        start=passage.start,
        end=passage.end,
        ref=passage.document.ref(passage.start, passage.end),
        text=passage.text,
        text_sha256="0" * 64,
        layer="main",
        lines="1",
        text_origin="text",
        score=1.0,
        indexed_at=passage.document.created_at,
    )
    boss = cast.superuser.user
    assert boss is not None
    grant(source.knowledge_base, [Access.SEARCH], to=boss, actor=None)
    text = b"The rent is due in June, and the deposit in May.\n"
    before = look_before(source, Upload(io.BytesIO(text), "rent.md"), actor=boss)
    after = keep(
        impact_of(source, text.decode()),
        source,
        act=Act.REPLACEMENT,
        moment=Moment.AFTER,
        earlier=before,
        made_by=boss,
    )
    removed = keep(
        impact_of(source, None),
        source,
        act=Act.REMOVAL,
        moment=Moment.AFTER,
        made_by=boss,
    )
    ImpactReport.objects.filter(pk=removed.pk).update(source=None)
    page = "admin:retrieval_impactreport_"
    return {
        "impact-after": reverse(f"{page}change", args=[after.pk]),
        "impact-removed": reverse(f"{page}change", args=[removed.pk]),
        "impacts": reverse(f"{page}changelist"),
        "impact-before": reverse(f"{page}change", args=[before.pk]),
        "impact-removal": reverse(f"{page}removal", args=[source.pk]),
    }


def tuning_addresses(shelves: Corpus, cast: Cast) -> dict[str, str]:
    """Return the pages of settings, question sets and the lab, with runs to show."""
    boss = cast.superuser.user
    assert boss is not None
    save_tuning(propose_tuning({"weight_keywords": 0.4}, actor=boss), actor=boss)
    made = QuestionSet.objects.create(
        name="What tenants ask", asked_as=cast.granted.user
    )
    made.knowledge_bases.add(shelves.handbook)
    place = {"file": shelves.handbook.sources.get(title="Rent").path}
    lines = [
        Line("When is the rent due?", "1", "en", places=(place,)),
        Line("Khi nào trả tiền thuê nhà?", "2", "vi", places=(place,)),
        Line("Is there a pool?", "3", "en", is_answerable=False),
    ]
    import_lines(made, lines, actor=boss)
    proposal = propose_tuning({"search_type": "semantic"}, actor=boss)
    (check,) = check_proposal(proposal, actor=boss)
    later = request_run(made, current(), actor=boss, label="After the fair")
    for run in (check.before, check.after, later):
        carry_out(run.pk)
    for name, value in (("ndcg", 0.62), ("recall", 0.5), ("refusal_accuracy", 0.75)):
        SetRun.objects.filter(pk=later.pk).update(**{name: value})
    request_run(made, current(), actor=boss)
    question = made.questions.first()
    assert question is not None
    compare = reverse("admin:retrieval_setrun_compare")
    lab = reverse("admin:retrieval_searchlab_changelist")
    return {
        "settings": reverse("admin:retrieval_tuningrecord_changelist"),
        "settings-check": reverse(
            "admin:retrieval_tuningrecord_proposal", args=[proposal.pk]
        ),
        "sets": reverse("admin:retrieval_questionset_changelist"),
        "set": reverse("admin:retrieval_questionset_change", args=[made.pk]),
        "set-add": reverse("admin:retrieval_questionset_add"),
        "set-runs": reverse("admin:retrieval_questionset_runs", args=[made.pk]),
        "set-import": reverse("admin:retrieval_questionset_import", args=[made.pk]),
        "set-delete": reverse("admin:retrieval_questionset_delete", args=[made.pk]),
        "questions": reverse("admin:retrieval_question_changelist"),
        "question": reverse("admin:retrieval_question_change", args=[question.pk]),
        "runs": reverse("admin:retrieval_setrun_changelist"),
        "run": reverse("admin:retrieval_setrun_change", args=[check.before.pk]),
        "compare": f"{compare}?before={check.before.pk}&after={check.after.pk}",
        "lab": lab,
        "lab-words": f"{lab}?q=rent",
    }


# Some ninety pages, each looked at twice.
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("width", WIDTHS)
def test_admin_pages_fit_read_well_and_keep_the_policy(
    visit: Visit, shelves: Corpus, cast: Cast, width: int
) -> None:
    page = visit.window(width)
    visit.sign_in(page, cast.superuser.user)
    wrong = [
        flaw
        for name, address in addresses(shelves, cast).items()
        for flaw in look_at(page, address, f"admin-{name}")
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.req("S2-REF-03")
def test_a_moving_source_is_followed_and_its_page_renewed(
    visit: Visit, shelves: Corpus, cast: Cast
) -> None:
    layer = shelves.handbook.layers.get()
    source = ready_source("The rent is due in May.", layer=layer, title="Rent")
    source.state = SourceState.REPROCESSING
    source.save()
    run = IngestRun.objects.create(
        source=source,
        generation=1,
        due_at=timezone.now(),
        state=RunState.RUNNING,
        stage=Stage.EXTRACT,
        percent=5,
    )
    page = visit.window()
    visit.sign_in(page, cast.superuser.user)
    page.goto(reverse("admin:knowledge_source_change", args=[source.pk]))
    expect(page.get_by_text("Reading the file").first).to_be_visible()
    page.get_by_label("Title").fill("What I am typing")

    IngestRun.objects.filter(pk=run.pk).update(stage=Stage.EMBED, percent=60)
    expect(page.locator('[data-progress="stage"]')).to_have_text("Computing vectors")
    expect(page.locator('[data-progress="percent"]')).to_have_text("60%")

    IngestRun.objects.filter(pk=run.pk).update(state=RunState.DONE)
    source.state, source.passage_count = SourceState.READY, 1234
    source.save()
    expect(page.locator(".source-facts")).to_contain_text("Ready")
    expect(page.locator(".source-facts")).to_contain_text("1,234")
    expect(page.get_by_label("Title")).to_have_value("What I am typing")


@pytest.mark.req("S2-ING-08", "REL-U1")
def test_several_files_are_sent_and_one_is_refused(
    visit: Visit, shelves: Corpus, cast: Cast
) -> None:
    page = visit.window()
    visit.sign_in(page, cast.editor.user)
    page.goto(reverse("admin:knowledge_source_add"))
    page.get_by_label("Layer").select_option(label="handbook/main")
    page.locator("#files").set_input_files(
        [
            {"name": "one.txt", "mimeType": "text/plain", "buffer": b"The first."},
            {
                "name": "two.pdf",
                "mimeType": "application/pdf",
                "buffer": b"MZ" + bytes(99),
            },
            {"name": "three.md", "mimeType": "text/markdown", "buffer": b"# Third\n"},
        ]
    )
    page.get_by_role("button", name="Upload").click()
    rows = page.locator(".file")
    expect(rows).to_have_count(3)
    expect(page.get_by_role("link", name="one.txt")).to_be_visible()
    expect(page.get_by_role("link", name="three.md")).to_be_visible()
    refused = rows.filter(has_text="two.pdf")
    expect(refused).to_contain_text("Not taken")
    expect(refused.locator(".error")).not_to_be_empty()
    assert shelves.handbook.sources.count() == 2
    # The browser itself tells of each refused request.
    visit.problems = [each for each in visit.problems if "409" not in each]
