"""Staff of one knowledge base meet nothing of another one, at any page of the admin."""

import json
from datetime import timedelta

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from knowledge.models import (
    ApiToken,
    AuditEntry,
    KnowledgeBase,
    Layer,
    NeverRule,
    Original,
    RegisterEntry,
    Source,
    User,
)
from knowledge.models.audit import record
from knowledge.models.ingest import RunState
from knowledge.permissions import Access, grant
from knowledge.tokens import create_token
from tests.cast import BOTH, Cast
from tests.factories import LayerFactory, StaffFactory, UserFactory, ready_source
from tests.stored_corpus import CANARY, Corpus

pytestmark = pytest.mark.django_db

SCOPED = (
    "knowledgebase",
    "layer",
    "source",
    "document",
    "passage",
    "ingestrun",
    "auditentry",
    "registerentry",
    "neverrule",
)


def signed_in(user: User) -> Client:
    """Return a client of a member of staff."""
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def shown(shelves: Corpus) -> Source:
    """A source of the handbook."""
    layer = Layer.objects.get(knowledge_base=shelves.handbook)
    source = ready_source("The rent is due in May.", layer=layer, title="Rent")
    record(None, "uploaded", source)
    source.runs.create(generation=1, due_at=timezone.now(), state=RunState.DONE)
    register(source, "rent")
    return source


def register(source: Source, word: str) -> None:
    """Put a candidate and a rule with this word in the register beside a source."""
    RegisterEntry.objects.create(
        knowledge_base=source.knowledge_base,
        title=f"Prices of {word}",
        decision="rejected",
        reason=f"{word} keeps them.",
    )
    NeverRule.objects.create(
        knowledge_base=source.knowledge_base,
        kind="name",
        pattern=f"{word}*",
        reason=f"{word} keeps them.",
    )


@pytest.fixture
def hidden(shelves: Corpus) -> Source:
    """A source of the vault; the canary is in all that could name it."""
    layer = Layer.objects.get(knowledge_base=shelves.vault)
    layer.name = f"{CANARY}-layer"
    layer.save()
    source = ready_source(
        f"The {CANARY} merger is in May.",
        layer=layer,
        title=f"{CANARY} merger",
        path=f"{CANARY}/merger.txt",
    )
    record(None, "uploaded", source)
    source.runs.create(
        generation=1,
        due_at=timezone.now(),
        state=RunState.FAILED,
        reason=f"The {CANARY} is broken.",
        finished_at=timezone.now(),
    )
    register(source, CANARY)
    return source


@pytest.fixture
def administrator(shelves: Corpus) -> Client:
    """Staff with the largest role, granted the handbook alone."""
    user = StaffFactory(username="head", groups=["Administrator"])
    grant(shelves.handbook, BOTH, to=user, actor=None)
    return signed_in(user)


def rows_of(source: Source) -> dict[str, int]:
    """Return a key for each scoped model, all of one source."""
    document = source.documents.get()
    entry = AuditEntry.objects.filter(target_type="source", target_id=source.pk).first()
    assert entry is not None
    return {
        "knowledgebase": source.knowledge_base_id,
        "layer": source.layer_id,
        "source": source.pk,
        "document": document.pk,
        "passage": document.passages.get().pk,
        "ingestrun": source.runs.get().pk,
        "auditentry": entry.pk,
        "registerentry": source.knowledge_base.register.get().pk,
        "neverrule": source.knowledge_base.never_rules.get().pk,
    }


@pytest.mark.req("REL-A8", "REL-A1")
@pytest.mark.parametrize("model", SCOPED)
def test_no_list_or_search_names_what_is_out_of_scope(
    model: str, administrator: Client, shown: Source, hidden: Source
) -> None:
    listing = reverse(f"admin:knowledge_{model}_changelist")
    assert administrator.get(listing).status_code == 200
    for query in ("", f"?q={CANARY[:-1]}"):
        page = administrator.get(listing + query).content.decode()
        # Only the question itself may come back.
        assert CANARY not in page.lower()


@pytest.mark.req("REL-A8", "REL-A1")
@pytest.mark.parametrize("model", SCOPED)
@pytest.mark.parametrize("page", ["change", "history", "delete"])
def test_pages_of_hidden_rows_are_like_those_of_absent_ones(
    model: str, page: str, administrator: Client, shown: Source, hidden: Source
) -> None:
    address = f"admin:knowledge_{model}_{page}"
    assert administrator.get(
        reverse(address, args=[rows_of(shown)[model]])
    ).status_code in {200, 403}
    for method in (administrator.get, administrator.post):
        there = method(reverse(address, args=[rows_of(hidden)[model]]))
        absent = method(reverse(address, args=[999_999_999]))
        assert there.status_code == absent.status_code
        assert there.status_code in {404, 403}
        assert CANARY not in there.content.decode().lower()
    assert Source.objects.filter(pk=hidden.pk).exists()


@pytest.mark.req("REL-A8")
def test_filters_and_choices_offer_rows_in_scope_only(
    administrator: Client, shown: Source, hidden: Source
) -> None:
    for name in (
        "source_changelist",
        "passage_changelist",
        "document_changelist",
        "layer_changelist",
        "source_add",
        "layer_add",
        "registerentry_changelist",
        "registerentry_add",
        "neverrule_changelist",
        "neverrule_add",
        "apitoken_add",
    ):
        page = administrator.get(reverse(f"admin:knowledge_{name}"))
        assert page.status_code == 200
        assert CANARY not in page.content.decode().lower()
    page = administrator.get(reverse("admin:knowledge_source_change", args=[shown.pk]))
    assert "handbook/main" in page.content.decode()
    assert CANARY not in page.content.decode().lower()


@pytest.mark.req("REL-A8")
@pytest.mark.parametrize(
    ("model", "field"),
    [
        ("source", "knowledge_base"),
        ("source", "layer"),
        ("registerentry", "knowledge_base"),
        ("neverrule", "knowledge_base"),
        ("apitoken", "knowledge_bases"),
        ("passage", "source"),
        ("passage", "document"),
        ("ingestrun", "source"),
    ],
)
def test_autocompletes_find_rows_in_scope_only(
    model: str, field: str, administrator: Client, shown: Source, hidden: Source
) -> None:
    answer = administrator.get(
        reverse("admin:autocomplete"),
        {"app_label": "knowledge", "model_name": model, "field_name": field},
    )
    assert answer.status_code == 200
    assert json.loads(answer.content)["results"]
    assert CANARY not in answer.content.decode().lower()


@pytest.mark.req("REL-A8")
def test_people_are_not_offered_to_roles_that_may_not_see_them(
    administrator: Client,
) -> None:
    answer = administrator.get(
        reverse("admin:autocomplete"),
        {"app_label": "knowledge", "model_name": "apitoken", "field_name": "owner"},
    )
    assert answer.status_code == 403


@pytest.mark.req("REL-A9")
@pytest.mark.parametrize(
    ("model", "lookup"),
    [
        ("source", "knowledge_base__name__startswith=q"),
        ("source", "original__sha256__startswith=a"),
        ("source", "created_by__password__startswith=p"),
        ("source", "content_sha256__startswith=a"),
        ("passage", "knowledge_base__user_access__user__username=insider"),
        ("passage", "document__text__contains=merger"),
        ("registerentry", "reason__contains=q"),
        ("neverrule", "knowledge_base__slug=quillback-vault"),
        ("layer", "knowledge_base__slug=quillback-vault"),
        ("document", "source__layer__name__startswith=q"),
        ("knowledgebase", "user_access__user__password__startswith=p"),
        ("auditentry", "actor__password__startswith=p"),
        ("apitoken", "digest__startswith=a"),
        ("apitoken", "owner__password__startswith=p"),
    ],
)
def test_query_strings_ask_nothing_beyond_the_filters(
    model: str, lookup: str, administrator: Client
) -> None:
    address = reverse(f"admin:knowledge_{model}_changelist")
    assert administrator.get(f"{address}?{lookup}").status_code == 400


@pytest.mark.req("REL-A9")
def test_the_filters_themselves_work(
    administrator: Client, shown: Source, hidden: Source
) -> None:
    listing = reverse("admin:knowledge_source_changelist")
    year = shown.created_at.year
    for query, found in (
        ("state__exact=ready", True),
        ("state__exact=failed", False),
        ("enabled__exact=1", True),
        (f"knowledge_base__id__exact={shown.knowledge_base_id}", True),
        # With one knowledge base in scope there is nothing to filter by, for any id.
        (f"knowledge_base__id__exact={hidden.knowledge_base_id}", True),
        (f"layer__id__exact={shown.layer_id}", True),
        ("purpose__exact=faq", False),
        (f"created_at__year={year}", True),
        (f"created_at__year={year}&created_at__month={shown.created_at.month}", True),
    ):
        page = administrator.get(f"{listing}?{query}")
        assert page.status_code == 200, query
        assert (shown.path in page.content.decode()) is found, query


@pytest.mark.req("REL-A1", "REL-A5")
@pytest.mark.parametrize("verb", ["reindex", "switch-on", "switch-off", "replace"])
def test_no_verb_reaches_a_source_out_of_scope(
    verb: str, administrator: Client, hidden: Source
) -> None:
    there = administrator.post(
        reverse("admin:knowledge_source_verb", args=[hidden.pk, verb])
    )
    absent = administrator.post(
        reverse("admin:knowledge_source_verb", args=[999_999_999, verb])
    )
    assert there.status_code == absent.status_code == 404
    before = hidden.generation, hidden.enabled
    hidden.refresh_from_db()
    assert (hidden.generation, hidden.enabled) == before


@pytest.mark.req("REL-A7", "REL-A9")
@pytest.mark.parametrize(
    "action", ["reindex", "switch_off", "switch_on", "delete_selected"]
)
def test_no_action_reaches_rows_out_of_scope(
    action: str, administrator: Client, shown: Source, hidden: Source
) -> None:
    answer = administrator.post(
        reverse("admin:knowledge_source_changelist"),
        {"action": action, "_selected_action": [hidden.pk], "post": "yes"},
        follow=True,
    )
    assert CANARY not in answer.content.decode().lower()
    before = hidden.generation, hidden.enabled
    hidden.refresh_from_db()
    assert (hidden.generation, hidden.enabled) == before


@pytest.mark.req("REL-A9")
def test_progress_and_random_passage_are_scoped(
    administrator: Client, shown: Source, hidden: Source
) -> None:
    progress = reverse("admin:knowledge_source_progress")
    answer = administrator.get(
        progress, {"id": [shown.pk, hidden.pk, "9" * 5000, "-1", "x"]}
    )
    assert list(answer.json()["rows"]) == [str(shown.pk)]
    draw = reverse("admin:knowledge_passage_random")
    drawn = administrator.get(draw, {"source": hidden.pk})
    assert drawn["Location"] == reverse("admin:knowledge_passage_changelist")
    drawn = administrator.get(draw)
    assert drawn["Location"] == reverse(
        "admin:knowledge_passage_change", args=[rows_of(shown)["passage"]]
    )


@pytest.mark.req("REL-A7", "REL-A9")
def test_a_source_moves_only_to_a_layer_in_scope(
    administrator: Client, shelves: Corpus, shown: Source, hidden: Source
) -> None:
    page = reverse("admin:knowledge_source_change", args=[shown.pk])
    form = {"title": shown.title, "purpose": shown.purpose, "layer": hidden.layer_id}
    answer = administrator.post(page, form)
    assert answer.status_code == 200
    assert "Select a valid choice" in answer.content.decode()
    shown.refresh_from_db()
    assert shown.knowledge_base_id == shelves.handbook.pk

    other = LayerFactory(knowledge_base=shelves.handbook, name="other")
    assert administrator.post(page, {**form, "layer": other.pk}).status_code == 302
    shown.refresh_from_db()
    assert shown.layer_id == other.pk
    assert shown.passages.get().layer_id == other.pk


@pytest.mark.req("REL-A7")
def test_moving_needs_the_right_to_add_where_it_goes(
    shelves: Corpus, shown: Source
) -> None:
    user = StaffFactory(groups=["Viewer"])
    user.user_permissions.set(
        Group.objects.get(name="Editor").permissions.filter(codename="change_source")
    )
    grant(shelves.handbook, BOTH, to=user, actor=None)
    other = LayerFactory(knowledge_base=shelves.handbook, name="other")
    signed_in(user).post(
        reverse("admin:knowledge_source_change", args=[shown.pk]),
        {"title": "Other", "purpose": shown.purpose, "layer": other.pk},
    )
    shown.refresh_from_db()
    assert (shown.title, shown.layer_id) == ("Other", shown.layer_id)
    assert shown.layer_id != other.pk


@pytest.mark.req("REL-A8")
def test_the_history_leaves_out_what_was_done_elsewhere(
    administrator: Client, shelves: Corpus, shown: Source, hidden: Source
) -> None:
    entry = record(None, "moved", shown, to=str(hidden.layer))
    AuditEntry.objects.filter(pk=entry.pk).update(knowledge_base_id=shelves.vault.pk)
    address = reverse("admin:knowledge_source_history", args=[shown.pk])
    page = administrator.get(address).content.decode()
    assert "uploaded" in page
    assert CANARY not in page.lower()


@pytest.mark.req("REL-A8")
def test_the_overview_tells_of_the_scope_only(
    administrator: Client, shown: Source, hidden: Source
) -> None:
    page = administrator.get(reverse("admin:index"))
    assert page.status_code == 200
    assert CANARY not in page.content.decode().lower()


@pytest.mark.req("REL-A12", "D27")
def test_a_superuser_administers_all_and_still_reads_by_grants(
    cast: Cast, hidden: Source
) -> None:
    client = signed_in(cast.superuser.user)  # type: ignore[arg-type]
    page = client.get(reverse("admin:knowledge_source_change", args=[hidden.pk]))
    assert page.status_code == 200
    words = page.content.decode()
    assert "you are not granted to search" in words
    assert "Read it in the portal" not in words
    assert client.get(hidden.get_absolute_url()).status_code == 404

    grant(
        KnowledgeBase.objects.get(pk=hidden.knowledge_base_id),
        BOTH,
        to=cast.superuser.user,  # type: ignore[arg-type]
        actor=None,
    )
    page = client.get(reverse("admin:knowledge_source_change", args=[hidden.pk]))
    assert "Read it in the portal" in page.content.decode()


@pytest.mark.req("REL-A11")
def test_the_scope_ends_with_the_grant(
    administrator: Client, shelves: Corpus, shown: Source
) -> None:
    page = reverse("admin:knowledge_source_change", args=[shown.pk])
    assert administrator.get(page).status_code == 200
    shelves.handbook.user_access.all().delete()
    assert administrator.get(page).status_code == 404


@pytest.mark.req("S1-VIS-01")
@pytest.mark.parametrize(
    ("role", "statuses"),
    [
        ("Viewer", {"add": 403, "reindex": 403, "switch-off": 403, "replace": 403}),
        ("Approver", {"add": 403, "reindex": 403, "switch-off": 403, "replace": 403}),
        ("Operator", {"add": 403, "reindex": 302, "switch-off": 302, "replace": 403}),
        ("Editor", {"add": 200, "reindex": 302, "switch-off": 302, "replace": 302}),
        (
            "Administrator",
            {"add": 200, "reindex": 302, "switch-off": 302, "replace": 302},
        ),
    ],
)
def test_each_role_may_do_what_it_says(
    role: str, statuses: dict[str, int], shelves: Corpus, shown: Source
) -> None:
    user = StaffFactory(groups=[role])
    grant(shelves.handbook, BOTH, to=user, actor=None)
    client = signed_in(user)
    page = client.get(reverse("admin:knowledge_source_change", args=[shown.pk]))
    words = page.content.decode()
    assert page.status_code == 200
    assert ("Switch off" in words) is (statuses["switch-off"] == 302)
    assert ("Replace the file" in words) is (statuses["replace"] == 302)
    got = {"add": client.get(reverse("admin:knowledge_source_add")).status_code}
    for verb in ("reindex", "switch-off", "replace"):
        address = reverse("admin:knowledge_source_verb", args=[shown.pk, verb])
        got[verb] = client.post(address).status_code
    assert got == statuses
    may_administer = 200 if role == "Administrator" else 403
    for name in ("layer_add", "knowledgebase_add", "apitoken_add"):
        address = reverse(f"admin:knowledge_{name}")
        assert client.get(address).status_code == may_administer
    for name in ("user", "group"):
        app = "knowledge" if name == "user" else "auth"
        assert client.get(reverse(f"admin:{app}_{name}_changelist")).status_code == 403


@pytest.mark.req("REL-T1")
def test_staff_see_and_make_tokens_for_themselves_alone(
    administrator: Client, cast: Cast, shelves: Corpus
) -> None:
    assert cast.token_in_scope.token_row is not None
    foreign = cast.token_in_scope.token_row.pk
    listing = administrator.get(reverse("admin:knowledge_apitoken_changelist"))
    assert "token_in_scope" not in listing.content.decode()
    for name in ("change", "history"):
        address = reverse(f"admin:knowledge_apitoken_{name}", args=[foreign])
        assert administrator.get(address).status_code == 404
    revoke = reverse("admin:knowledge_apitoken_revoke", args=[foreign])
    assert administrator.post(revoke).status_code == 404

    add = reverse("admin:knowledge_apitoken_add")
    head = User.objects.get(username="head")
    form = {
        "owner": head.pk,
        "name": "Script",
        "kind": "person",
        "knowledge_bases": [shelves.handbook.pk],
        "lifetime": 30,
    }
    assert cast.granted.user is not None
    for forged in (
        {"owner": cast.granted.user.pk},
        {"knowledge_bases": [shelves.vault.pk]},
        {"lifetime": 36500},
        {"covers_all": "on"},
    ):
        answer = administrator.post(add, {**form, **forged})
        assert answer.status_code == 200
        assert not ApiToken.objects.filter(name="Script").exists()

    answer = administrator.post(add, form)
    row = ApiToken.objects.get(name="Script")
    assert "no-store" in answer["Cache-Control"]
    assert "It is not shown again" in answer.content.decode()
    assert row.owner == head
    page = reverse("admin:knowledge_apitoken_change", args=[row.pk])
    words = administrator.get(page).content.decode()
    assert row.digest not in words
    assert "Revoke it now" in words
    assert administrator.post(page, {"name": "Other"}).status_code == 403
    revoke = reverse("admin:knowledge_apitoken_revoke", args=[row.pk])
    assert administrator.get(revoke).status_code == 404
    assert administrator.post(revoke).status_code == 302
    row.refresh_from_db()
    assert row.revoked_at is not None
    assert "Revoke it now" not in administrator.get(page).content.decode()


@pytest.mark.req("REL-A3", "REL-A8")
def test_a_token_names_no_knowledge_base_out_of_scope(
    administrator: Client, shelves: Corpus
) -> None:
    row, _token = create_token(
        owner=User.objects.get(username="head"),
        name="Old script",
        knowledge_bases=[shelves.handbook, shelves.vault],
        actor=None,
    )
    page = reverse("admin:knowledge_apitoken_change", args=[row.pk])
    words = administrator.get(page).content.decode()
    assert str(shelves.handbook) in words
    assert CANARY not in words.lower()


@pytest.mark.req("REL-A3", "REL-A8")
def test_the_overview_counts_files_in_scope_alone(
    administrator: Client, shelves: Corpus
) -> None:
    Original.objects.create(
        knowledge_base=shelves.vault,
        file="originals/00/none",
        name="large.pdf",
        kind="pdf",
        size=7_777 * 1024**3,
        sha256="0" * 64,
    )
    overview = reverse("admin:index")
    assert "TB" not in administrator.get(overview).content.decode()


def test_a_superuser_revokes_several_tokens_at_once(cast: Cast) -> None:
    client = signed_in(cast.superuser.user)  # type: ignore[arg-type]
    assert cast.granted.user is not None
    row, _token = create_token(
        owner=cast.granted.user,
        name="Lost",
        lifetime=timedelta(days=1),
        actor=None,
    )
    client.post(
        reverse("admin:knowledge_apitoken_changelist"),
        {"action": "revoke", "_selected_action": [row.pk]},
    )
    row.refresh_from_db()
    assert row.revoked_at is not None


@pytest.mark.req("S1-VIS-01")
def test_whoever_edits_people_raises_nobody(cast: Cast) -> None:
    manager = StaffFactory(username="people")
    permissions = Group.objects.get(name="Administrator").permissions.model.objects
    manager.user_permissions.set(
        permissions.filter(
            codename__in=[
                "view_user", "change_user", "add_user", "delete_user",
                "view_group", "change_group",
            ]
        )
    )  # fmt: skip
    client = signed_in(manager)
    page = reverse("admin:knowledge_user_change", args=[manager.pk])
    client.post(
        page,
        {
            "username": "people2",
            "is_active": "on",
            "is_staff": "on",
            "is_superuser": "on",
            "groups": [Group.objects.get(name="Administrator").pk],
        },
    )
    manager.refresh_from_db()
    assert manager.username == "people2"
    assert not manager.is_superuser
    assert not manager.groups.exists()

    assert cast.superuser.user is not None
    key = cast.superuser.user.pk
    password = reverse("admin:auth_user_password_change", args=[key])
    assert client.get(password).status_code == 403
    page = reverse("admin:knowledge_user_change", args=[key])
    assert client.post(page, {"username": "x"}).status_code == 403
    page = reverse("admin:knowledge_user_delete", args=[key])
    assert client.post(page, {"post": "yes"}).status_code == 403
    group = Group.objects.get(name="Editor")
    page = reverse("admin:auth_group_change", args=[group.pk])
    assert client.post(page, {"name": "Editor"}).status_code == 403


def test_acts_on_people_and_groups_are_recorded(cast: Cast) -> None:
    client = signed_in(cast.superuser.user)  # type: ignore[arg-type]
    person = UserFactory(username="newcomer")
    create_token(owner=person, name="Their script", actor=None)
    password = reverse("admin:auth_user_password_change", args=[person.pk])
    secret = "a harbour in the evening 7"
    client.post(
        password,
        {"usable_password": "true", "password1": secret, "password2": secret},
    )
    history = client.get(reverse("admin:knowledge_user_history", args=[person.pk]))
    assert "password" in history.content.decode().lower()
    assert secret not in history.content.decode()

    page = reverse("admin:knowledge_user_delete", args=[person.pk])
    assert "grants and API tokens" in client.get(page).content.decode()
    assert client.post(page, {"post": "yes"}).status_code == 302
    assert not User.objects.filter(pk=person.pk).exists()
    assert AuditEntry.objects.filter(verb="deleted", target_id=person.pk).exists()

    add = reverse("admin:auth_group_add")
    client.post(add, {"name": "Night shift"})
    group = Group.objects.get(name="Night shift")
    assert AuditEntry.objects.filter(verb="created", target_id=group.pk).exists()
    everyone = Group.objects.get(name="Everyone signed in")
    page = reverse("admin:auth_group_delete", args=[everyone.pk])
    assert client.post(page, {"post": "yes"}).status_code == 403


@pytest.mark.req("S1-VIS-01")
def test_only_granters_grant_and_only_what_stands_is_taken_away(
    cast: Cast, administrator: Client, shelves: Corpus
) -> None:
    page = reverse("admin:knowledge_knowledgebase_access", args=[shelves.handbook.pk])
    editor = signed_in(cast.editor.user)  # type: ignore[arg-type]
    assert "Explain" not in editor.get(f"{page}?person=insider").content.decode()
    form = {"person": "ungranted", "what": "search"}
    assert editor.post(page, form).status_code == 403

    foreign = reverse("admin:knowledge_knowledgebase_access", args=[shelves.vault.pk])
    assert administrator.get(foreign).status_code == 404
    assert administrator.post(foreign, form).status_code == 404

    assert administrator.post(page, form).status_code == 302
    assert cast.ungranted.user is not None
    assert cast.ungranted.reader.searchable == {shelves.handbook.pk}
    words = administrator.get(f"{page}?person=ungranted").content.decode()
    assert "Granted to ungranted" in words

    assert cast.insider.user is not None
    name = f"user:{cast.insider.user.pk}:{Access.SEARCH}"
    assert administrator.post(page, {"withdraw": name}).status_code == 404
    for name in ("user:x:y", "user", "", f"group:{'9' * 5000}:{Access.SEARCH}"):
        assert administrator.post(page, {"withdraw": name}).status_code == 404
    name = f"user:{cast.ungranted.user.pk}:{Access.SEARCH}"
    assert administrator.post(page, {"withdraw": name}).status_code == 302
    assert not cast.ungranted.reader.searchable

    # Whoever denies it to themselves is led to a page that they may still see.
    answer = administrator.post(page, {"person": "head", "what": "deny"})
    assert answer["Location"] == reverse("admin:knowledge_knowledgebase_changelist")


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ({"what": "search"}, "Name either a person or a group."),
        ({"person": "nobody here", "what": "search"}, "There is no person"),
        ({"person": "ungranted", "what": "everything"}, "Select a valid choice"),
    ],
)
def test_a_wrong_grant_is_a_sentence(
    form: dict[str, str],
    sentence: str,
    administrator: Client,
    shelves: Corpus,
    cast: Cast,
) -> None:
    page = reverse("admin:knowledge_knowledgebase_access", args=[shelves.handbook.pk])
    assert sentence in administrator.post(page, form).content.decode()


@pytest.mark.req("REL-A8")
def test_no_model_with_rows_of_a_knowledge_base_has_an_unscoped_page() -> None:
    from knowledge.scoping import PATHS, ScopedAdmin

    for model, page in admin.site._registry.items():
        if model._meta.model_name in PATHS:
            assert isinstance(page, ScopedAdmin), model
        for inline in page.inlines:
            # Rows that belong to the page's own row are scoped by it, as long as they
            # lead to no other rows.
            assert isinstance(page, ScopedAdmin), model
            shown = [inline.model._meta.get_field(name) for name in inline.fields or ()]
            assert shown
            assert not any(field.is_relation for field in shown), inline
        assert not getattr(page, "list_editable", ())
        assert not getattr(page, "raw_id_fields", ())


def test_a_layer_takes_no_name_that_its_knowledge_base_has_already(
    shown: Source, administrator: Client
) -> None:
    layer = shown.layer
    other = LayerFactory(knowledge_base=layer.knowledge_base)
    page = reverse("admin:knowledge_layer_change", args=[other.pk])
    form = {
        "name": layer.name,
        "answer_mode": other.answer_mode,
        "chunk_preset": other.chunk_preset,
        "languages": ["en"],
    }
    answer = administrator.post(page, form)
    assert answer.status_code == 200
    assert "already has a layer of that name" in answer.content.decode()
    assert administrator.post(page, {**form, "name": "spare"}).status_code == 302
    other.refresh_from_db()
    assert (other.name, other.knowledge_base) == ("spare", layer.knowledge_base)
