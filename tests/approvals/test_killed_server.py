"""Approved answers reach each client once, however often the server is killed."""

import random
from pathlib import Path
from typing import Any

import pytest

from approvals import actions
from approvals.asking_again import follow_up
from knowledge.ingest import run_ingest
from knowledge.models import AgentClient, IngestRun
from knowledge.permissions import grant
from knowledge.tokens import create_agent_token
from tests.approvals.gaps import BOTH, approver_of, pending_question
from tests.approvals.pulling import Server, pulled_through_kills
from tests.factories import LayerFactory, UserFactory
from tests.worker_process import environment

ENTRIES, CLIENTS = 50, 4


@pytest.mark.req("S2-APR-05", "R17", "REL-W5")
@pytest.mark.django_db(transaction=True)
def test_each_client_has_each_entry_once(settings: Any, tmp_path: Path) -> None:
    settings.PORTAL_EMBEDS = False
    layer = LayerFactory()
    person = approver_of(layer.knowledge_base)
    tokens = []
    for number in range(CLIENTS):
        owner = UserFactory()
        grant(layer.knowledge_base, BOTH, to=owner, actor=None)
        client = AgentClient.objects.create(owner=owner, name=f"kiosk {number}")
        client.knowledge_bases.add(layer.knowledge_base)
        tokens.append(create_agent_token(client, name="key", actor=owner)[1])

    def approve_all() -> list[str]:
        entries = []
        for number in range(ENTRIES):
            question = f"Where is locker number {number}?"
            pending = pending_question(layer.knowledge_base, text=question)
            actions.propose_answer(
                pending, actor=person, question=question, answer=f"In row {number}."
            )
            for run in IngestRun.objects.filter(state="queued"):
                run_ingest(run.pk)
            follow_up()
            entries.append(str(pending.public_id))
        return entries

    server = Server(
        environment(STRATA_API_RATE="0", PORTAL_EMBEDS="false"), tmp_path / "server.log"
    )
    seed = random.randrange(10**9)
    figures = pulled_through_kills(
        server, tokens, tmp_path, random.Random(seed), approve_all
    )

    assert (figures["lost"], figures["doubled"], figures["foreign"]) == (0, 0, 0), seed
    assert figures["entries"] == ENTRIES
    assert figures["kills"] > 0
