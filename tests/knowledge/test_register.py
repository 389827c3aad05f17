"""The source register: what it decides, and that every door asks it."""

import io
from pathlib import Path

import pytest
from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction
from django.test import Client
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st
from pytest_django.fixtures import Settings

from knowledge.actions import (
    Upload,
    UploadError,
    move_source,
    reindex_source,
    replace_source,
    upload_source,
)
from knowledge.ingest import run_ingest
from knowledge.models import (
    AuditEntry,
    KnowledgeBase,
    Layer,
    NeverRule,
    Original,
    Passage,
    RegisterEntry,
    Source,
    User,
)
from knowledge.models.register import Decision, FileFormat, RuleKind
from knowledge.models.source import SourceState
from knowledge.permissions import Access, grant
from knowledge.register import EntryRules, fold, places_of
from tests.cast import Cast
from tests.factories import LayerFactory, StaffFactory, ready_source
from tests.stored_corpus import Corpus

WHY = "Purchase prices stay with purchasing."
TEXT = "The reading room opens at eight. It closes at ten.\n"


@pytest.fixture
def media(settings: Settings, tmp_path: Path) -> Path:
    """An empty storage of this test's own; nothing is embedded."""
    settings.MEDIA_ROOT = str(tmp_path)
    settings.PORTAL_EMBEDS = False
    return tmp_path


@pytest.fixture
def layer(db: None, media: Path) -> Layer:
    """A layer of a knowledge base with an empty storage."""
    return LayerFactory()


def never(
    kind: RuleKind, pattern: str, *, base: KnowledgeBase | None = None
) -> NeverRule:
    """Return a stored rule, for all knowledge bases where none is named."""
    return NeverRule.objects.create(
        knowledge_base=base, kind=kind, pattern=pattern, reason=WHY
    )


def rejected(location: str, base: KnowledgeBase) -> RegisterEntry:
    """Return a stored rejection."""
    return RegisterEntry.objects.create(
        knowledge_base=base,
        title="Price list",
        location=location,
        decision=Decision.REJECTED,
        reason=WHY,
    )


def file_of(content: str, name: str) -> Upload:
    """Return a file as it arrives."""
    return Upload(io.BytesIO(content.encode()), name)


def sent(layer: Layer, name: str = "room.txt", content: str = TEXT) -> Source:
    """Return an uploaded source."""
    return upload_source(file_of(content, name), layer=layer, actor=None)


def read(source: Source) -> Source:
    """Carry a source's newest run to its end; the source is read again."""
    run_ingest(source.runs.latest("generation").pk)
    source.refresh_from_db()
    return source


# --- What a rule says ---------------------------------------------------------


def rules(
    *,
    rejected: str = "",
    name: str = "",
    file_format: str = "",
    phrase: str = "",
) -> EntryRules:
    """Return rules of which each has the same reason."""
    return EntryRules(
        rejected={rejected: WHY} if rejected else {},
        names=((name, WHY),) if name else (),
        formats=((file_format, WHY),) if file_format else (),
        phrases=((phrase, WHY),) if phrase else (),
    )


@pytest.mark.req("S2-ING-12")
@pytest.mark.parametrize(
    ("pattern", "path", "stopped"),
    [
        ("*.pst", "mail/2026/All.PST", True),
        ("*.pst", "mail/all.pst.txt", False),
        ("contacts*.csv", "sales/Contacts 2026.csv", True),
        ("contacts/*", "contacts/north/a.csv", True),
        ("contacts/*", "a/contacts.csv", False),
        ("price?.csv", "price1.csv", True),
        ("price?.csv", "prices10.csv", False),
        ("giá*", "Gia\u0301 mua.txt", True),
        ("straße.txt", "STRASSE.txt", False),
        ("[", "[", True),
    ],
)
def test_a_name_is_compared_as_in_a_shell_and_without_case(
    pattern: str, path: str, *, stopped: bool
) -> None:
    assert bool(rules(name=pattern).against(path=path)) is stopped


@pytest.mark.req("S2-ING-12")
@pytest.mark.parametrize(
    ("text", "stopped"),
    [
        ("The PURCHASE\n   price is 3.", True),
        ("The purchase\u00a0price", True),
        ("pur\u00adchase price", True),
        ("purchaseprice", False),
        ("price of purchase", False),
    ],
)
def test_a_phrase_is_compared_without_case_and_with_white_space_folded(
    text: str, *, stopped: bool
) -> None:
    assert bool(rules(phrase="purchase price").against(texts=[text])) is stopped


def test_a_phrase_is_plain_text_and_no_expression() -> None:
    assert not rules(phrase="a.*b").against(texts=["a long way to b"])
    assert rules(phrase="(a+)+$").against(texts=["It says (a+)+$ here."])


@pytest.mark.req("S2-ING-12")
@pytest.mark.parametrize(
    "place", ["prices.csv", "sales/2026/prices.csv", "sales", "sales/2026"]
)
def test_a_rejection_names_a_file_or_a_folder_above_it(place: str) -> None:
    assert rules(rejected=place).against(path="Sales\\2026\\Prices.csv") == WHY
    assert not rules(rejected=place).against(path="other/places.csv")


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_pattern_and_no_name_break_the_check(pattern: str, path: str) -> None:
    for each in (fold(pattern), "*" + fold(pattern) + "*", f"[{fold(pattern)}]*"):
        assert rules(name=each).against(path=path) in {"", WHY}
    assert rules(rejected=next(places_of(path))).against(path=path) in {"", WHY}


def test_a_pattern_of_many_stars_is_compared_at_once() -> None:
    # An expression that backtracks would not come back.
    assert not rules(name="*a" * 90 + "b").against(path="a" * 500)


# --- At the door --------------------------------------------------------------


@pytest.mark.req("S2-ING-12", "S2-ING-11")
@pytest.mark.parametrize(
    ("kind", "pattern"), [(RuleKind.NAME, "ROOM*"), (RuleKind.FORMAT, FileFormat.TEXT)]
)
@pytest.mark.parametrize("for_all", [True, False])
def test_an_upload_is_stopped_before_anything_is_kept(
    layer: Layer, media: Path, kind: RuleKind, pattern: str, *, for_all: bool
) -> None:
    never(kind, pattern, base=None if for_all else layer.knowledge_base)
    with pytest.raises(UploadError, match=WHY):
        sent(layer, "rules/room.txt")
    assert not Source.objects.exists()
    assert not Original.objects.exists()
    assert not [path for path in media.rglob("*") if path.is_file()]
    if not for_all:
        assert sent(LayerFactory(), "rules/room.txt").pk


@pytest.mark.req("S2-ING-12")
def test_a_rejected_candidate_is_stopped_in_its_knowledge_base_alone(
    layer: Layer,
) -> None:
    entry = rejected("Sales/prices.csv", layer.knowledge_base)
    with pytest.raises(UploadError, match=WHY):
        sent(layer, "sales/Prices.csv", "a,b\n1,2\n")
    assert sent(LayerFactory(), "sales/prices.csv", "a,b\n1,2\n").pk
    entry.decision = Decision.ACCEPTED
    entry.save()
    assert sent(layer, "sales/prices.csv", "a,b\n1,2\n").pk


@pytest.mark.req("S2-ING-12")
def test_a_replacement_passes_the_same_check(layer: Layer) -> None:
    source = sent(layer)
    never(RuleKind.NAME, "secret*")
    with pytest.raises(UploadError, match=WHY):
        replace_source(source, file_of("Other.", "secret.txt"), actor=None)
    never(RuleKind.NAME, source.path)
    with pytest.raises(UploadError, match=WHY):
        replace_source(source, file_of("Other.", "harmless.txt"), actor=None)
    assert Original.objects.count() == 1


# --- After reading ------------------------------------------------------------


@pytest.mark.req("S2-ING-12", "S2-ING-11")
def test_words_that_may_never_enter_fail_the_run_and_nothing_is_published(
    layer: Layer,
) -> None:
    never(RuleKind.CONTENT, "closes  AT ten", base=layer.knowledge_base)
    source = read(sent(layer))
    assert source.state == SourceState.FAILED
    assert WHY in source.state_reason
    assert source.runs.get().code == "register"
    assert not source.documents.exists()
    assert not Passage.objects.filter(source=source).exists()
    elsewhere = read(sent(LayerFactory()))
    assert elsewhere.state == SourceState.READY


@pytest.mark.req("S2-ING-12")
def test_words_in_the_title_of_a_file_count_too(layer: Layer) -> None:
    never(RuleKind.CONTENT, "purchase price")
    text = "---\nauthor: Purchase  Price team\n---\nNothing here.\n"
    assert read(sent(layer, "a.md", text)).state == SourceState.FAILED


@pytest.mark.req("S2-ING-12")
def test_a_rule_that_comes_later_stops_the_next_reading(layer: Layer) -> None:
    source = read(sent(layer))
    assert source.state == SourceState.READY
    rejected(source.path, layer.knowledge_base)
    reindex_source(source, actor=None)
    read(source)
    assert source.state == SourceState.FAILED
    assert WHY in source.state_reason
    assert "The text from before is still searched." in source.state_reason
    assert source.passages.exists()


@pytest.mark.req("S2-ING-12")
@pytest.mark.parametrize(
    ("kind", "pattern"),
    [
        (RuleKind.NAME, "room*"),
        (RuleKind.FORMAT, "text"),
        (RuleKind.CONTENT, "reading room"),
    ],
)
def test_a_source_cannot_move_to_where_it_may_not_enter(
    layer: Layer, kind: RuleKind, pattern: str
) -> None:
    source = read(sent(layer))
    target = LayerFactory()
    never(kind, pattern, base=target.knowledge_base)
    with pytest.raises(UploadError, match=WHY):
        move_source(source, layer=target, actor=None)
    source.refresh_from_db()
    assert source.layer == layer
    move_source(source, layer=LayerFactory(), actor=None)


@pytest.mark.req("S2-ING-12")
def test_a_source_that_moved_before_it_was_read_is_judged_where_it_is(
    layer: Layer,
) -> None:
    source = sent(layer)
    target = LayerFactory()
    never(RuleKind.CONTENT, "reading room", base=target.knowledge_base)
    move_source(source, layer=target, actor=None)
    assert read(source).state == SourceState.FAILED


# --- What the database refuses ------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "guess"},
        {"kind": "format", "pattern": "exe"},
        {"pattern": " \n"},
        {"reason": " "},
    ],
)
def test_no_rule_without_sense_can_be_stored(db: None, wrong: dict[str, str]) -> None:
    values = {"kind": "name", "pattern": "*.pst", "reason": WHY, **wrong}
    with pytest.raises(IntegrityError), transaction.atomic():
        NeverRule.objects.create(**values)


def test_no_entry_without_sense_can_be_stored(layer: Layer) -> None:
    base = layer.knowledge_base
    values = {
        "knowledge_base": base,
        "title": "Prices",
        "decision": "rejected",
        "reason": WHY,
    }
    wrongs: tuple[dict[str, str], ...] = (
        {"decision": "perhaps"},
        {"reason": ""},
        {"title": " "},
    )
    for wrong in wrongs:
        with pytest.raises(IntegrityError), transaction.atomic():
            RegisterEntry.objects.create(**{**values, **wrong})
    for _each in range(2):
        # Candidates without a place may be alike.
        RegisterEntry.objects.create(**values)
    rejected("a.csv", base)
    with pytest.raises(IntegrityError), transaction.atomic():
        rejected("a.csv", base)


def test_a_rule_stands_once(layer: Layer) -> None:
    for base in (layer.knowledge_base, None):
        never(RuleKind.NAME, "*.pst", base=base)
        with pytest.raises(IntegrityError), transaction.atomic():
            never(RuleKind.NAME, "*.pst", base=base)


# --- The staff's pages --------------------------------------------------------


def signed_in(user: User | None) -> Client:
    """Return a client of a member of staff."""
    assert user is not None
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def administrator(shelves: Corpus) -> Client:
    """Staff with the largest role, granted the handbook alone."""
    user = StaffFactory(username="head", groups=["Administrator"])
    grant(shelves.handbook, [Access.LIST, Access.SEARCH], to=user, actor=None)
    return signed_in(user)


ENTRIES = "admin:knowledge_registerentry"
RULES = "admin:knowledge_neverrule"


def entry_form(base: KnowledgeBase, **changes: str) -> dict[str, str]:
    """Return what the page of an entry posts."""
    return {
        "knowledge_base": str(base.pk),
        "title": "Price list",
        "location": "sales/prices.csv",
        "decision": "rejected",
        "reason": WHY,
        **changes,
    }


@pytest.mark.req("S2-ING-12")
def test_an_editor_decides_on_a_candidate_and_the_upload_page_says_why(
    cast: Cast, shelves: Corpus, media: Path
) -> None:
    editor = signed_in(cast.editor.user)
    answer = editor.post(reverse(f"{ENTRIES}_add"), entry_form(shelves.handbook))
    assert answer.status_code == 302
    entry = RegisterEntry.objects.get()
    assert entry.decided_by == cast.editor.user
    act = AuditEntry.objects.get(target_type="registerentry")
    assert (act.verb, act.actor) == ("rejected", cast.editor.user)
    assert act.knowledge_base_id == shelves.handbook.pk
    assert act.detail["reason"] == WHY
    page = editor.get(reverse(f"{ENTRIES}_change", args=[entry.pk])).content.decode()
    assert str(cast.editor.user) in page

    answer = editor.post(
        reverse("admin:knowledge_source_add"),
        {
            "layer": shelves.handbook.layers.get().pk,
            "purpose": "other",
            "path": "sales/prices.csv",
            "file": io.BytesIO(b"a,b\n1,2\n"),
        },
        headers={"Accept": "application/json"},
    )
    assert answer.status_code == 409
    assert WHY in answer.json()["error"]


def test_a_decision_that_changes_is_its_changer_s_and_stays_in_its_place(
    cast: Cast, shelves: Corpus
) -> None:
    entry = rejected("a.csv", shelves.handbook)
    rejected("b.csv", shelves.handbook)
    page = reverse(f"{ENTRIES}_change", args=[entry.pk])
    editor = signed_in(cast.editor.user)
    form = entry_form(shelves.vault, location="a.csv", decision="accepted")
    assert editor.post(page, form).status_code == 302
    entry.refresh_from_db()
    assert entry.decision == Decision.ACCEPTED
    assert entry.decided_by == cast.editor.user
    assert entry.knowledge_base == shelves.handbook
    words = editor.post(page, {**form, "location": "b.csv"}).content.decode()
    assert "already has this place" in words

    delete = reverse(f"{ENTRIES}_delete", args=[entry.pk])
    assert editor.post(delete, {"post": "yes"}).status_code == 302
    acts = AuditEntry.objects.filter(target_type="registerentry", target_id=entry.pk)
    assert [act.verb for act in acts] == ["deleted", "accepted"]


@pytest.mark.req("REL-A1")
def test_an_editor_sees_and_chooses_entries_in_scope_only(
    cast: Cast, shelves: Corpus
) -> None:
    hidden = rejected("quillback.csv", shelves.vault)
    editor = signed_in(cast.editor.user)
    assert (
        "quillback" not in editor.get(reverse(f"{ENTRIES}_changelist")).content.decode()
    )
    for page in ("change", "history", "delete"):
        address = reverse(f"{ENTRIES}_{page}", args=[hidden.pk])
        assert editor.get(address).status_code == 404
    answer = editor.post(reverse(f"{ENTRIES}_add"), entry_form(shelves.vault))
    assert "Select a valid choice" in answer.content.decode()


@pytest.mark.req("S2-ING-12")
def test_rules_for_all_are_read_by_all_staff_and_set_by_superusers(
    cast: Cast, shelves: Corpus, administrator: Client
) -> None:
    form = {"kind": "name", "pattern": "*.pst", "reason": WHY, "knowledge_base": ""}
    refused = administrator.post(reverse(f"{RULES}_add"), form)
    assert "This field is required" in refused.content.decode()
    superuser = signed_in(cast.superuser.user)
    assert superuser.post(reverse(f"{RULES}_add"), form).status_code == 302
    rule = NeverRule.objects.get()
    assert rule.knowledge_base is None
    assert rule.created_by == cast.superuser.user
    assert (
        "already holds for all"
        in superuser.post(reverse(f"{RULES}_add"), form).content.decode()
    )

    page = reverse(f"{RULES}_change", args=[rule.pk])
    for client in (administrator, signed_in(cast.editor.user)):
        assert "*.pst" in client.get(reverse(f"{RULES}_changelist")).content.decode()
        shown = client.get(page)
        assert shown.status_code == 200
        assert "All knowledge bases" in shown.content.decode()
        assert client.post(page, {**form, "pattern": "*"}).status_code == 403
        delete = reverse(f"{RULES}_delete", args=[rule.pk])
        assert client.post(delete, {"post": "yes"}).status_code == 403
    chosen = {
        "action": "delete_selected",
        "_selected_action": [str(rule.pk)],
        "post": "yes",
    }
    administrator.post(reverse(f"{RULES}_changelist"), chosen)
    rule.refresh_from_db()
    assert rule.pattern == "*.pst"


@pytest.mark.req("S2-ING-12")
def test_an_administrator_sets_rules_for_what_they_work_on(
    cast: Cast, shelves: Corpus, administrator: Client
) -> None:
    form = {
        "kind": "content",
        "pattern": "purchase price",
        "reason": WHY,
        "knowledge_base": str(shelves.handbook.pk),
    }
    add = reverse(f"{RULES}_add")
    assert administrator.post(add, form).status_code == 302
    rule = NeverRule.objects.get()
    act = AuditEntry.objects.get(target_type="neverrule")
    assert (act.verb, act.detail["pattern"]) == ("created", "purchase price")
    foreign = {**form, "knowledge_base": str(shelves.vault.pk)}
    assert "Select a valid choice" in administrator.post(add, foreign).content.decode()
    editor = signed_in(cast.editor.user)
    assert editor.post(add, form).status_code == 403
    page = reverse(f"{RULES}_change", args=[rule.pk])
    assert editor.get(page).status_code == 200
    assert editor.post(page, form).status_code == 403
    assert administrator.post(page, {**form, "pattern": "cost"}).status_code == 302
    rule.refresh_from_db()
    assert rule.pattern == "cost"


@pytest.mark.parametrize(
    ("kind", "pattern", "sentence"),
    [
        ("format", "exe", "Known are: text, markdown"),
        ("content", "ab", "3 characters or more"),
        ("content", "\u200b\u200b\u200b\u200b", "3 characters or more"),
        ("name", "/", "Name a file or a folder."),
    ],
)
def test_a_rule_without_sense_is_a_sentence(
    administrator: Client, shelves: Corpus, kind: str, pattern: str, sentence: str
) -> None:
    form = {
        "kind": kind,
        "pattern": pattern,
        "reason": WHY,
        "knowledge_base": str(shelves.handbook.pk),
    }
    page = administrator.post(reverse(f"{RULES}_add"), form)
    assert sentence in page.content.decode()


def test_a_format_is_stored_as_it_is_compared(
    administrator: Client, shelves: Corpus
) -> None:
    form = {
        "kind": "format",
        "pattern": "CSV",
        "reason": WHY,
        "knowledge_base": str(shelves.handbook.pk),
    }
    assert administrator.post(reverse(f"{RULES}_add"), form).status_code == 302
    assert NeverRule.objects.get().pattern == FileFormat.CSV


def test_the_empty_pages_say_what_they_are_for(cast: Cast) -> None:
    editor = signed_in(cast.editor.user)
    entries = editor.get(reverse(f"{ENTRIES}_changelist")).content.decode()
    assert "The source register is empty" in entries
    assert "Add a candidate" in entries
    rules_page = editor.get(reverse(f"{RULES}_changelist")).content.decode()
    assert "No never-rules yet" in rules_page
    assert "Add a never-rule" not in rules_page


def test_a_superuser_sees_rules_for_all_before_the_first_knowledge_base(
    db: None,
) -> None:
    never(RuleKind.NAME, "*.pst")
    superuser = signed_in(StaffFactory(is_superuser=True))
    assert "*.pst" in superuser.get(reverse(f"{RULES}_changelist")).content.decode()
    nobody = signed_in(StaffFactory(groups=["Editor"]))
    listing = nobody.get(reverse(f"{RULES}_changelist"))
    assert "*.pst" not in listing.content.decode()


def test_a_move_in_the_admin_that_a_rule_stops_is_a_sentence(
    cast: Cast, shelves: Corpus
) -> None:
    source = ready_source(TEXT, layer=shelves.handbook.layers.get())
    never(RuleKind.CONTENT, "reading room", base=shelves.branches)
    page = reverse("admin:knowledge_source_change", args=[source.pk])
    form = {
        "title": source.title,
        "purpose": source.purpose,
        "layer": str(shelves.branches.layers.get().pk),
        "expires_at_0": "",
        "expires_at_1": "",
    }
    answer = signed_in(cast.superuser.user).post(page, form, follow=True)
    assert WHY in answer.content.decode()
    source.refresh_from_db()
    assert source.knowledge_base == shelves.handbook


def test_the_roles_hold_the_register(db: None) -> None:
    def holds(role: str) -> set[str]:
        names = Group.objects.get(name=role).permissions.values_list(
            "codename", flat=True
        )
        return {name for name in names if name.endswith(("registerentry", "neverrule"))}

    reading = {"view_registerentry", "view_neverrule"}
    assert holds("Viewer") == reading
    assert holds("Editor") == reading | {
        f"{verb}_registerentry" for verb in ("add", "change", "delete")
    }
    assert holds("Administrator") - holds("Editor") == {
        f"{verb}_neverrule" for verb in ("add", "change", "delete")
    }
