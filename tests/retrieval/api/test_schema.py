"""The API's description, and the page to try it on."""

import re

import pytest
from django.contrib.staticfiles import finders
from django.core.management import call_command

from tests.cast import Cast

pytestmark = pytest.mark.django_db


def test_the_description_is_valid_and_warns_of_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    call_command("spectacular", "--validate", "--fail-on-warn")
    description = capsys.readouterr().out
    for path in ("search", "layers", "me", "passages/{ref}", "turns/{turn_id}/search"):
        assert f"/api/v1/{path}:" in description


def test_every_refusal_is_described(cast: Cast) -> None:
    found = cast.granted.client().get(
        "/api/v1/schema", headers={"Accept": "application/vnd.oai.openapi+json"}
    )
    paths = found.json()["paths"]
    assert set(paths["/api/v1/search"]["post"]["responses"]) == {
        "200",
        "400",
        "401",
        "403",
        "413",
        "415",
        "429",
        "503",
    }
    for operations in paths.values():
        for operation in operations.values():
            assert operation["security"] == [{"token": []}, {"cookieAuth": []}]


@pytest.mark.req("REL-X9")
def test_the_page_runs_under_the_policy(cast: Cast) -> None:
    response = cast.granted.client().get("/api/v1/docs")
    page = response.content.decode()
    assert "script-src" not in response.headers["Content-Security-Policy"]
    assert not re.search(r"<style|style=|\son\w+=|<script(?![^>]*\ssrc=)", page)
    for address in re.findall(r'(?:src|href)="([^"]+)"', page):
        assert address.startswith("/")
        if address.startswith("/static/"):
            assert finders.find(address.removeprefix("/static/"))
        else:
            script = cast.granted.client().get(address.replace("&amp;", "&"))
            assert script.headers["Content-Type"].startswith("application/javascript")


def test_whoever_is_not_signed_in_is_sent_to_sign_in(cast: Cast) -> None:
    response = cast.anonymous.client().get("/api/v1/docs")
    assert response.status_code == 302
    assert response.headers["Location"] == "/login/?next=/api/v1/docs"
