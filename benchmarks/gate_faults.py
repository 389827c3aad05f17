"""Approved answers under faults: each client must have each entry once (R17)."""

from __future__ import annotations

import os
import random
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from knowledge.models import Layer

CLIENTS = 4
# Answers in all may take so long on their way before they count as stuck.
SECONDS_AN_ENTRY = 6


def told_once(layer: Layer, draw: random.Random, number: int) -> dict[str, int]:
    """Approve answers, which the worker brings in and announces, while the web process
    is killed under the clients that pull them."""
    from approvals import actions
    from approvals.models import Delivery
    from tests.approvals.gaps import approver_of, pending_question
    from tests.approvals.pulling import Server, pulled_through_kills
    from tests.worker_process import environment

    person = approver_of(layer.knowledge_base)
    tokens = [token_of(layer, name) for name in range(CLIENTS)]

    def approve_all() -> list[str]:
        entries = []
        for each in range(number):
            question = f"Which shelf holds volume {each} of the harbour's log?"
            pending = pending_question(layer.knowledge_base, text=question)
            actions.propose_answer(
                pending,
                actor=person,
                question=question,
                answer=f"Volume {each} stands on shelf {draw.randrange(90)}.",
                layer=layer,
            )
            entries.append(str(pending.public_id))
        end = time.monotonic() + SECONDS_AN_ENTRY * number
        while Delivery.objects.count() < CLIENTS * number and time.monotonic() < end:
            time.sleep(0.5)
        return entries

    changes = {
        "DJANGO_SETTINGS_MODULE": os.environ["DJANGO_SETTINGS_MODULE"],
        "STRATA_API_RATE": "0",
    }
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        server = Server(environment(**changes), place / "server.log")
        return pulled_through_kills(server, tokens, place, draw, approve_all)


def token_of(layer: Layer, number: int) -> str:
    """Return the token of a new agent client that may search a layer."""
    from knowledge.models import AgentClient
    from knowledge.permissions import grant
    from knowledge.tokens import create_agent_token
    from tests.approvals.gaps import BOTH
    from tests.factories import UserFactory

    owner = UserFactory()
    grant(layer.knowledge_base, BOTH, to=owner, actor=None)
    client = AgentClient.objects.create(owner=owner, name=f"kiosk {number}")
    client.knowledge_bases.add(layer.knowledge_base)
    return create_agent_token(client, name="key", actor=owner)[1]
