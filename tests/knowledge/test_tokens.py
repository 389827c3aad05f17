"""API tokens: what is stored of them, and when they end."""

import hashlib
import logging
from datetime import timedelta

import pytest
from django.core import serializers
from django.db import IntegrityError, transaction
from django.utils import timezone

from knowledge.models import ApiToken, AuditEntry, User
from knowledge.models.token import TokenKind
from knowledge.tokens import (
    PREFIX_LENGTH,
    START,
    create_token,
    find_token,
    reader_of,
    revoke_token,
    shown_prefix,
)
from tests.cast import Cast
from tests.factories import KnowledgeBaseFactory, UserFactory
from tests.stored_corpus import Corpus

pytestmark = pytest.mark.django_db


@pytest.mark.req("REL-T1")
def test_only_the_beginning_and_a_digest_are_stored() -> None:
    user = UserFactory()
    row, token = create_token(owner=user, name="curl", actor=user)
    secret = token.removeprefix(START)
    stored = serializers.serialize("json", ApiToken.objects.all())
    assert row.prefix == token[:PREFIX_LENGTH]
    assert row.digest == hashlib.sha256(token.encode()).hexdigest()
    assert secret not in stored
    assert token[PREFIX_LENGTH:] not in stored
    assert token[PREFIX_LENGTH:] not in serializers.serialize(
        "json", AuditEntry.objects.all()
    )
    # 32 random bytes in base64 without padding.
    assert len(secret) == 43


@pytest.mark.req("REL-T1")
def test_two_tokens_have_nothing_in_common() -> None:
    user = UserFactory()
    tokens = {create_token(owner=user, name="same", actor=user)[1] for _ in range(50)}
    assert len(tokens) == 50
    assert len({token[: PREFIX_LENGTH - 1] for token in tokens}) > 40


def test_a_live_token_is_found(cast: Cast) -> None:
    assert find_token(cast.token_in_scope.token) == cast.token_in_scope.token_row


@pytest.mark.req("REL-T2")
@pytest.mark.parametrize(
    "change",
    [
        lambda token: "",
        lambda token: token[:-1],
        lambda token: token + "A",
        lambda token: token.swapcase(),
        lambda token: token.upper(),
        lambda token: token[:PREFIX_LENGTH],
        lambda token: START,
        lambda token: "Bearer " + token,
        lambda token: token + "\x00",
        lambda token: token + "é\ud800",
        lambda token: "x" * 100_000,
    ],
)
def test_a_token_that_is_not_exact_opens_nothing(
    cast: Cast, change: object, django_assert_num_queries: object
) -> None:
    wrong = change(cast.token_in_scope.token)  # type: ignore[operator]
    # One look at the database whatever is wrong.
    with django_assert_num_queries(1):  # type: ignore[operator]
        assert find_token(wrong) is None


@pytest.mark.req("REL-T2")
def test_expired_and_revoked_tokens_open_nothing(cast: Cast) -> None:
    assert find_token(cast.expired_token.token) is None
    assert find_token(cast.revoked_token.token) is None


@pytest.mark.req("REL-T3")
def test_a_token_reaches_its_scope_within_its_owners(
    cast: Cast, shelves: Corpus
) -> None:
    assert cast.token_in_scope.reader.searchable == {shelves.handbook.pk}
    assert cast.token_out_of_scope.reader.searchable == frozenset()
    assert cast.agent_token.reader.is_agent
    cast.members.user_set.clear()
    assert cast.token_in_scope.reader.searchable == frozenset()


def test_a_token_without_a_list_covers_what_the_owner_is_granted_later(
    cast: Cast,
) -> None:
    row, _token = create_token(owner=cast.ungranted.user, name="all", actor=None)
    assert row.covers_all
    assert reader_of(row).searchable == frozenset()
    cast.members.user_set.add(cast.ungranted.user)
    assert reader_of(row).searchable == cast.granted.reader.searchable


def test_a_token_for_no_knowledge_base_is_not_one_for_all(cast: Cast) -> None:
    row, _token = create_token(
        owner=cast.granted.user, name="none", knowledge_bases=[], actor=None
    )
    assert reader_of(row).searchable == frozenset()


def test_a_scope_ends_with_its_knowledge_base(cast: Cast) -> None:
    base = KnowledgeBaseFactory()
    row, _token = create_token(
        owner=cast.granted.user, name="one", knowledge_bases=[base], actor=None
    )
    base.delete()
    assert reader_of(row).limit == frozenset()


@pytest.mark.req("REL-T4")
@pytest.mark.parametrize("how", ["deactivated", "deleted"])
def test_a_token_ends_with_its_owner(cast: Cast, how: str) -> None:
    owner = User.objects.filter(pk=cast.granted.user.pk)
    if how == "deactivated":
        owner.update(is_active=False)
    else:
        owner.get().delete()
    for actor in (cast.token_in_scope, cast.token_out_of_scope, cast.agent_token):
        assert find_token(actor.token) is None


def test_revoking_is_for_good_and_audited(cast: Cast) -> None:
    row = cast.agent_token.token_row
    assert row is not None
    revoke_token(row, actor=cast.granted.user)
    row.refresh_from_db()
    first = row.revoked_at
    revoke_token(row, actor=cast.granted.user)
    row.refresh_from_db()
    assert row.revoked_at == first
    assert (
        AuditEntry.objects.filter(verb="revoked token", target_id=row.pk).count() == 2
    )


def test_the_last_use_is_told_to_the_minute(cast: Cast) -> None:
    token, row = cast.token_in_scope.token, cast.token_in_scope.token_row
    assert row is not None
    find_token(token)
    row.refresh_from_db()
    first = row.last_used_at
    find_token(token)
    row.refresh_from_db()
    assert row.last_used_at == first
    ApiToken.objects.filter(pk=row.pk).update(
        last_used_at=timezone.now() - timedelta(minutes=2)
    )
    find_token(token)
    row.refresh_from_db()
    assert first is not None
    assert row.last_used_at >= first


def test_kinds_are_checked_by_the_database(cast: Cast) -> None:
    rows = ApiToken.objects.filter(owner=cast.granted.user)
    assert set(rows.values_list("kind", flat=True)) < set(TokenKind.values)
    with pytest.raises(IntegrityError), transaction.atomic():
        rows.update(kind="emperor")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("strata_AbCdEfGhIj", "strata_AbCdE"),
        ("strata_AbCdé" + "x" * 9, "strata_AbCd?"),
        ("correct horse battery", "something else"),
        ("strata_AbCdE", "something else"),
        ("", "something else"),
    ],
)
def test_what_is_told_of_a_token(text: str, shown: str) -> None:
    assert shown_prefix(text) == shown


@pytest.mark.req("REL-T5")
def test_a_log_line_tells_only_how_a_token_begins(cast: Cast) -> None:
    from strata_portal.logs import OneLineFormatter

    token = cast.token_in_scope.token
    record = logging.LogRecord(
        "uvicorn.access",
        logging.INFO,
        __file__,
        1,
        '%s - "%s %s HTTP/%s" %d',
        (
            "127.0.0.1:5000",
            "GET",
            f"/api/v1/me?token={token}&again={token.replace('_', '%5F', 1)}",
            "1.1",
            400,
        ),
        None,
    )
    line = OneLineFormatter("{message}", style="{").format(record)
    assert token[:PREFIX_LENGTH] in line
    assert token[PREFIX_LENGTH:] not in line
