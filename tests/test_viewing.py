"""View as: exactly what that person would find, read-only, audited, and it ends."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.utils import timezone

from knowledge.models import AuditEntry, User
from knowledge.permissions import Reader, deny, grant
from knowledge.viewing import SESSION_KEY
from strata_portal.middleware import ViewingMiddleware
from tests.cast import BOTH, Cast
from tests.factories import StaffFactory, ready_source
from tests.stored_corpus import Corpus
from tests.test_visibility import routes

pytestmark = pytest.mark.django_db


@pytest.fixture
def secret(shelves: Corpus) -> str:
    """A word that only the insider may find."""
    ready_source(
        "The zephyrine clause is sealed.",
        layer=shelves.vault.layers.get(),
        title="Seal",
    )
    return "zephyrine"


def begin(client: Client, person: User | None, reason: str = "They asked.") -> int:
    """Begin to view as a person; returns the status."""
    assert person is not None
    address = f"/admin/knowledge/user/{person.pk}/view-as/"
    return client.post(address, {"reason": reason}).status_code


@pytest.mark.req("D27")
def test_the_portal_shows_what_that_person_would_find(
    cast: Cast, shelves: Corpus, secret: str
) -> None:
    own = cast.insider.client().get(f"/?q={secret}").content.decode()
    client = cast.superuser.client()
    assert "is sealed" not in client.get(f"/?q={secret}").content.decode()
    assert begin(client, cast.insider.user) == 302
    seen = client.get(f"/?q={secret}").content.decode()
    assert "is sealed" in own
    assert "is sealed" in seen
    assert "You see the portal as" in seen
    client.post("/view-as/stop/")
    after = client.get(f"/?q={secret}").content.decode()
    assert "is sealed" not in after
    assert "You see the portal as" not in after


@pytest.mark.req("S3-VIS-02", "D27")
def test_nothing_of_ones_own_is_added(cast: Cast, shelves: Corpus, secret: str) -> None:
    assert cast.superuser.user is not None
    grant(shelves.vault, BOTH, to=cast.superuser.user, actor=None)
    client = cast.superuser.client()
    assert "is sealed" in client.get(f"/?q={secret}").content.decode()
    begin(client, cast.granted.user)
    assert "is sealed" not in client.get(f"/?q={secret}").content.decode()
    document = shelves.vault.sources.get().documents.get()
    assert client.get(f"/read/{document.ref(0, 8)}/").status_code == 404


@pytest.mark.req("REL-A11")
def test_a_deny_holds_at_the_next_page(
    cast: Cast, shelves: Corpus, secret: str
) -> None:
    client = cast.superuser.client()
    begin(client, cast.insider.user)
    assert cast.insider.user is not None
    deny(shelves.vault, to=cast.insider.user, actor=None)
    assert "is sealed" not in client.get(f"/?q={secret}").content.decode()


def test_the_reader_carries_who_really_asks(cast: Cast, shelves: Corpus) -> None:
    assert cast.superuser.user is not None
    assert cast.insider.user is not None
    client = cast.superuser.client()
    begin(client, cast.insider.user)
    reader: Reader = client.get("/").wsgi_request.reader  # type: ignore[attr-defined]
    assert reader.user_id == cast.insider.user.pk
    assert reader.acting_user_id == cast.superuser.user.pk
    assert reader.recalling().searchable == frozenset()


class TestTheRight:
    """Only staff with the right, and only while they have it."""

    def viewer(self) -> User:
        """A member of staff with the right and no other one."""
        staff = StaffFactory(groups=["Editor"])
        staff.user_permissions.add(Permission.objects.get(codename="view_as"))
        return staff

    def test_staff_without_it_are_refused(self, cast: Cast) -> None:
        assert begin(cast.editor.client(), cast.granted.user) == 403
        assert begin(cast.granted.client(), cast.insider.user) == 302
        assert not AuditEntry.objects.filter(verb="began viewing as").exists()

    def test_no_ready_role_has_it(self) -> None:
        assert not Permission.objects.get(codename="view_as").group_set.exists()

    def test_staff_with_it_view_until_it_is_taken(
        self, cast: Cast, shelves: Corpus, secret: str
    ) -> None:
        staff = self.viewer()
        client = Client()
        client.force_login(staff)
        assert begin(client, cast.insider.user) == 302
        assert "is sealed" in client.get(f"/?q={secret}").content.decode()
        staff.user_permissions.clear()
        page = client.get(f"/?q={secret}").content.decode()
        assert "is sealed" not in page
        assert "Viewing as another person has ended." in page

    def test_a_reason_is_asked_for_and_kept(self, cast: Cast) -> None:
        client = cast.superuser.client()
        assert begin(client, cast.granted.user, reason=" ") == 200
        assert SESSION_KEY not in client.session
        begin(client, cast.granted.user, reason="Cannot find the fees.")
        client.post("/view-as/stop/")
        entries = AuditEntry.objects.filter(target_type="user").order_by("pk")
        told = [(each.actor_label, each.verb, each.target_label) for each in entries]
        assert told == [
            ("superuser", "began viewing as", "granted"),
            ("superuser", "stopped viewing as", "granted"),
        ]
        assert entries[0].detail["reason"] == "Cannot find the fees."

    def test_nobody_is_viewed_who_cannot_sign_in(self, cast: Cast) -> None:
        client = cast.superuser.client()
        assert begin(client, cast.inactive.user) == 200
        assert SESSION_KEY not in client.session


class TestItEnds:
    """By a click, by itself, with the session, and with the person's account."""

    def test_after_its_time(self, cast: Cast, shelves: Corpus, secret: str) -> None:
        client = cast.superuser.client()
        begin(client, cast.insider.user)
        session = client.session
        kept = session[SESSION_KEY]
        kept["ends_at"] = (timezone.now() - timedelta(seconds=1)).isoformat()
        session[SESSION_KEY] = kept
        session.save()
        assert "is sealed" not in client.get(f"/?q={secret}").content.decode()
        assert client.get("/admin/").status_code == 200
        last = AuditEntry.objects.filter(target_type="user").latest("pk")
        assert (last.verb, last.detail) == ("stopped viewing as", {"by_itself": True})

    def test_with_the_session(self, cast: Cast) -> None:
        client = cast.superuser.client()
        begin(client, cast.insider.user)
        other = cast.superuser.client()
        assert "You see the portal as" not in other.get("/").content.decode()
        client.post("/logout/")
        assert AuditEntry.objects.filter(verb="stopped viewing as").count() == 1
        client.force_login(cast.superuser.user)
        assert "You see the portal as" not in client.get("/").content.decode()

    def test_with_the_persons_account(self, cast: Cast) -> None:
        client = cast.superuser.client()
        begin(client, cast.insider.user)
        assert cast.insider.user is not None
        User.objects.filter(pk=cast.insider.user.pk).update(is_active=False)
        assert "You see the portal as" not in client.get("/").content.decode()


class TestItOnlyReads:
    """Every address but the pages of the portal is closed meanwhile."""

    @pytest.mark.req("REL-A1")
    def test_every_other_address_is_closed(self, cast: Cast, shelves: Corpus) -> None:
        client = cast.superuser.client()
        begin(client, cast.granted.user)
        open_routes = {
            "",
            "ask/",
            "read/<str:ref>/",
            "read/<str:ref>/difference/",
            "source/<uuid:public_id>/",
            "original/<int:number>/",
            "knowledge-bases/",
            "data-flow/",
            "healthz",
            "healthz/worker",
            "view-as/stop/",
            "logout/",
        }
        assert len(open_routes) == len(
            ViewingMiddleware.READABLE | ViewingMiddleware.ENDING
        )
        closed = [
            "/admin/",
            "/admin/password_change/",
            "/account/tokens/",
            "/api/v1/me",
            "/api/v1/layers",
            "/login/",
            f"/admin/knowledge/user/{cast.insider.user.pk}/view-as/",  # type: ignore[union-attr]
        ]
        for address in closed:
            assert client.get(address).status_code == 403, address
        plain = [
            route
            for route in routes()
            if "<" not in route and "^" not in route and route not in open_routes
        ]
        for route in plain:
            assert client.get(f"/{route}").status_code == 403, route
            assert client.post(f"/{route}").status_code == 403, route

    def test_open_pages_take_nothing(self, cast: Cast) -> None:
        client = cast.superuser.client()
        begin(client, cast.granted.user)
        for method in ("post", "put", "patch", "delete"):
            assert getattr(client, method)("/").status_code == 403
        assert client.post("/account/tokens/", {"name": "x"}).status_code == 403
        assert cast.granted.user is not None
        assert not cast.granted.user.api_tokens.filter(name="x").exists()

    def test_a_token_of_ones_own_is_another_matter(self, cast: Cast) -> None:
        client = cast.superuser.client()
        begin(client, cast.insider.user)
        headers = {"Authorization": f"Bearer {cast.token_in_scope.token}"}
        told = client.get("/api/v1/me", headers=headers).json()
        assert told["username"] == "granted"
        # Any other scheme would leave the call to the session.
        headers = {"Authorization": "Basic aW5zaWRlcjp4"}
        assert client.get("/api/v1/me", headers=headers).status_code == 403


def test_listed_is_what_they_are_listed(cast: Cast, shelves: Corpus) -> None:
    client = cast.superuser.client()
    begin(client, cast.lister.user)
    page = client.get("/knowledge-bases/").content.decode()
    assert shelves.handbook.name in page
    assert shelves.vault.name not in page
