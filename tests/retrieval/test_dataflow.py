"""What leaves the machine is told, and refused where nothing may."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings as in_use
from pytest_django.fixtures import Settings

from retrieval.dataflow import DECIDING, Flow, flows, sending_settings
from strata_portal import settings as product
from tests.cast import Cast

ROOT = Path(__file__).parents[2]
ELSEWHERE = {
    "STRATA_MODEL_URL": "https://models.example.org",
    "STRATA_RERANKING_URL": "http://10.0.0.7:8000",
    "RERANKING_MODEL": "some/reranker",
    "QUERY_REWRITE_PROVIDER": "openai_compatible",
    "QUERY_REWRITE_BASE_URL": "https://api.example.org/v1",
    "QUERY_REWRITE_MODEL": "large",
    "STRATA_DRAFTING": "true",
    "EMAIL_HOST": "mail.example.org",
    "STRATA_WEBHOOK_HOSTS": "127.0.0.1:8700,chat.example.org:8443",
    "DATABASE_URL": "postgresql://strata@db.example.org/strata",
}


def values(**changed: object) -> dict[str, object]:
    """Return the settings of this run, some of them changed."""
    return {name: getattr(in_use, name) for name in DECIDING} | changed


def flow_of(setting: str, **changed: object) -> Flow:
    return next(
        flow for flow in flows(values(**changed)) if flow.settings[0] == setting
    )


def start(**environment: str) -> "subprocess.CompletedProcess[str]":
    """Start the product as an operator does, with some settings."""
    return subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=ROOT,
        env={
            **{
                name: value
                for name, value in os.environ.items()
                if name != "PYTHONPATH"
            },
            "DJANGO_SETTINGS_MODULE": "strata_portal.settings",
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.req("S1-PRV-02", "S1-QRW-07")
def test_local_only_refuses_to_start_and_names_each_setting() -> None:
    done = start(STRATA_LOCAL_ONLY="true", **ELSEWHERE)
    assert done.returncode != 0
    said = done.stderr.splitlines()[-1]
    assert said.startswith("django.core.exceptions.ImproperlyConfigured:")
    for name in (
        "DATABASE_URL",
        "STRATA_MODEL_URL",
        "STRATA_RERANKING_URL",
        "QUERY_REWRITE_BASE_URL",
        "STRATA_DRAFTING",
        "EMAIL_HOST",
        "STRATA_WEBHOOK_HOSTS",
    ):
        assert name in said


@pytest.mark.req("S1-PRV-02", "S1-QRW-07")
def test_local_only_starts_with_servers_on_this_machine() -> None:
    done = start(
        STRATA_LOCAL_ONLY="true",
        EMAIL_HOST="localhost",
        STRATA_WEBHOOK_HOSTS="127.0.0.1:8700,[::1]:8700,localhost",
        STRATA_MODEL_URL="http://127.0.0.1:8601",
        QUERY_REWRITE_PROVIDER="openai_compatible",
        QUERY_REWRITE_BASE_URL="http://localhost:11434/v1/",
        QUERY_REWRITE_MODEL="llama3.2",
        # Not in use, so nothing is sent by it.
        ANTHROPIC_API_KEY="sk-unused",
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.req("S1-QRW-04", "S1-QRW-07")
def test_a_key_of_anthropic_is_a_way_out() -> None:
    assert sending_settings(values()) == []
    assert sending_settings(values(ANTHROPIC_API_KEY="sk")) == ["ANTHROPIC_API_KEY"]
    assert flow_of("ANTHROPIC_API_KEY", ANTHROPIC_API_KEY="sk").host == (
        "api.anthropic.com"
    )


@pytest.mark.parametrize(
    ("url", "leaves"),
    [
        ("http://127.0.0.1:9", False),
        ("http://127.8.9.10", False),
        ("http://[::1]:8601", False),
        ("http://localhost:8601", False),
        ("http://localhost.example.org", True),
        ("http://127.0.0.1.example.org", True),
        ("http://127.0.0.1@example.org", True),
        ("http://0.0.0.0:8601", True),
        ("http://192.168.0.2", True),
        ("http://model:8601", True),
    ],
)
def test_only_loopback_addresses_are_this_machine(url: str, *, leaves: bool) -> None:
    assert flow_of("STRATA_MODEL_URL", STRATA_MODEL_URL=url).leaves is leaves


def test_what_is_not_in_use_sends_nothing() -> None:
    elsewhere = "https://models.example.org"
    closed = flow_of("STRATA_RERANKING_URL", STRATA_RERANKING_URL=elsewhere)
    assert (closed.is_open, closed.leaves) == (False, False)
    opened = flow_of(
        "STRATA_RERANKING_URL", STRATA_RERANKING_URL=elsewhere, RERANKING_MODEL="some"
    )
    assert (opened.host, opened.leaves) == ("models.example.org", True)
    assert not flow_of("STRATA_MODEL_URL", PORTAL_EMBEDS=False).is_open


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        (
            {"QUERY_REWRITE_PROVIDER": "openai_compatible"},
            "needs QUERY_REWRITE_BASE_URL and QUERY_REWRITE_MODEL",
        ),
        ({"QUERY_REWRITE_BASE_URL": "http://127.0.0.1:1"}, "must end in /v1"),
        ({"QUERY_REWRITE_BASE_URL": "ftp://a/v1"}, "must begin with http"),
        ({"QUERY_REWRITE_BASE_URL": "http://me:key@a/v1"}, "and no key"),
        ({"ANTHROPIC_API_KEY": "sk-one\nsk-two"}, "characters that no key has"),
        ({"STRATA_DRAFTING": "true"}, "STRATA_DRAFTING needs a provider"),
        ({"STRATA_MAIL_HOOK_SECRETS": "abc"}, "holds what is no secret"),
        ({"STRATA_WEBHOOK_HOSTS": "https://chat.example"}, "and no address"),
    ],
)
def test_settings_that_cannot_work_are_refused(
    environment: dict[str, str], sentence: str
) -> None:
    done = start(**environment)
    assert done.returncode != 0
    assert sentence in done.stderr
    assert "sk-one" not in done.stderr
    assert "me:key" not in done.stderr


@pytest.mark.req("S1-PRV-03")
def test_the_docs_tell_of_every_way_out_and_its_settings() -> None:
    text = (ROOT / "docs" / "data-flow.md").read_text(encoding="utf-8")
    told = " ".join(text.split())
    for anthropic in (True, False):
        changed = {} if anthropic else {"QUERY_REWRITE_PROVIDER": "openai_compatible"}
        for flow in flows(values(**changed)):
            assert str(flow.sent) in told
            for name in flow.settings:
                assert f"`{name}`" in told
                assert hasattr(product, name) or name == "DATABASE_URL"


@pytest.mark.req("S1-PRV-03")
@pytest.mark.django_db
def test_the_page_tells_what_leaves_now(cast: Cast, settings: Settings) -> None:
    client = cast.granted.client()
    assert b"stay on the machine" in client.get("/data-flow/").content
    settings.QUERY_REWRITE_PROVIDER = "anthropic"
    settings.ANTHROPIC_API_KEY = "sk-a-key-that-nobody-may-meet"
    page = client.get("/data-flow/").content.decode()
    assert "stay on the machine" not in page
    assert "goes to api.anthropic.com" in page
    assert "sk-a-key" not in page
    assert "ANTHROPIC_API_KEY" not in page
    assert (
        "ANTHROPIC_API_KEY" in cast.editor.client().get("/data-flow/").content.decode()
    )
