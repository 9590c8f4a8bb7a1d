"""Waiting for an event or for a time, whichever comes first."""

from __future__ import annotations

import asyncio


async def either(event: asyncio.Event, seconds: float) -> None:
    """Returns when the event is set, or after that many seconds."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass
