"""What the API refuses, and how it says so."""

import json
import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from tests.cast import Cast
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db

SEARCH = "/api/v1/search"
# What no answer may hold: our code, our database, our paths.
INTERNALS = re.compile(
    r'Traceback|File "|\.py\b|psycopg|django|SELECT |_passage|_apitoken|site-packages',
    re.IGNORECASE,
)


def post(client: Client, body: Any, **headers: str) -> Any:
    """Send a body as it is, or a value as JSON."""
    data = body if isinstance(body, (bytes, str)) else json.dumps(body)
    return client.post(
        SEARCH, data, content_type="application/json", headers=headers or None
    )


def refusal(response: Any, status: int) -> dict[str, Any]:
    """Return the error of a refusal that has the documented shape."""
    assert response.status_code == status, response.content
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["Cache-Control"] == "no-store"
    body = response.json()
    assert set(body) == {"error"}
    error: dict[str, Any] = body["error"]
    assert set(error) == {"code", "message", "fields"}
    assert error["message"].endswith(".")
    assert not INTERNALS.search(response.content.decode())
    return error


@pytest.fixture
def reader() -> Client:
    """Somebody who is signed in and may search nothing."""
    client = Client()
    client.force_login(UserFactory())
    return client


@pytest.mark.req("REL-S1")
class TestBodies:
    """Bodies that are not what they should be."""

    @pytest.mark.parametrize(
        ("body", "words"),
        [
            (b"", "Send a query"),
            (b"{", "line 1"),
            (b"\xff\xfe{}", "UTF-8"),
            (b"\xef\xbb\xbf{}", "not JSON"),
            (b'{"query": "a"} x', "not JSON"),
            (b"{'query': 'a'}", "not JSON"),
            (b"null", "Send one JSON object"),
            (b'["a"]', "Send one JSON object"),
            (b'"query"', "Send one JSON object"),
            (b'{"query": "a", "query": "b"}', "twice"),
            (b'{"query": "a", "metadata_filter": {"x": "1", "x": "2"}}', "twice"),
            (b'{"query": "a", "top_k": NaN}', "NaN"),
            (b'{"query": "a", "top_k": -Infinity}', "Infinity"),
            (b'{"query": "a", "top_k": 1e999}', "too large"),
            (b'{"query": "a", "top_k": ' + b"9" * 5000 + b"}", "too long"),
            (b'{"query": "a\\u0000b"}', "NUL"),
            (b'{"query": "\\ud800"}', "surrogate"),
            (b'{"\\ud800": "a", "query": "a"}', "surrogate"),
            (b'{"query": "a", "metadata_filter": {"a\\u0000": "b"}}', "NUL"),
        ],
    )
    def test_unreadable_json_is_refused(
        self, reader: Client, body: bytes, words: str
    ) -> None:
        error = refusal(post(reader, body), 400)
        assert words in error["message"]

    @pytest.mark.parametrize("opening", ["[", '{"a":', '{"query":[{"a":'])
    def test_deep_nesting_is_refused(self, reader: Client, opening: str) -> None:
        error = refusal(post(reader, opening * 5000), 400)
        assert "64" in error["message"]

    def test_brackets_within_a_text_are_no_depth(self, reader: Client) -> None:
        response = post(reader, {"query": '[{"' * 100})
        assert response.status_code == 200

    @pytest.mark.req("REL-X1")
    def test_a_nul_in_the_address_is_refused(self, reader: Client) -> None:
        refusal(reader.get("/api/v1/layers?q=%00"), 400)

    @pytest.mark.parametrize("size", [1024 * 1024 - 14, 1024 * 1024 + 1])
    def test_the_body_is_bounded(self, reader: Client, size: int) -> None:
        body = b'{"query": "a"' + b" " * (size - 14) + b"}"
        response = post(reader, body)
        if size <= 1024 * 1024:
            assert response.status_code == 200
        else:
            assert refusal(response, 413)["code"] == "too_large"

    @pytest.mark.parametrize(
        "kind",
        ["text/plain", "application/x-www-form-urlencoded", "application/xml", ""],
    )
    def test_only_json_is_taken(self, reader: Client, kind: str) -> None:
        response = reader.post(SEARCH, '{"query": "a"}', content_type=kind)
        assert refusal(response, 415)["code"] == "unsupported_media_type"

    def test_an_upload_is_not_taken(self, reader: Client) -> None:
        response = reader.post(SEARCH, {"query": "a"})
        refusal(response, 415)

    def test_chunks_of_unknown_length_are_refused(self, reader: Client) -> None:
        response = post(reader, {"query": "a"}, transfer_encoding="chunked")
        assert refusal(response, 411)["code"] == "length_required"


class TestFields:
    """Fields that are wrong are named."""

    @pytest.mark.parametrize(
        ("fields", "named", "words"),
        [
            ({}, "query", "Send a query"),
            ({"query": ""}, "query", "empty"),
            ({"query": None}, "query", "empty"),
            ({"query": "   "}, "query", "empty"),
            ({"query": ["a"]}, "query", "text"),
            ({"query": {"a": 1}}, "query", "text"),
            ({"query": "a\x07b"}, "query", "control characters"),
            ({"query": "a", "top_k": 0}, "top_k", "1"),
            ({"query": "a", "top_k": -1}, "top_k", "1"),
            ({"query": "a", "top_k": 51}, "top_k", "50"),
            ({"query": "a", "top_k": 10**9}, "top_k", "50"),
            ({"query": "a", "top_k": "many"}, "top_k", "integer"),
            ({"query": "a", "top_k": True}, "top_k", "integer"),
            ({"query": "a", "layers": "main"}, "layers", "list"),
            ({"query": "a", "layers": []}, "layers", "empty"),
            ({"query": "a", "layers": [[]]}, "layers.0", "string"),
            ({"query": "a", "layers": ["x"] * 101}, "layers", "100"),
            ({"query": "a", "metadata_filter": ["a"]}, "metadata_filter", "dictionary"),
            (
                {"query": "a", "metadata_filter": {"page": {}}},
                "metadata_filter.page",
                "string",
            ),
            (
                {"query": "a", "metadata_filter": {str(n): "" for n in range(21)}},
                "metadata_filter",
                "",
            ),
            ({"query": "a", "query_vector": [1.0]}, "model", "Name the model"),
            ({"query": "a", "model": "m"}, "query_vector", "Send the vector"),
            ({"query": "a", "query_vector": [], "model": "m"}, "query_vector", "list"),
            (
                {"query": "a", "query_vector": ["1"], "model": "m"},
                "query_vector",
                "numbers only",
            ),
            (
                {"query": "a", "query_vector": [True], "model": "m"},
                "query_vector",
                "numbers only",
            ),
            (
                {"query": "a", "query_vector": [0.0, 0.0], "model": "m"},
                "query_vector",
                "direction",
            ),
            (
                {"query": "a", "query_vector": [10**400], "model": "m"},
                "query_vector",
                "large",
            ),
        ],
    )
    def test_a_wrong_field_is_named(
        self, reader: Client, fields: dict[str, Any], named: str, words: str
    ) -> None:
        error = refusal(post(reader, fields), 400)
        assert error["code"] == "invalid"
        assert named in "".join(error["fields"])
        assert words in error["message"]

    @pytest.mark.req("REL-T8")
    @pytest.mark.parametrize(
        "name", ["is_staff", "knowledge_base", "owner", "reader", "limit", "Query", ""]
    )
    def test_an_unknown_field_is_refused_by_name(
        self, reader: Client, name: str
    ) -> None:
        error = refusal(post(reader, {"query": "a", name: "b"}), 400)
        assert list(error["fields"]) == [name or "body"]
        assert "is not known here" in error["message"]
        assert "metadata_filter" in error["message"]

    @pytest.mark.req("REL-X6")
    @pytest.mark.parametrize(("length", "status"), [(1, 200), (1000, 200), (1001, 400)])
    def test_a_query_has_a_greatest_length(
        self, reader: Client, length: int, status: int
    ) -> None:
        response = post(reader, {"query": "a" * length})
        assert response.status_code == status
        if status == 400:
            assert "1,000" in refusal(response, 400)["fields"]["query"][0]

    @pytest.mark.req("R5")
    @pytest.mark.parametrize("layers", [["handbook/main"], [], None, "handbook/main"])
    def test_an_agent_client_names_no_layers(self, cast: Cast, layers: Any) -> None:
        error = refusal(
            post(cast.agent_token.client(), {"query": "a", "layers": layers}), 400
        )
        assert list(error["fields"]) == ["layers"]
        assert "agent client" in error["message"]


class TestMethodsAndAddresses:
    """Other methods and addresses."""

    @pytest.mark.parametrize(
        ("path", "method"),
        [
            (SEARCH, "get"),
            (SEARCH, "put"),
            (SEARCH, "delete"),
            (SEARCH, "options"),
            ("/api/v1/layers", "post"),
            ("/api/v1/me", "patch"),
            ("/api/v1/passages/d1:1-2", "delete"),
            ("/api/v1/schema", "post"),
        ],
    )
    def test_a_method_that_is_not_taken(
        self, reader: Client, path: str, method: str
    ) -> None:
        response = getattr(reader, method)(path)
        assert refusal(response, 405)["code"] == "method_not_allowed"
        assert method.upper() not in response.headers["Allow"]

    @pytest.mark.req("D25")
    @pytest.mark.parametrize("method", ["get", "post", "put", "delete", "options"])
    @pytest.mark.parametrize("path", ["", "nothing", "search/", "admin", "passages/"])
    def test_an_unknown_address_is_one_404(
        self, reader: Client, path: str, method: str
    ) -> None:
        response = getattr(reader, method)(f"/api/v1/{path}")
        assert refusal(response, 404)["code"] == "not_found"

    def test_a_method_cannot_be_overridden(self, cast: Cast) -> None:
        response = cast.token_in_scope.client().post(
            "/api/v1/me", headers={"X-HTTP-Method-Override": "GET"}
        )
        refusal(response, 405)


@pytest.fixture
def broken_access_rows(cast: Cast) -> None:
    """Take away what the resolver reads; the test's transaction puts it back."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE knowledge_knowledgebaseuseraccess RENAME TO gone")


@pytest.mark.req("REL-A14")
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("post", SEARCH),
        ("get", "/api/v1/layers"),
        ("get", "/api/v1/me"),
        ("get", "/api/v1/passages/d1:1-2"),
        ("get", "/"),
        ("get", "/knowledge-bases/"),
    ],
)
def test_a_failing_database_is_503_and_never_an_answer(
    cast: Cast, broken_access_rows: None, method: str, path: str
) -> None:
    client = cast.granted.client()
    if method == "post":
        response = post(client, {"query": "overdraft"})
    else:
        response = client.get(path)
    assert response.status_code == 503
    assert int(response.headers["Retry-After"]) >= 1
    assert b"handbook" not in response.content.lower()
    if path.startswith("/api/"):
        assert refusal(response, 503)["code"] == "unavailable"
