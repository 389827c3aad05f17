"""What leaves this machine under which settings (S1-PRV-02, S1-PRV-03).

One table for all that tells of it: the refusal to start with STRATA_LOCAL_ONLY, the
portal's page and, word for word its setting names, docs/data-flow.md. Whoever adds a
way out adds its row here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import httpx
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from knowledge.inference.http import is_loopback_host

Text = str | Promise

# The settings that `flows` reads.
DECIDING: Final = (
    "DATABASES",
    "PORTAL_EMBEDS",
    "STRATA_MODEL_URL",
    "STRATA_RERANKING_URL",
    "RERANKING_MODEL",
    "QUERY_REWRITE_PROVIDER",
    "QUERY_REWRITE_BASE_URL",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_API_KEY",
    "STRATA_DRAFTING",
    "EMAIL_HOST",
    "STRATA_WEBHOOK_HOSTS",
)


@dataclass(frozen=True, slots=True)
class Flow:
    """One way by which content can leave, as it is set now.

    `settings` are the names of what decides about it, the first that which opens it.
    `host` is where it leads, "" where it is closed. `sent` says what is sent.
    """

    name: Text
    settings: tuple[str, ...]
    host: str
    sent: Text

    @property
    def is_open(self) -> bool:
        """Whether anything is sent at all, be it within this machine."""
        return bool(self.host)

    @property
    def leaves(self) -> bool:
        """Whether what is sent leaves this machine."""
        return self.is_open and not is_loopback_host(self.host)


def flows(values: Mapping[str, Any]) -> tuple[Flow, ...]:
    """Return every way out under some settings, open or not."""
    provider = provider_host(values)
    key = (
        "ANTHROPIC_API_KEY"
        if values["QUERY_REWRITE_PROVIDER"] == "anthropic"
        else "QUERY_REWRITE_BASE_URL"
    )
    return (
        Flow(
            _("Database"),
            ("DATABASE_URL",),
            database_host(values),
            _("All that the portal keeps: documents, passages, questions, accounts."),
        ),
        Flow(
            _("Model server"),
            ("STRATA_MODEL_URL", "STRATA_EMBEDDING_MODEL", "PORTAL_EMBEDS"),
            host_of(values["STRATA_MODEL_URL"]) if values["PORTAL_EMBEDS"] else "",
            _("The text of every passage when it is indexed, and every question."),
        ),
        Flow(
            _("Reranking model"),
            ("STRATA_RERANKING_URL", "RERANKING_MODEL", "RERANKING_ENABLED"),
            host_of(values["STRATA_RERANKING_URL"])
            if values["RERANKING_MODEL"]
            else "",
            _("Every question, with the passages that may answer it."),
        ),
        Flow(
            _("Rewording of questions"),
            (key, "QUERY_REWRITE_PROVIDER", "QUERY_REWRITE_MODEL"),
            provider,
            _(
                "Questions, bank details taken out, and the names, descriptions and "
                "languages of the layers that they are asked of."
            ),
        ),
        Flow(
            _("Wording of answers"),
            ("STRATA_DRAFTING", key, "STRATA_DRAFTING_MODEL"),
            provider if values["STRATA_DRAFTING"] else "",
            _(
                "Questions, bank details taken out, and the text of the passages that "
                "are to answer them."
            ),
        ),
        Flow(
            _("Mails to staff"),
            ("EMAIL_HOST", "EMAIL_PORT", "STRATA_REPLY_ADDRESS"),
            values["EMAIL_HOST"],
            _(
                "Questions that the documents did not answer and answers that wait for "
                "approval, bank details taken out, with how often they were asked."
            ),
        ),
        *(
            Flow(
                _("Signed messages"),
                ("STRATA_WEBHOOK_HOSTS",),
                host,
                _(
                    "What mails to staff say, and approved answers to the agent "
                    "clients that are to have them."
                ),
            )
            for host in hosts_of(values["STRATA_WEBHOOK_HOSTS"]) or [""]
        ),
    )


def hosts_of(listed: Sequence[str]) -> list[str]:
    """Return the hosts of a list of hosts and ports, each once."""
    return list(dict.fromkeys(host_of(f"https://{each}") for each in listed))


def sending_settings(values: Mapping[str, Any]) -> list[str]:
    """Return the names of the settings by which content would leave this machine."""
    return list(
        dict.fromkeys(flow.settings[0] for flow in flows(values) if flow.leaves)
    )


def provider_host(values: Mapping[str, Any]) -> str:
    """Return where the language model's provider is, "" where none is set up."""
    if values["QUERY_REWRITE_PROVIDER"] == "openai_compatible":
        return host_of(values["QUERY_REWRITE_BASE_URL"])
    return host_of(values["ANTHROPIC_BASE_URL"]) if values["ANTHROPIC_API_KEY"] else ""


def database_host(values: Mapping[str, Any]) -> str:
    """Return the database's host; one that is reached by a socket is on this machine."""
    host = str(values["DATABASES"]["default"]["HOST"])
    return "localhost" if not host or host.startswith(("/", "@")) else host


def host_of(url: str) -> str:
    """Return the host of an address, as the client that calls it reads it."""
    return httpx.URL(url).host
