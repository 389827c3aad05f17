"""Requests that are served asynchronously, as under ASGI."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from asgiref.sync import sync_to_async
from django.db import connections
from django.test import AsyncClient

from knowledge.models import User

Shown = TypeVar("Shown")


def play(scene: Callable[[AsyncClient], Awaitable[Shown]], user: User | None) -> Shown:
    """Play a scene with somebody signed in, and return what came of it.

    In a thread of its own: a browser test leaves a loop running in the one of the tests.
    It has connections of its own too, so what the scene reads must be committed
    (`transaction=True`).
    """
    assert user is not None

    async def whole() -> Shown:
        client = AsyncClient()
        await client.aforce_login(user)
        try:
            return await scene(client)
        finally:
            await sync_to_async(connections.close_all)()

    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(asyncio.run, whole()).result()
